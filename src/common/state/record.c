/* SPDX-License-Identifier: Apache-2.0 */
#include "state/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "state/record_flat.h"

/* What is read or written at once: most records are shorter. */
static char flat_text[32768];

/* ---- JSON -> struct */

/* Each returns 0, -EBADMSG: it is not what the field holds, or -ENOMEM, which says nothing about the file. */
static int read_fields(const struct record_field *fields, const json_t *object, void *ret_record);

static int sound(bool is_sound)
{
        return is_sound ? 0 : -EBADMSG;
}

static int read_number(const struct record_field *field, const json_t *value, void *ret_number)
{
        uint64_t number = (uint64_t)json_integer_value(value);

        if (!json_is_integer(value) || (field->size == sizeof(uint32_t) && number > UINT32_MAX))
                return -EBADMSG;
        if (field->size == sizeof(uint32_t))
                *(uint32_t *)ret_number = (uint32_t)number;
        else
                *(uint64_t *)ret_number = number;
        return 0;
}

static int read_string(const json_t *value, char **ret_string)
{
        if (!json_is_string(value))
                return -EBADMSG;
        *ret_string = strdup(json_string_value(value));
        return *ret_string != NULL ? 0 : -ENOMEM;
}

static int read_word(const struct record_field *field, const json_t *value, void *ret_word)
{
        const char *word = json_string_value(value);

        for (unsigned i = 0; word != NULL && field->words[i] != NULL; i++)
                if (strcmp(field->words[i], word) == 0) {
                        *(unsigned *)ret_word = i;
                        return 0;
                }
        return -EBADMSG;
}

/* Elements that were read are counted, so that record_release() frees them after a failure. */
static int read_list(const struct record_field *field, const json_t *value, char *record)
{
        size_t *count = (size_t *)(void *)(record + field->count_offset);
        char *list = json_is_array(value) ? calloc(json_array_size(value) + 1, field->member_size) : NULL;
        const json_t *item;
        size_t i;
        int r = 0;

        *(void **)(void *)(record + field->offset) = list;
        *count = 0;
        if (list == NULL)
                return json_is_array(value) ? -ENOMEM : -EBADMSG;
        json_array_foreach (value, i, item) {
                if (!json_is_object(item))
                        return -EBADMSG;
                ++*count;
                if ((r = read_fields(field->members, item, list + (i * field->member_size))) < 0)
                        return r;
        }
        return 0;
}

static int read_field(const struct record_field *field, const json_t *value, char *record)
{
        void *place = record + field->offset;
        const char *text = json_string_value(value);

        switch (field->type) {
        case RECORD_TEXT:
                return sound(text != NULL && text_copy(place, field->size, text));
        case RECORD_STRING:
                return read_string(value, place);
        case RECORD_NUMBER:
                return read_number(field, value, place);
        case RECORD_BOOLEAN:
        case RECORD_NOT:
                *(bool *)place = json_is_boolean(value) && json_is_true(value) == (field->type == RECORD_BOOLEAN);
                return sound(json_is_boolean(value));
        case RECORD_WORD:
                return read_word(field, value, place);
        case RECORD_OBJECT:
        case RECORD_ARRAY:
                if (field->type == RECORD_OBJECT ? !json_is_object(value) : !json_is_array(value))
                        return -EBADMSG;
                *(json_t **)place = json_incref((json_t *)value);
                return 0;
        case RECORD_MEMBERS:
                return json_is_object(value) ? read_fields(field->members, value, place) : -EBADMSG;
        case RECORD_LIST:
                return read_list(field, value, record);
        }
        return -EBADMSG;
}

static int read_fields(const struct record_field *fields, const json_t *object, void *ret_record)
{
        int r = 0;

        for (; r == 0 && fields->key != NULL; fields++) {
                const json_t *value = json_object_get(object, fields->key);

                r = value == NULL ? sound(fields->optional) : read_field(fields, value, ret_record);
        }
        return r;
}

/* Whether it is a record of a flat table as record_write() writes it, which most are. */
static bool read_flat(int fd, const struct record_table *table, void *ret_record)
{
        ssize_t n = read(fd, flat_text, sizeof flat_text - 1);

        if (n <= 0)
                return false;
        flat_text[n] = '\0';
        return record_flat_read(table, flat_text, (size_t)n, ret_record) && table->is_sound(ret_record);
}

/* What cannot be opened, but is there, is no file: a link, a socket. */
static int fail_open(const struct state *state, const char *file, int errnum, struct error *error)
{
        struct stat st;

        return errnum != ENOENT && fstatat(state->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)
                       ? -EBADMSG
                       : fail(error, errnum, "open", file);
}

