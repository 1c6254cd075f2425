/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "state/use_index.h"

/* ---- the index as a whole */

static int add_record(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        char file[NAME_MAX + 1];

        if (record == NULL)
                return 0; /* nothing says what it is */
        (void)snprintf(file, sizeof file, "%s" RECORD_SUFFIX, stem);
        return record_index_add(argument, record->id, file, error);
}

static int complete(const struct state *records, struct error *error)
{
        int r = provision_record_each(records, /* set_aside= */ true, add_record, (void *)records, error);

        if (r != 0)
                return r;
        /* if it cannot be said, the next question enters them, too */
        (void)use_index_set_complete(records->dir_fd, USE_HOLDERS_PROVISIONED);
        return 0;
}

static bool has_key(const struct state *records, const char *key, const char *file)
{
        cleanup_provision_record struct provision_record record = {};
        char keys[USE_KEYS_SIZE] = "";
        struct error ignored;
        int r = record_read(records, &provision_record_table, file, &record, &ignored);

        if (r < 0)
                return r != -ENOENT;
        use_keys_add_disk(keys, record.id);
        return strcmp(keys, key) == 0;
}

/*
 * An entry whose record has another id, or is gone, and which no call is working on: locks have the file's name as
 * their key.
 */
static int repair(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        struct state *records = argument;
        uint64_t lock = record_lock_key(&provision_record_table, file);

        (void)error;
        if (sort != USE_HOLDER_PROVISIONED || has_key(records, key, file) || !state_try_lock(records, lock))
                return 0;
        if (!has_key(records, key, file))
                use_index_drop(records->dir_fd, key, sort, file);
        state_unlock(records, lock);
        return 0;
}

int record_find_repair(struct state *records, struct error *error)
{
        int r = complete(records, error);

        return r < 0 ? r : use_index_each_key(records->dir_fd, repair, records, error);
}

/* ---- the question */

struct question {
        const struct state *records;
        const char *id;
        provision_record_function *function;
        void *argument;
};

static int ask(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        const struct question *question = argument;
        cleanup_provision_record struct provision_record record = {};
        char stem[NAME_MAX + 1];
        int r;

        (void)key;
        if (sort != USE_HOLDER_PROVISIONED || !text_ends(file, RECORD_SUFFIX))
                return 0;
        (void)text_copy(stem, strlen(file) - strlen(RECORD_SUFFIX) + 1, file);
        r = record_read(question->records, &provision_record_table, file, &record, error);
        if (r == -EPROTONOSUPPORT)
                return question->function(NULL, stem, question->argument, error);
        if (r < 0)
                return r == -ENOENT || r == -EBADMSG ? 0 : r;
        return strcmp(record.id, question->id) == 0 ? question->function(&record, stem, question->argument, error) : 0;
}

int record_find_each(const struct state *records, const char *id, provision_record_function *function, void *argument,
                     struct error *error)
{
        struct question question = { .records = records, .id = id, .function = function, .argument = argument };
        char keys[USE_KEYS_SIZE] = "";
        int r = use_index_is_complete(records->dir_fd, USE_HOLDERS_PROVISIONED) ? 0 : complete(records, error);

        use_keys_add_disk(keys, id);
        return r < 0 ? r : use_index_each(records->dir_fd, keys, ask, &question, error);
}
