/* SPDX-License-Identifier: Apache-2.0 */
#include "state/wish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

#define FILE_SIZE (WISH_KEY_SIZE + sizeof RECORD_SUFFIX)

static const struct record_field fields[] = {
        RECORD_ROW(RECORD_TEXT, "container", struct wish_record, container,
                   "its full id; or a name, with the inode and the birth of its bundle's directory; or unit/NAME", ),
        RECORD_ROW(RECORD_ARRAY, "mounts", struct wish_record, mounts,
                   "objects with \"id\", \"called\", \"target\", \"source\" (what tells that from another one of its "
                   "name) and \"request\", an entry of mount-batch", ),
        {},
};

static bool is_sound(const void *read_record)
{
        const struct wish_record *record = read_record;
        const json_t *entry;
        size_t i;

        json_array_foreach (record->mounts, i, entry)
                if (json_member_text(entry, "target")[0] != '/' || json_member_text(entry, "id")[0] == '\0' ||
                    !json_is_object(json_object_get(entry, "request")))
                        return false;
        return record->container[0] != '\0';
}

const struct record_table wish_record_table = {
        .directory = "wanted", .version = 1, .size = sizeof(struct wish_record), .fields = fields, .is_sound = is_sound
};

void wish_key(const char *identity, char ret_key[WISH_KEY_SIZE])
{
        (void)snprintf(ret_key, WISH_KEY_SIZE, "%016llx", (unsigned long long)hash_text(identity));
}

void wish_id(const char *identity, const char *target, char ret_id[WISH_ID_SIZE])
{
        uint64_t hash = hash_bytes(HASH_SEED, identity, strlen(identity) + 1);

        (void)snprintf(ret_id, WISH_ID_SIZE, "wanted-%016llx",
                       (unsigned long long)hash_bytes(hash, target, strlen(target)));
}

json_t *wish_entry(const char *id, const char *called, const char *target, const char *source, const json_t *request)
{
        return json_pack("{s:s, s:s, s:s, s:s, s:O}", "id", id, "called", called, "target", target, "source", source,
                         "request", request);
}

int wish_open(const char *state_dir, bool create, struct state *ret_state, struct error *error)
{
        return state_open(state_dir, wish_record_table.directory, create, ret_state, error);
}

static int is_there(void *record, const char *file, void *argument, struct error *error)
{
        (void)record;
        (void)file;
        (void)argument;
        (void)error;
        return 1;
}

bool wish_any(const char *state_dir)
{
        cleanup_state struct state state = STATE_NONE;
        struct wish_record scratch;
        struct error ignored;

        return wish_open(state_dir, /* create= */ false, &state, &ignored) == 0 &&
               record_each(&state, &wish_record_table, &scratch, is_there, NULL, &ignored) != 0;
}

int wish_read_key(const struct state *state, const char *key, struct wish_record *ret_wanted, struct error *error)
{
        char file[FILE_SIZE];
        int r;

        (void)snprintf(file, sizeof file, "%s" RECORD_SUFFIX, key);
        r = record_read(state, &wish_record_table, file, ret_wanted, error);
        if (r == -EBADMSG) {
                wish_release(ret_wanted);
                return fail_because(error, EBADMSG, OPERATION_READ_RECORD, file,
                                    "wanted/%s, which says what is wanted in the container, is damaged; remove it if "
                                    "nothing is",
                                    file);
        }
        if (r < 0)
                wish_release(ret_wanted);
        return r;
}

int wish_read(const struct state *state, const char *identity, struct wish_record *ret_wanted, struct error *error)
{
        char key[WISH_KEY_SIZE];
        int r;

        wish_key(identity, key);
        r = wish_read_key(state, key, ret_wanted, error);
        if (r < 0 || strcmp(ret_wanted->container, identity) == 0)
                return r;
        wish_release(ret_wanted); /* of another container, whose identity has the same hash */
        return fail(error, ENOENT, OPERATION_READ_RECORD, identity);
}

/* Its place in the array, or its size. */
static size_t find_target(const json_t *mounts, const char *target)
{
        const json_t *entry;
        size_t i;

        json_array_foreach (mounts, i, entry)
                if (strcmp(json_member_text(entry, "target"), target) == 0)
                        return i;
        return json_array_size(mounts);
}