/* Only a file that was read to its end can be damaged: any other failure to read it says nothing about it. */
int record_read(const struct state *state, const struct record_table *table, const char *file, void *ret_record,
                struct error *error)
{
        cleanup_close int fd = openat(state->dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
        cleanup_json json_t *object = NULL;
        const json_t *version;
        int r = fd < 0 ? fail_open(state, file, errno, error) : 0;

        if (!table->flat || r == 0 || r == -EBADMSG)
                (void)memset(ret_record, 0, table->size);
        if (r < 0 && r != -EBADMSG)
                return r;
        if (r == 0 && table->flat) {
                if (read_flat(fd, table, ret_record))
                        return 0;
                (void)memset(ret_record, 0, table->size);
                (void)lseek(fd, 0, SEEK_SET); /* where it cannot, it is no file */
        }
        if (r == 0)
                r = json_file_load_fd(fd, file, JSON_OBJECT, &object, error);
        if (r < 0 && r != -EBADMSG && r != -EFBIG) /* EFBIG: longer than any record */
                return r;
        version = json_object_get(object, "version");
        if (json_is_integer(version) && json_integer_value(version) != table->version)
                return fail_because(error, EPROTONOSUPPORT, OPERATION_READ_RECORD, file,
                                    "the record %s is of version %lld, and this program understands version %d", file,
                                    (long long)json_integer_value(version), table->version);
        if (r == 0)
                r = read_fields(table->fields, object, ret_record);
        if (r == 0 && table->is_sound(ret_record))
                return 0;
        record_release(table, ret_record);
        if (r == -ENOMEM)
                return fail(error, ENOMEM, OPERATION_READ_RECORD, file);
        return fail_because(error, EBADMSG, OPERATION_READ_RECORD, file, "the record %s is damaged, or of another type",
                            file);
}

/* ---- struct -> JSON */

static json_t *write_fields(const struct record_field *fields, const char *record);

/* JSON is UTF-8, which paths of the kernel need not be: then the other text is written in its place. */
static json_t *write_text(const struct record_field *fields, const struct record_field *field, const char *record)
{
        json_t *value = json_string(record + field->offset);

        return value != NULL || field->instead == NULL
                       ? value
                       : json_string(record + record_field_find(fields, field->instead)->offset);
}

static json_t *write_number(const struct record_field *field, const void *number)
{
        return json_integer(field->size == sizeof(uint32_t) ? (json_int_t) * (const uint32_t *)number
                                                            : (json_int_t) * (const uint64_t *)number);
}

static json_t *write_list(const struct record_field *field, const char *record)
{
        const char *list = *(char *const *)(const void *)(record + field->offset);
        size_t count = *(const size_t *)(const void *)(record + field->count_offset);
        json_t *array = json_array();

        for (size_t i = 0; i < count; i++)
                if (json_array_append_new(array, write_fields(field->members, list + (i * field->member_size))) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}

static json_t *write_field(const struct record_field *fields, const struct record_field *field, const char *record)
{
        const void *place = record + field->offset;

        switch (field->type) {
        case RECORD_TEXT:
                return write_text(fields, field, record);
        case RECORD_STRING:
                return json_string(*(char *const *)place);
        case RECORD_NUMBER:
                return write_number(field, place);
        case RECORD_BOOLEAN:
        case RECORD_NOT:
                return json_boolean(*(const bool *)place == (field->type == RECORD_BOOLEAN));
        case RECORD_WORD:
                return json_string(field->words[*(const unsigned *)place]);
        case RECORD_OBJECT:
        case RECORD_ARRAY:
                return json_incref(*(json_t *const *)place);
        case RECORD_MEMBERS:
                return write_fields(field->members, place);
        case RECORD_LIST:
                return write_list(field, record);
        }
        return NULL;
}

static bool add_fields(const struct record_field *fields, const char *record, json_t *object)
{
        for (const struct record_field *field = fields; field->key != NULL; field++)
                if (record_field_is_written(fields, field, record) &&
                    json_object_set_new(object, field->key, write_field(fields, field, record)) < 0)
                        return false;
        return true;
}

/* NULL: no memory, or a text is not UTF-8. */
static json_t *write_fields(const struct record_field *fields, const char *record)
{
        json_t *object = json_object();

        if (add_fields(fields, record, object))
                return object;
        json_decref(object);
        return NULL;
}

static int write_tree(const struct state *state, const struct record_table *table, const char *file, const void *record,
                      enum file_durability durability)
{
        cleanup_json json_t *object = json_pack("{s:i}", "version", table->version);

        return add_fields(table->fields, record, object) ? json_file_replace(state->dir_fd, file, object, durability)
                                                         : -ENOMEM;
}

int record_write(const struct state *state, const struct record_table *table, const char *file, const char *name,
                 const void *record, enum file_durability durability, struct error *error)
{
        size_t length = table->flat ? record_flat_write(table, record, flat_text, sizeof flat_text) : 0;
        int r = length > 0 ? file_replace(state->dir_fd, file, flat_text, length, durability)
                           : write_tree(state, table, file, record, durability);

        return r < 0 ? fail(error, -r, "write record", name) : 0;
}

/* ---- */

int record_pass(const struct state *state, const struct record_table *table, const char *file, void *scratch,
                record_function *function, void *argument, struct error *error)
{
        int r = record_read(state, table, file, scratch, error);

        if (r == -ENOENT)
                return 0; /* it was removed meanwhile */
        r = function(r == 0 ? scratch : NULL, file, argument, error);
        record_release(table, scratch);
        return r;
}

int record_each(const struct state *state, const struct record_table *table, void *scratch, record_function *function,
                void *argument, struct error *error)
{
        DIR *list = state_list(state);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, OPERATION_OPEN_STATE, table->directory);
        while (r == 0 && (errno = 0, entry = readdir(list)) != NULL)
                if (entry->d_name[0] != '.' && text_ends(entry->d_name, RECORD_SUFFIX))
                        r = record_pass(state, table, entry->d_name, scratch, function, argument, error);
        if (r == 0 && errno != 0)
                r = fail(error, errno, "read state", table->directory);
        (void)closedir(list); /* nothing was written */
        return r;
}

uint64_t record_lock_key(const struct record_table *table, const char *file)
{
        size_t length = strlen(file) - (text_ends(file, RECORD_SUFFIX) ? strlen(RECORD_SUFFIX) : 0);
        const char *variant = table->variant != '\0' ? memchr(file, table->variant, length) : NULL;

        return hash_bytes(HASH_SEED, file, variant != NULL ? (size_t)(variant - file) : length);
}

/* Whether it is now what it was found to be; only what can be read, or is damaged, says so. */
static bool is_wrong(const struct state *state, const struct record_table *table, const char *file, const char *name)
{
        char *record = calloc(1, table->size);
        struct error ignored;
        int r = record != NULL ? record_read(state, table, file, record, &ignored) : -ENOMEM;
        bool wrong = r == -EBADMSG || (r == 0 && name != NULL && strcmp(record + table->name_offset, name) != 0);

        if (r == 0)
                record_release(table, record);
        free(record);
        return wrong;
}

/* With a descriptor of its own, whose lock ends with it. True also where the caller holds the lock. */
static bool lock_apart(const struct state *state, uint64_t key, struct state *ret_own)
{
        *ret_own = (struct state){ .dir_fd = state->dir_fd, .lock_fd = -EBADF };
        return state_try_lock(ret_own, key) || (state->lock_fd >= 0 && state_is_free((struct state *)state, key));
}

bool record_set_aside(const struct state *state, const struct record_table *table, const char *file, const char *name,
                      char *ret_aside)
{
        struct state own;
        bool locked = lock_apart(state, record_lock_key(table, file), &own);
        bool renamed = locked && is_wrong(state, table, file, name);

        if (renamed)
                state_set_aside(state, file, ret_aside);
        fd_close(&own.lock_fd); /* its lock ends */
        return renamed;
}

void record_tidy_file(struct state *state, const struct record_table *table, const char *file)
{
        char name[NAME_MAX + 8];
        struct state own;
        struct stat st;

        (void)snprintf(name, sizeof name, ".%s.tmp", file); /* file_replace()'s */
        if (fstatat(state->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        if (lock_apart(state, record_lock_key(table, file), &own))
                (void)unlinkat(state->dir_fd, name, 0); /* else the next tidying does */
        fd_close(&own.lock_fd);
}

void record_tidy(struct state *state, const struct record_table *table)
{
        static const char end[] = ".tmp"; /* of file_replace()'s ".NAME.tmp" */
        DIR *list = state_list(state);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL) {
                char file[NAME_MAX + 1];

                if (entry->d_name[0] != '.' || entry->d_name[1] == '.' ||
                    !text_ends(entry->d_name, RECORD_SUFFIX ".tmp"))
                        continue;
                (void)text_copy(file, strlen(entry->d_name) - strlen(end), entry->d_name + 1);
                record_tidy_file(state, table, file);
        }
        if (list != NULL)
                (void)closedir(list);
}

static void release_fields(const struct record_field *fields, char *record)
{
        for (const struct record_field *field = fields; field->key != NULL; field++) {
                void *place = record + field->offset;

                if (field->type == RECORD_MEMBERS)
                        release_fields(field->members, place);
                if (field->type == RECORD_LIST) {
                        size_t *count = (size_t *)(void *)(record + field->count_offset);
                        char *list = *(char **)place;

                        while (*count > 0)
                                release_fields(field->members, list + (--*count * field->member_size));
                }
                if (field->type == RECORD_OBJECT || field->type == RECORD_ARRAY)
                        json_decref(*(json_t **)place);
                if (field->type == RECORD_STRING || field->type == RECORD_LIST)
                        free(*(void **)place);
                if (field->type == RECORD_STRING || field->type == RECORD_LIST || field->type == RECORD_OBJECT ||
                    field->type == RECORD_ARRAY)
                        *(void **)place = NULL;
        }
}

void record_release(const struct record_table *table, void *record)
{
        release_fields(table->fields, record);
}
