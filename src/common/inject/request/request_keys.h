/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_keys.h - the keys of the mount helpers' requests: one key and its value -> the field it means. Here are those
 * that several requests have; a kind of mount has a table of its own, of these rows and its own, in its own file.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_KEYS_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_KEYS_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json_value.h"
#include "base/key.h"
#include "container/reference.h"
#include "inject/request/request.h"

/* Of requests that are no mount of one kind. Each table is of one request: the programs of its rows are always 1. */
extern const struct key_table request_batch_keys;
extern const struct key_table request_remove_keys;
extern const struct key_table request_list_keys;

/*
 * request_key_take() - any key that the request may have. Strings are borrowed from the value.
 * Errors: OPERATION_PARSE, naming the key: unknown, or a value of the wrong sort.
 */
int request_key_take(struct request *request, const char *key, const json_t *value, struct error *error);

/* request_key_is_for() - whether the request may have this key. */
bool request_key_is_for(const struct request *request, const char *key);

/* request_key_take_as() - the same, of a key that has another name where it was written (OCI's "destination"). */
int request_key_take_as(struct request *request, const char *key, const char *name, const json_t *value,
                        struct error *error);

/* request_key_has() - whether the request has such a key, with the trait. */
bool request_key_has(const struct request *request, const char *key, unsigned trait);

/* request_key_given() - whether a key was there, whatever its value. */
bool request_key_given(const struct request *request, const char *key);

/* request_keys_check() - whether every key that the request needs was given. Errors: OPERATION_PARSE. */
int request_keys_check(const struct request *request, struct error *error);

/* ---- what rows are made of */

/* Traits of keys (base/key.h). */
#define REQUEST_OF_CALL (1U << 0) /* of the call, not of one mount: an entry of a batch has it not */
#define REQUEST_ONCE (1U << 1)    /* it is not said again when what is wanted is mounted again */

#define REQUEST_FIELD(field) .offset = offsetof(struct request, field)

/* Of struct key. */
int request_take_container(void *object, const char *key, const json_t *value, struct error *error);
int request_take_target(void *object, const char *key, const json_t *value, struct error *error);
int request_take_options(void *object, const char *key, const json_t *value, struct error *error);
int request_take_propagation(void *object, const char *key, const json_t *value, struct error *error);
int request_take_ids(void *object, const char *key, const json_t *value, struct error *error);
int request_take_fallback(void *object, const char *key, const json_t *value, struct error *error);
int request_take_cache(void *object, const char *key, const json_t *value, struct error *error);

/* request_set_target() - a target that another key names. Errors: OPERATION_PARSE. */
int request_set_target(struct request *request, const char *key, const char *path, struct error *error);

extern const char *const request_propagation_words[];

/* Every way to make owners right, in the order of enum request_ids. */
extern const char *const request_ids_words[];

/* What "fallback" may be: those of enum request_fallback that can be said. */
extern const char *const request_fallback_words[];

/*
 * request_fallback_differs() - whether "fallback" says otherwise than the preset of its row: then the request is another
 * one than that without the key.
 */
bool request_fallback_differs(const struct request *request);

#define REQUEST_CONTAINER_OBJECTS                                                                                      \
        "{\"pid\": N}, {\"id\": S, \"runtime\": S, \"user\": N}, {\"pod\": \"namespace/name\", \"container\": S}, "    \
        "{\"unit\": S} or {\"procDir\": S}"

/* REQUEST_KEY_TABLE(name, rows) - the table of a request: request.given has a bit for each row. */
#define REQUEST_KEY_TABLE(name, rows)                                                                                  \
        _Static_assert(sizeof(rows) / sizeof((rows)[0]) <= 64, "request.given has 64 bits");                           \
        const struct key_table name = KEY_TABLE(rows)

/* ---- rows that several tables have: { REQUEST_KEY_TARGET }. A table has its rows in the order of --help. */

#define REQUEST_KEY_CONTAINER(required)                                                                                \
        "container", 1, (required), KEY_OWN,                                                                           \
                .take = request_take_container, .schema = container_reference_schema,                                  \
                .members = &container_reference_members, .positional = 1, .spelling = SPELLED_MEMBERS,                 \
                .traits = REQUEST_ONCE,                                                                                \
                .help = "process id, container id or name, or an object: " REQUEST_CONTAINER_OBJECTS

#define REQUEST_KEY_TARGET                                                                                             \
        "target", 1, 1, KEY_PATH, .take = request_take_target, .positional = 1,                                        \
                                  .help = "absolute path as the container sees it; it is made if missing"

#define REQUEST_KEY_FS_TYPE                                                                                            \
        "fsType", 1, 0, KEY_STRING, .maximum = JSON_VALUE_ID_MAX, REQUEST_FIELD(fs_type),                              \
                                    .help = "ext4, xfs, btrfs, erofs, squashfs, ...; probed if absent"

#define REQUEST_KEY_READ_ONLY "readOnly", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(read_only), .help = "true: mount read-only"

#define REQUEST_KEY_RECURSIVE                                                                                          \
        "recursive", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(recursive), .help = "true: with the mounts below the source"

/* Of a clone, which has none of a filesystem's. */
#define REQUEST_KEY_OPTIONS                                                                                            \
        "options", 1, 0, KEY_OWN,                                                                                      \
                .take = request_take_options, .schema = request_schema_options, .spelling = SPELLED_COMMAS,            \
                .help = "mount options, \"noexec,noatime\" or an array; nosuid and nodev apply unless suid or dev is " \
                        "given"