/* The container's file as it is now, with its lock; an empty record where there is none. */
static int read_or_begin(struct state *state, const char *key, const char *identity, struct wish_record *ret_wanted,
                         struct error *error)
{
        int r = wish_read_key(state, key, ret_wanted, error);

        if (r == 0 && strcmp(ret_wanted->container, identity) != 0)
                return fail_because(error, EEXIST, OPERATION_READ_RECORD, identity,
                                    "wanted/%s" RECORD_SUFFIX " is of another container, whose id has the same hash",
                                    key);
        if (r != -ENOENT)
                return r;
        (void)text_copy(ret_wanted->container, sizeof ret_wanted->container, identity);
        ret_wanted->mounts = json_array();
        return ret_wanted->mounts == NULL ? fail(error, ENOMEM, OPERATION_READ_RECORD, identity) : 0;
}

/* ---- the index */

void wish_keys(const struct wish_record *wanted, const json_t *entry, char *ret_keys)
{
        char stem[CONTAINER_IDENTITY_MAX];

        ret_keys[0] = '\0';
        container_identity_stem(wanted->container, stem);
        use_keys_add_wanted(ret_keys, stem);
        use_keys_add_wanted(ret_keys, json_member_text(entry, "called"));
        use_keys_add_wanted(ret_keys, json_member_text(entry, "id"));
}

bool wish_has_key(const struct wish_record *wanted, const char *key)
{
        char keys[USE_KEYS_SIZE];
        const json_t *entry;
        size_t i;

        json_array_foreach (wanted->mounts, i, entry) {
                wish_keys(wanted, entry, keys);
                if (use_keys_have(keys, key))
                        return true;
        }
        return false;
}

/* Those of an entry that the file does not have any more. */
static void drop_keys(const struct state *state, const char *file, const struct wish_record *wanted,
                      const json_t *entry)
{
        char all[USE_KEYS_SIZE];
        const char *keys = all;
        char key[USE_KEY_SIZE];

        wish_keys(wanted, entry, all);
        while (use_keys_next(&keys, key))
                if (!wish_has_key(wanted, key))
                        use_index_drop(state->dir_fd, key, USE_HOLDER_WISH, file);
}

struct walk {
        const struct state *state;
        const char *keys;
        record_function *function;
        void *argument;
};

/* Whether an earlier key has led to the file already. */
static bool is_told(const char *asked, const char *key, const struct wish_record *wanted)
{
        char earlier[USE_KEY_SIZE];

        while (use_keys_next(&asked, earlier) && strcmp(earlier, key) != 0)
                if (wish_has_key(wanted, earlier))
                        return true;
        return false;
}

static int pass_on(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        cleanup_wish struct wish_record wanted = {};
        int r;

        if (sort != USE_HOLDER_WISH)
                return 0;
        r = record_read(walk->state, &wish_record_table, file, &wanted, error);
        if (r == -ENOENT || (r == 0 && is_told(walk->keys, key, &wanted)))
                return 0;
        return walk->function(r < 0 ? NULL : &wanted, file, walk->argument, error);
}

static int each_with(const struct state *state, const char *keys, record_function *function, void *argument,
                     struct error *error)
{
        struct walk walk = { .state = state, .keys = keys, .function = function, .argument = argument };
        char key[USE_KEY_SIZE];
        int r = 0;

        if (!use_index_is_complete(state->dir_fd, USE_HOLDERS_OF_USES))
                return wish_each(state, function, argument, error);
        while (r == 0 && use_keys_next(&keys, key))
                r = use_index_each(state->dir_fd, key, pass_on, &walk, error);
        return r;
}

int wish_each_called(const struct state *state, const char *name, record_function *function, void *argument,
                     struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";
        char stem[CONTAINER_IDENTITY_MAX];

        use_keys_add_wanted(keys, name);
        container_identity_stem_called(name, stem);
        use_keys_add_wanted(keys, stem);
        return each_with(state, keys, function, argument, error);
}

int wish_each_of_id(const struct state *state, const char *id, record_function *function, void *argument,
                    struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";

        use_keys_add_wanted(keys, id);
        return each_with(state, keys, function, argument, error);
}