#define REQUEST_KEY_FS_OPTIONS                                                                                         \
        "options", 1, 0, KEY_OWN,                                                                                      \
                .take = request_take_options, .schema = request_schema_options, .spelling = SPELLED_COMMAS,            \
                .help = "options of the mount and of the filesystem, a string with commas or an array; nosuid and "    \
                        "nodev apply unless suid or dev is given"

#define REQUEST_KEY_PROPAGATION                                                                                        \
        "propagation", 1, 0, KEY_WORD, .words = request_propagation_words, .take = request_take_propagation,           \
                                       .preset = "private", .help = "mount propagation (mount_namespaces(7))"

/*
 * can: the words for what the kind can do. Where there is nothing to map, as in a container without a user namespace,
 * every word is taken.
 */
#define REQUEST_KEY_IDS(can)                                                                                           \
        "ids", 1, 0, KEY_WORD, .words = (can), .take = request_take_ids, .preset = "auto",                             \
                               .help = "how file owners are mapped"

/* Of a kind whose "auto" can find that the kernel cannot map, and that remap-daemon may serve. usual: what it does then. */
#define REQUEST_KEY_FALLBACK(usual)                                                                                    \
        "fallback", 1, 0, KEY_WORD, .words = request_fallback_words, .take = request_take_fallback, .preset = (usual), \
                                    .help = "where the kernel cannot map owners, \"ids\": \"auto\" fails (none), "     \
                                            "or does what \"ids\": \"remap\" does"

/* Of a kind that remap-daemon may serve. */
#define REQUEST_KEY_CACHE                                                                                              \
        "cache", 1, 0, KEY_WORD, .words = remap_cache_words, .take = request_take_cache, .preset = "auto",             \
                                 .help = "always: with remap, only this container changes the files, so that "         \
                                         "what is known of them stays right"

#define REQUEST_KEY_LOCKED                                                                                             \
        "locked", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(locked),                                                            \
                .help = "true: root in the container cannot remove ro, nosuid, nodev and noexec by a remount"

#define REQUEST_KEY_MKDIR                                                                                              \
        "mkdir", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(mkdir), .preset = "true",                                            \
                                                          .help = "false: refuse a target that does not exist"

#define REQUEST_KEY_REPLACE_AS(text)                                                                                   \
        "replace", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(replace), .traits = REQUEST_ONCE, .help = (text)

#define REQUEST_KEY_REPLACE                                                                                            \
        REQUEST_KEY_REPLACE_AS("true: replace what flexgraft mounted there before, atomically where the kernel can")

#define REQUEST_KEY_ID                                                                                                 \
        "id", 1, 0, KEY_NAME, REQUEST_FIELD(id),                                                                       \
                .help = "a name for mount-list and mount-remove; derived from the target if absent"

#define REQUEST_KEY_PERSIST                                                                                            \
        "persist", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(persist),                                                          \
                .traits = REQUEST_ONCE,                                                                                \
                .help = "true: mount it again whenever the container is started again, until mount-remove; false: no " \
                        "more; what was said before holds if absent"

#define REQUEST_KEY_DRY_RUN                                                                                            \
        "dryRun", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(dry_run), .traits = REQUEST_OF_CALL | REQUEST_ONCE,                 \
                                                             .help = "true: change nothing, reply with the plan"

#define REQUEST_KEY_TIMEOUT                                                                                            \
        "timeoutSeconds", 1, 0, KEY_INTEGER, .minimum = 1, .maximum = 3600, REQUEST_FIELD(timeout_seconds),            \
                                             .traits = REQUEST_OF_CALL | REQUEST_ONCE, .preset = "30",                 \
                                             .help = "give up after so many seconds"

/* The last rows of every kind of mount. can: as above; replace: a row. */
#define REQUEST_KEYS_OF_MOUNT_REPLACING(can, ...)                                                                      \
        { REQUEST_KEY_PROPAGATION }, { REQUEST_KEY_IDS(can) }, { REQUEST_KEY_LOCKED }, { REQUEST_KEY_MKDIR },          \
                { __VA_ARGS__ }, { REQUEST_KEY_ID }, { REQUEST_KEY_PERSIST }, { REQUEST_KEY_DRY_RUN },                 \
        {                                                                                                              \
                REQUEST_KEY_TIMEOUT                                                                                    \
        }
#define REQUEST_KEYS_OF_MOUNT(can) REQUEST_KEYS_OF_MOUNT_REPLACING(can, REQUEST_KEY_REPLACE)

/* ---- the JSON Schemas of the keys whose values have a type of their own */

/* request_schema_string() - a string that matches a pattern. The caller owns the result, as that of the others. */
json_t *request_schema_string(const char *pattern);

/* Of struct key. */
json_t *request_schema_options(const struct key_table *table, unsigned programs);

/* ---- the JSON Schemas of requests whose entries may be of any kind: for programs that link all kinds */

/* batch_schema() - the request of mount-batch. The caller owns the result. */
json_t *batch_schema(const struct key_table *table, unsigned programs);

/* batch_schema_of_annotation() - what an annotation for mount-hook holds: one entry, or an array of them. */
json_t *batch_schema_of_annotation(const struct key_table *table, unsigned programs);

#endif