/* ---- changes */

/* A file without wishes is removed: of this call, or of one that was killed before it could. */
static int remove_empty(const struct state *state, const char *file, const struct wish_record *wanted,
                        struct error *error)
{
        int r = json_array_size(wanted->mounts) == 0 ? state_remove(state, file) : 0;

        return r < 0 && r != -ENOENT ? fail(error, -r, "remove record", file) : 0;
}

/* That an empty file is empty is on the disk before it is removed. */
static int write_down(const struct state *state, const char *file, const struct wish_record *wanted,
                      const json_t *before, const json_t *entry, struct error *error)
{
        char keys[USE_KEYS_SIZE];
        int r;

        wish_keys(wanted, entry, keys);
        if ((entry != NULL && (r = use_index_add(state, keys, USE_HOLDER_WISH, file, error)) < 0) ||
            (r = record_write(state, &wish_record_table, file, wanted->container, wanted, FILE_DURABLE, error)) < 0 ||
            (r = remove_empty(state, file, wanted, error)) < 0)
                return r;
        if (before != NULL)
                drop_keys(state, file, wanted, before);
        return 0;
}

static int change(struct state *state, const char *identity, const char *target, const json_t *entry,
                  struct wish_change *ret_change, struct error *error)
{
        cleanup_wish struct wish_record wanted = {};
        char key[WISH_KEY_SIZE];
        char file[FILE_SIZE];
        json_t *before;
        size_t place;
        int r;

        wish_key(identity, key);
        (void)snprintf(file, sizeof file, "%s" RECORD_SUFFIX, key);
        if ((r = read_or_begin(state, key, identity, &wanted, error)) < 0)
                return r;
        place = find_target(wanted.mounts, target);
        before = json_array_get(wanted.mounts, place);
        ret_change->before = json_incref(before);
        if (before == NULL ? entry == NULL : entry != NULL && json_equal(before, entry))
                return remove_empty(state, file, &wanted, error);
        if (before == NULL && place == WISH_MAX)
                return fail_because(error, E2BIG, "write record", identity,
                                    "%d mounts are wanted in the container already", WISH_MAX);
        if (entry == NULL)
                r = json_array_remove(wanted.mounts, place);
        else if (before == NULL)
                r = json_array_append(wanted.mounts, (json_t *)entry);
        else
                r = json_array_set(wanted.mounts, place, (json_t *)entry);
        if (r < 0)
                return fail(error, ENOMEM, "write record", identity);
        ret_change->begun = true; /* from here on */
        return write_down(state, file, &wanted, ret_change->before, entry, error);
}

int wish_put(struct state *state, const char *identity, const char *target, const json_t *entry,
             struct wish_change *ret_change, struct error *error)
{
        char key[WISH_KEY_SIZE];
        char file[FILE_SIZE];
        uint64_t lock;
        int r;

        wish_key(identity, key);
        (void)snprintf(file, sizeof file, "%s" RECORD_SUFFIX, key);
        lock = record_lock_key(&wish_record_table, file);
        if ((r = state_lock(state, lock, error)) < 0)
                return r;
        r = change(state, identity, target, entry, ret_change, error);
        state_unlock(state, lock);
        return r;
}

int wish_hold(struct state *state, const char *identity, const char *target, struct error *error)
{
        char id[WISH_ID_SIZE];

        wish_id(identity, target, id);
        return state_lock(state, hash_text(id), error);
}

void wish_tidy(struct state *state, const char *key)
{
        char file[FILE_SIZE];

        if (key == NULL) {
                record_tidy(state, &wish_record_table);
                return;
        }
        (void)snprintf(file, sizeof file, "%s" RECORD_SUFFIX, key);
        record_tidy_file(state, &wish_record_table, file);
}

int wish_each(const struct state *state, record_function *function, void *argument, struct error *error)
{
        struct wish_record scratch;

        return record_each(state, &wish_record_table, &scratch, function, argument, error);
}

void wish_release(struct wish_record *wanted)
{
        record_release(&wish_record_table, wanted);
        *wanted = (struct wish_record){};
}
