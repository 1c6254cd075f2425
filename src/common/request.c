/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <unistd.h>

#include "container_id.h"
#include "file.h"
#include "text.h"

#define TEXT_MAX_BYTES ((size_t)1024 * 1024)
#define DEPTH_MAX 8
#define STRING_MAX_BYTES 4095
#define ID_MAX_BYTES 128
#define TIMEOUT_DEFAULT_S 30
#define TIMEOUT_MAX_S 3600

static const char *const ids_words[] = { "auto", "idmapped", "userns", "remap", "host" };

static int refuse(struct error *error, const char *key, const char *complaint)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: %s", key, complaint);
}

/* A string value, whole and not too long; empty ones mean nothing anywhere. */
static int take_string(const char *key, const json_t *value, size_t maximum, const char **ret_string,
                       struct error *error)
{
        if (!json_is_string(value))
                return refuse(error, key, "must be a string");
        if (strlen(json_string_value(value)) != json_string_length(value))
                return refuse(error, key, "holds a NUL byte");
        if (json_string_length(value) > maximum)
                return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: longer than %zu bytes", key, maximum);
        if (json_string_length(value) == 0)
                return refuse(error, key, "must not be empty");
        *ret_string = json_string_value(value);
        return 0;
}

/* An id becomes a file's name, of ours or of a container runtime's. */
static int take_id(const char *key, const json_t *value, const char **ret_id, struct error *error)
{
        int r = take_string(key, value, ID_MAX_BYTES, ret_id, error);

        if (r == 0 && ((*ret_id)[0] == '.' || strspn(*ret_id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                              "0123456789_.+:@-") != strlen(*ret_id)))
                return refuse(error, key, "may hold letters, digits and _.+:@- and not begin with a dot");
        return r;
}

static int take_pid(const char *key, const json_t *value, pid_t *ret_pid, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT_MAX)
                return refuse(error, key, "must be a process id, a whole number above 0");
        *ret_pid = (pid_t)json_integer_value(value);
        return 0;
}

static int take_proc_dir(const char *key, const json_t *value, const char **ret_path, struct error *error)
{
        int r = take_string(key, value, STRING_MAX_BYTES, ret_path, error);

        if (r == 0 && (*ret_path)[0] != '/')
                return refuse(error, key, "must be an absolute path");
        return r;
}

static int take_container_object(const char *key, const json_t *value, struct container_reference *ret_reference,
                                 struct error *error)
{
        const char *member;
        json_t *part;
        int ways;
        int r = 0;

        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "pid") == 0)
                        r = take_pid(path, part, &ret_reference->pid, error);
                else if (strcmp(member, "id") == 0)
                        r = take_id(path, part, &ret_reference->id, error);
                else if (strcmp(member, "procDir") == 0)
                        r = take_proc_dir(path, part, &ret_reference->proc_dir, error);
                else if (strcmp(member, "runtime") == 0) {
                        r = take_string(path, part, ID_MAX_BYTES, &ret_reference->runtime, error);
                        if (r == 0 && !container_id_runtime_known(ret_reference->runtime))
                                return fail_because(error, EINVAL, OPERATION_PARSE, path, "%s: must be one of %s", path,
                                                    container_id_runtimes());
                } else
                        return fail_because(error, EINVAL, OPERATION_PARSE, path, "unknown key \"%s\"", path);
                if (r < 0)
                        return r;
        }
        ways = (ret_reference->pid != 0) + (ret_reference->id != NULL) + (ret_reference->proc_dir != NULL);
        if (ways != 1)
                return refuse(error, key, "must have one of \"pid\", \"id\" and \"procDir\"");
        if (ret_reference->runtime != NULL && ret_reference->id == NULL)
                return refuse(error, key, "has a \"runtime\" without an \"id\"");
        return 0;
}

static int take_reference(const char *key, const json_t *value, struct container_reference *ret_reference,
                          struct error *error)
{
        if (json_is_integer(value))
                return take_pid(key, value, &ret_reference->pid, error);
        if (json_is_string(value))
                return take_id(key, value, &ret_reference->id, error);
        if (json_is_object(value))
                return take_container_object(key, value, ret_reference, error);
        return refuse(error, key, "must be a process id, a container's id, or an object with one of them");
}

static int take_container(struct request *request, const char *key, const json_t *value, struct error *error)
{
        request->has_container = true;
        return take_reference(key, value, &request->container, error);
}

static int set_target(struct request *request, const char *key, const char *path, struct error *error)
{
        int r = text_path_normal(path, request->target);

        if (r == -EINVAL)
                return refuse(error, key, "must be an absolute path, as the container sees it");
        if (r < 0)
                return refuse(error, key, "a component is longer than 255 bytes");
        if (strcmp(request->target, "/") == 0)
                return refuse(error, key, "the container's root itself cannot be a target");
        return 0;
}

/* {"container":..., "path":...}: one side of container-to-container. */
static int take_side(const char *key, const json_t *value, const char **ret_path,
                     struct container_reference *ret_container, bool *ret_has, struct error *error)
{
        const char *member;
        json_t *part;
        int r = 0;

        if (!json_is_object(value))
                return refuse(error, key, "must be an object, {\"container\": ..., \"path\": ...}");
        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "container") == 0) {
                        *ret_has = true;
                        r = take_reference(path, part, ret_container, error);
                } else if (strcmp(member, "path") == 0)
                        r = take_string(path, part, STRING_MAX_BYTES, ret_path, error);
                else
                        return fail_because(error, EINVAL, OPERATION_PARSE, path, "unknown key \"%s\"", path);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_from(struct request *request, const char *key, const json_t *value, struct error *error)
{
        bool has_container = false;
        int r = take_side(key, value, &request->source, &request->from, &has_container, error);

        if (r == 0 && !has_container)
                return refuse(error, key, "has no \"container\"");
        if (r == 0 && request->source == NULL)
                return refuse(error, key, "has no \"path\"");
        if (r == 0 && request->source[0] != '/')
                return refuse(error, key, "\"path\" must be absolute, as the container sees it");
        return r;
}

static int take_to(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *path = NULL;
        int r = take_side(key, value, &path, &request->container, &request->has_container, error);

        if (r == 0 && path == NULL)
                return refuse(error, key, "has no \"path\"");
        return r < 0 ? r : set_target(request, key, path, error);
}

static int take_source(struct request *request, const char *key, const json_t *value, struct error *error)
{
        int r = take_string(key, value, STRING_MAX_BYTES, &request->source, error);

        if (r == 0 && request->kind == REQUEST_MOUNT_BIND && request->source[0] != '/')
                return refuse(error, key, "must be an absolute path of the node");
        if (r == 0 && request->kind == REQUEST_MOUNT_BLOCK && request->source[0] != '/' &&
            strchr(request->source, '=') == NULL)
                return refuse(error, key, "must be a device's absolute path, UUID=... or LABEL=...");
        return r;
}

static int take_target(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *path;
        int r = take_string(key, value, STRING_MAX_BYTES, &path, error);

        return r < 0 ? r : set_target(request, key, path, error);
}

static int take_options(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *text;
        const json_t *option;
        size_t i;
        int r;

        if (json_is_string(value)) {
                if (json_string_length(value) == 0)
                        return 0;
                r = take_string(key, value, STRING_MAX_BYTES, &text, error);
                return r < 0 ? r : mount_options_add_list(&request->options, text, error);
        }
        if (!json_is_array(value))
                return refuse(error, key, "must be a string or an array of strings");
        json_array_foreach (value, i, option)
                if ((r = take_string(key, option, STRING_MAX_BYTES, &text, error)) < 0 ||
                    (r = mount_options_add(&request->options, text, error)) < 0)
                        return r;
        return 0;
}

static int take_propagation(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *word;
        int r = take_string(key, value, STRING_MAX_BYTES, &word, error);

        if (r < 0)
                return r;
        request->options.propagation = mount_options_propagation(word);
        if (request->options.propagation == 0 || word[0] == 'r')
                return refuse(error, key, "must be private, slave, shared or unbindable");
        return 0;
}

static int take_ids(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *word;
        int r = take_string(key, value, STRING_MAX_BYTES, &word, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof ids_words / sizeof ids_words[0]; i++)
                if (strcmp(word, ids_words[i]) == 0) {
                        request->ids = (enum request_ids)i;
                        return 0;
                }
        return refuse(error, key, "must be auto, idmapped, userns, remap or host");
}

static int take_fs_type(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_string(key, value, ID_MAX_BYTES, &request->fs_type, error);
}

static int take_record_id(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_id(key, value, &request->id, error);
}

static int take_timeout(struct request *request, const char *key, const json_t *value, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > TIMEOUT_MAX_S)
                return refuse(error, key, "must be a whole number of seconds, from 1 to 3600");
        request->timeout_seconds = (int)json_integer_value(value);
        return 0;
}

/*
 * A size in bytes: a number, or one with k, m, g or t behind it (1024 and its powers, as tmpfs(5) has it; Ki, Mi, Gi
 * and Ti are the same), or with percent a share of the machine's memory. ret_text is what the kernel takes.
 */
static int take_size(const char *key, const json_t *value, bool percent, char *ret_text, size_t size,
                     struct error *error)
{
        static const char suffixes[] = "kmgt";
        const char *text;
        const char *rest;
        const char *suffix;
        char digits[24];
        uint64_t number;
        unsigned shift = 0;
        int r;

        if (json_is_integer(value)) {
                if (json_integer_value(value) < 1)
                        return refuse(error, key, "must be above 0");
                (void)snprintf(ret_text, size, "%lld", (long long)json_integer_value(value));
                return 0;
        }
        if ((r = take_string(key, value, sizeof digits - 1, &text, error)) < 0)
                return r;
        rest = text + strspn(text, "0123456789");
        (void)snprintf(digits, sizeof digits, "%.*s", (int)(rest - text), text);
        if (!text_number(digits, INT64_MAX, &number) || number == 0)
                return refuse(error, key, "must be a number above 0, as 1048576, \"64m\" or \"64Mi\"");
        if (percent && strcmp(rest, "%") == 0 && number <= 100) {
                (void)snprintf(ret_text, size, "%s%%", digits);
                return 0;
        }
        if (rest[0] != '\0') {
                suffix = strchr(suffixes, rest[0] | 0x20);
                if (suffix == NULL || *suffix == '\0' || (rest[1] != '\0' && strcmp(rest + 1, "i") != 0))
                        return refuse(error, key, "must end in k, m, g or t, or in nothing");
                shift = 10U * (unsigned)(suffix - suffixes + 1);
        }
        if (number > (uint64_t)INT64_MAX >> shift)
                return refuse(error, key, "is too large");
        (void)snprintf(ret_text, size, "%llu", (unsigned long long)(number << shift));
        return 0;
}

/* What the request says as a key of its own is an option of the filesystem's in the end. */
static int add_fs_option(struct request *request, const char *name, const char *value, struct error *error)
{
        char option[64];

        (void)snprintf(option, sizeof option, "%s=%s", name, value);
        return mount_options_add(&request->options, option, error);
}

static int take_fs_size(struct request *request, const char *key, const json_t *value, struct error *error)
{
        char text[32];
        int r = take_size(key, value, /* percent= */ true, text, sizeof text, error);

        return r < 0 ? r : add_fs_option(request, "size", text, error);
}

static int take_inodes(struct request *request, const char *key, const json_t *value, struct error *error)
{
        char text[32];
        int r = take_size(key, value, /* percent= */ false, text, sizeof text, error);

        return r < 0 ? r : add_fs_option(request, "nr_inodes", text, error);
}

static int take_mode(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *text;

        if (!json_is_string(value)) /* 755 and 0755 would be other numbers than they look */
                return refuse(error, key, "must be a string of octal digits, as \"0755\" or \"1777\"");
        if (take_string(key, value, 5, &text, error) < 0 || strspn(text, "01234567") != strlen(text) ||
            strtoul(text, NULL, 8) > 07777)
                return refuse(error, key, "must be at most four octal digits, as \"0755\" or \"1777\"");
        return add_fs_option(request, "mode", text, error);
}

static int take_owner(const char *key, const json_t *value, uint32_t *ret_id, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= UINT32_MAX)
                return refuse(error, key, "must be an id, as the container counts them");
        *ret_id = (uint32_t)json_integer_value(value);
        return 0;
}

static int take_uid(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_owner(key, value, &request->uid, error);
}

static int take_gid(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_owner(key, value, &request->gid, error);
}

static int take_layer(const char *key, const json_t *value, const char **ret_path, struct error *error)
{
        int r = take_string(key, value, STRING_MAX_BYTES, ret_path, error);

        if (r == 0 && (*ret_path)[0] != '/')
                return refuse(error, key, "must be an absolute path of the node");
        return r;
}

static int take_lower(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const json_t *layer;
        size_t i;
        int r;

        if (json_is_string(value)) {
                request->lower_count = 1;
                return take_layer(key, value, &request->lower[0], error);
        }
        if (!json_is_array(value) || json_array_size(value) == 0)
                return refuse(error, key, "must be a directory of the node or an array of them, the topmost first");
        if (json_array_size(value) > REQUEST_LAYERS_MAX)
                return refuse(error, key, "has more than 64 layers");
        json_array_foreach (value, i, layer)
                if ((r = take_layer(key, layer, &request->lower[i], error)) < 0)
                        return r;
        request->lower_count = json_array_size(value);
        return 0;
}

static int take_upper(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_layer(key, value, &request->upper, error);
}

static int take_work(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_layer(key, value, &request->work, error);
}

static int take_mounts(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return request_parse_mounts(request, key, value, error);
}

#define FROM_NODE (REQUEST_MOUNT_BIND | REQUEST_MOUNT_BLOCK)
#define MOUNTS (FROM_NODE | REQUEST_MOUNT_CONTAINER | REQUEST_MOUNT_TMPFS | REQUEST_MOUNT_OVERLAY)
#define IN_CONTAINER (FROM_NODE | REQUEST_MOUNT_TMPFS | REQUEST_MOUNT_OVERLAY) /* "container" and "target" */

/* Every key, the requests it belongs to, and either who takes it or which flag it sets. */
static const struct {
        const char *key;
        unsigned kinds;
        int (*take)(struct request *request, const char *key, const json_t *value, struct error *error);
        size_t flag;
} keys[] = {
        { "container", IN_CONTAINER | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST | REQUEST_MOUNT_BATCH, take_container,
          0 },
        { "source", FROM_NODE, take_source, 0 },
        { "target", IN_CONTAINER | REQUEST_MOUNT_REMOVE, take_target, 0 },
        { "from", REQUEST_MOUNT_CONTAINER, take_from, 0 },
        { "to", REQUEST_MOUNT_CONTAINER, take_to, 0 },
        { "id", MOUNTS | REQUEST_MOUNT_REMOVE, take_record_id, 0 },
        { "fsType", REQUEST_MOUNT_BLOCK, take_fs_type, 0 },
        { "size", REQUEST_MOUNT_TMPFS, take_fs_size, 0 },
        { "inodes", REQUEST_MOUNT_TMPFS, take_inodes, 0 },
        { "mode", REQUEST_MOUNT_TMPFS, take_mode, 0 },
        { "uid", REQUEST_MOUNT_TMPFS, take_uid, 0 },
        { "gid", REQUEST_MOUNT_TMPFS, take_gid, 0 },
        { "lower", REQUEST_MOUNT_OVERLAY, take_lower, 0 },
        { "upper", REQUEST_MOUNT_OVERLAY, take_upper, 0 },
        { "work", REQUEST_MOUNT_OVERLAY, take_work, 0 },
        { "options", MOUNTS, take_options, 0 },
        { "propagation", MOUNTS, take_propagation, 0 },
        { "ids", MOUNTS, take_ids, 0 },
        { "timeoutSeconds", MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST | REQUEST_MOUNT_BATCH, take_timeout, 0 },
        { "mounts", REQUEST_MOUNT_BATCH, take_mounts, 0 },
        { "replace", MOUNTS | REQUEST_MOUNT_BATCH, NULL, offsetof(struct request, replace) },
        { "readOnly", MOUNTS, NULL, offsetof(struct request, read_only) },
        { "recursive", REQUEST_MOUNT_BIND | REQUEST_MOUNT_CONTAINER, NULL, offsetof(struct request, recursive) },
        { "mkdir", MOUNTS, NULL, offsetof(struct request, mkdir) },
        { "mkdirSource", REQUEST_MOUNT_CONTAINER, NULL, offsetof(struct request, mkdir_source) },
        { "locked", MOUNTS, NULL, offsetof(struct request, locked) },
        { "raw", REQUEST_MOUNT_BLOCK, NULL, offsetof(struct request, raw) },
        { "dryRun", MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_BATCH, NULL, offsetof(struct request, dry_run) },
        { "force", REQUEST_MOUNT_REMOVE, NULL, offsetof(struct request, force) },
};

static int take_member(struct request *request, const char *key, const json_t *value, struct error *error)
{
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                if (strcmp(key, keys[i].key) != 0 || (keys[i].kinds & request->kind) == 0)
                        continue;
                if (keys[i].take != NULL)
                        return keys[i].take(request, key, value, error);
                if (!json_is_boolean(value))
                        return refuse(error, key, "must be true or false");
                *(bool *)((char *)request + keys[i].flag) = json_is_true(value);
                return 0;
        }
        return fail_because(error, EINVAL, OPERATION_PARSE, key, "unknown key \"%.128s\"", key);
}

/* What an entry of a batch calls the sorts of mounts. */
static const struct {
        const char *word;
        enum request_kind kind;
} kind_words[] = {
        { "bind", REQUEST_MOUNT_BIND },
        { "block", REQUEST_MOUNT_BLOCK },
        { "container-to-container", REQUEST_MOUNT_CONTAINER },
        { "tmpfs", REQUEST_MOUNT_TMPFS },
        { "overlay", REQUEST_MOUNT_OVERLAY },
};

const char *request_kind_word(enum request_kind kind)
{
        for (size_t i = 0; i < sizeof kind_words / sizeof kind_words[0]; i++)
                if (kind_words[i].kind == kind)
                        return kind_words[i].word;
        return "";
}

static int fail_entry(size_t index, int r, struct error *error)
{
        char reason[sizeof error->reason];

        (void)text_copy(reason, sizeof reason, error->reason);
        (void)snprintf(error->reason, sizeof error->reason, "mounts[%zu]: %.400s", index, reason);
        return r;
}

static bool has_option(const json_t *options, const char *name)
{
        const json_t *option;
        size_t i;

        json_array_foreach (options, i, option)
                if (json_is_string(option) && strcmp(json_string_value(option), name) == 0)
                        return true;
        return false;
}

/* The sort of mount that an entry of an OCI "mounts" array means: what crun and runc would do with it. */
static int oci_kind(struct request *entry, const json_t *value, struct error *error)
{
        const char *type = json_string_value(json_object_get(value, "type"));
        const char *source = json_string_value(json_object_get(value, "source"));
        const json_t *options = json_object_get(value, "options");

        if (has_option(options, "bind") || has_option(options, "rbind") || (type != NULL && strcmp(type, "bind") == 0))
                entry->kind = REQUEST_MOUNT_BIND;
        else if (type != NULL && strcmp(type, "tmpfs") == 0)
                entry->kind = REQUEST_MOUNT_TMPFS;
        else if (type != NULL && strcmp(type, "overlay") == 0)
                entry->kind = REQUEST_MOUNT_OVERLAY;
        else if (type != NULL && source != NULL && (source[0] == '/' || strchr(source, '=') != NULL)) {
                entry->kind = REQUEST_MOUNT_BLOCK;
                entry->fs_type = type;
        } else
                return fail_because(error, EINVAL, OPERATION_PARSE, "type",
                                    "type: \"%.64s\" cannot be put into a container that is made already",
                                    type != NULL ? type : "");
        return 0;
}

/* An entry as in an OCI bundle's config.json: destination, type, source, options. */
static int parse_oci_entry(struct request *entry, const json_t *value, struct error *error)
{
        const char *key;
        json_t *part;
        int r = oci_kind(entry, value, error);

        json_object_foreach ((json_t *)value, key, part) {
                if (r < 0)
                        return r;
                if (strcmp(key, "destination") == 0)
                        r = take_target(entry, key, part, error);
                else if (strcmp(key, "source") == 0 && (entry->kind & FROM_NODE) != 0)
                        r = take_source(entry, key, part, error);
                else if (strcmp(key, "options") == 0)
                        r = take_options(entry, key, part, error);
                else if (strcmp(key, "source") != 0 && strcmp(key, "type") != 0)
                        return fail_because(error, EINVAL, OPERATION_PARSE, key, "unknown key \"%.128s\"", key);
        }
        return r;
}

static int parse_entry(struct request *entry, const json_t *value, struct error *error)
{
        const char *word = json_string_value(json_object_get(value, "type"));
        enum request_kind kind = 0;
        const char *key;
        json_t *part;
        int r = 0;

        if (!json_is_object(value))
                return refuse(error, "mounts", "must be an array of objects");
        if (json_object_get(value, "destination") != NULL)
                return parse_oci_entry(entry, value, error);
        for (size_t i = 0; word != NULL && i < sizeof kind_words / sizeof kind_words[0]; i++)
                if (strcmp(word, kind_words[i].word) == 0)
                        kind = kind_words[i].kind;
        if (kind == 0)
                return refuse(error, "type", "must be bind, block, container-to-container, tmpfs or overlay");
        entry->kind = kind;
        json_object_foreach ((json_t *)value, key, part) {
                if (strcmp(key, "type") == 0)
                        continue;
                if (strcmp(key, "timeoutSeconds") == 0 || strcmp(key, "dryRun") == 0)
                        return refuse(error, key, "is said once, for the whole batch");
                if ((r = take_member(entry, key, part, error)) < 0)
                        return r;
        }
        return 0;
}

int request_parse_mounts(struct request *request, const char *key, const void *json, struct error *error)
{
        const json_t *value = json;
        size_t count = json_is_array(value) ? json_array_size(value) : 1;
        struct request *entries;

        if (!json_is_array(value) && !json_is_object(value))
                return refuse(error, key, "must be an array of mounts");
        if (count > REQUEST_ENTRIES_MAX - request->entry_count)
                return fail_because(error, EINVAL, OPERATION_PARSE, key, "%.200s: more than %d mounts", key,
                                    REQUEST_ENTRIES_MAX);
        entries = reallocarray(request->entries, request->entry_count + count + 1, sizeof *entries);
        if (entries == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, key);
        request->entries = entries;
        for (size_t i = 0; i < count; i++) {
                struct request *entry = &entries[request->entry_count++];
                int r;

                request_begin(entry, 0);
                r = parse_entry(entry, json_is_array(value) ? json_array_get(value, i) : value, error);
                if (r < 0)
                        return fail_entry(i, r, error);
        }
        return 0;
}

/* What the options of a layer are for those who know them from fstab, the keys say: taken out of the options. */
static int take_layer_option(struct request *request, char *option, bool *ret_taken, struct error *error)
{
        char *value = strchr(option, '=');

        *ret_taken = true;
        if (value != NULL && text_starts(option, "upperdir="))
                request->upper = value + 1;
        else if (value != NULL && text_starts(option, "workdir="))
                request->work = value + 1;
        else if (value != NULL && text_starts(option, "lowerdir=")) {
                char *out = value + 1;

                request->lower_count = 0;
                request->lower[request->lower_count++] = out;
                for (const char *in = value + 1; *in != '\0'; in++) {
                        if (in[0] == '\\' && in[1] != '\0')
                                *out++ = *++in;
                        else if (in[0] == ':') {
                                if (request->lower_count == REQUEST_LAYERS_MAX)
                                        return refuse(error, "options", "has more than 64 layers");
                                *out++ = '\0';
                                request->lower[request->lower_count++] = out;
                        } else
                                *out++ = *in;
                }
                *out = '\0';
        } else if (text_starts(option, "lowerdir+") || text_starts(option, "datadir+"))
                return refuse(error, "options", "layers are given as \"lower\"");
        else
                *ret_taken = false;
        return 0;
}

static int check_overlay(struct request *request, struct error *error)
{
        int r;

        for (size_t i = 0; i < request->options.fs_count; i++) {
                bool taken;

                if ((r = take_layer_option(request, request->options.fs_options[i], &taken, error)) < 0)
                        return r;
                if (taken) /* the layers are looked up by us; the option stays where it is, for its memory */
                        request->options.fs_options[i][0] = '\0';
        }
        if (request->lower_count == 0)
                return refuse(error, "lower", "is missing");
        for (size_t i = 0; i < request->lower_count; i++)
                if (request->lower[i][0] != '/')
                        return refuse(error, "lower", "must be absolute paths of the node");
        if (request->upper == NULL && request->lower_count < 2)
                return refuse(error, "lower",
                              "one layer without an \"upper\" is no overlay; mount-bind mounts it read-only");
        if ((request->upper == NULL) != (request->work == NULL))
                return refuse(error, request->upper == NULL ? "upper" : "work", "is missing: they go together");
        if (request->upper != NULL && (request->upper[0] != '/' || request->work[0] != '/'))
                return refuse(error, "upper", "and \"work\" must be absolute paths of the node");
        return 0;
}

/* uid= and gid= among the options are the container's ids, too: as they are where it was made. */
static int check_tmpfs(struct request *request, struct error *error)
{
        for (size_t i = 0; i < request->options.fs_count; i++) {
                char *option = request->options.fs_options[i];
                uint32_t *id = text_starts(option, "uid=")   ? &request->uid
                               : text_starts(option, "gid=") ? &request->gid
                                                             : NULL;
                uint64_t number;

                if (id == NULL)
                        continue;
                if (!text_number(option + 4, UINT32_MAX - 1, &number))
                        return refuse(error, "options", "uid and gid must be ids, as the container counts them");
                if (*id == REQUEST_ID_NONE)
                        *id = (uint32_t)number;
                option[0] = '\0';
        }
        return 0;
}

static int check_block(const struct request *request, struct error *error)
{
        if (request->options.recursive)
                return refuse(error, "options", "\"rbind\" is for mount-bind");
        if (!request->raw)
                return 0;
        if (request->fs_type != NULL)
                return refuse(error, "fsType", "a raw device is not mounted as a filesystem");
        if (request->options.fs_count > 0)
                return refuse(error, "options", "a raw device has no options of a filesystem");
        if ((request->options.attr_set & MOUNT_ATTR_NODEV) != 0)
                return refuse(error, "options", "\"nodev\" would make a raw device useless");
        if (request->ids != IDS_AUTO)
                return refuse(error, "ids", "a raw device has nothing to map: it belongs to the container's root");
        return 0;
}

/* What can be said only once every key is known. Also fills in what follows from them. */
static int finish_mount(struct request *request, struct error *error)
{
        bool sides = request->kind == REQUEST_MOUNT_CONTAINER;
        int r = 0;

        if (sides && request->source == NULL)
                return refuse(error, "from", "is missing");
        if (!request->has_container)
                return refuse(error, sides ? "to" : "container", sides ? "has no \"container\"" : "is missing");
        if ((request->kind & FROM_NODE) != 0 && request->source == NULL)
                return refuse(error, "source", "is missing");
        if (request->target[0] == '\0')
                return refuse(error, sides ? "to" : "target", "is missing");
        switch (request->kind) {
        case REQUEST_MOUNT_BIND:
        case REQUEST_MOUNT_CONTAINER:
                if (request->options.fs_count > 0)
                        return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                            "options: \"%.*s\" is an option of a filesystem, and a bind mounts none",
                                            (int)strcspn(request->options.fs_options[0], "="),
                                            request->options.fs_options[0]);
                break;
        case REQUEST_MOUNT_BLOCK:
                r = check_block(request, error);
                break;
        case REQUEST_MOUNT_TMPFS:
                request->source = "tmpfs";
                r = check_tmpfs(request, error);
                break;
        case REQUEST_MOUNT_OVERLAY:
                request->source = "overlay";
                r = check_overlay(request, error);
                break;
        default:
                break;
        }
        if (r == 0 && request->options.recursive &&
            (request->kind & (REQUEST_MOUNT_TMPFS | REQUEST_MOUNT_OVERLAY)) != 0)
                return refuse(error, "options", "\"rbind\" is for mount-bind");
        if (r == 0 && request->read_only)
                r = mount_options_add(&request->options, "ro", error);
        request->read_only = request->options.read_only;
        request->recursive = request->recursive || request->options.recursive;
        if (request->raw)
                request->options.attr_clear |= MOUNT_ATTR_NODEV;
        mount_options_default(&request->options);
        return r;
}

/* Parents before children: a stable sort by the number of components. */
static void sort_entries(struct request *request)
{
        for (size_t i = 0; i < request->entry_count; i++)
                request->entries[i].index = i;
        for (size_t i = 1; i < request->entry_count; i++) {
                struct request entry = request->entries[i];
                size_t depth = text_count(entry.target, '/');
                size_t j = i;

                for (; j > 0 && text_count(request->entries[j - 1].target, '/') > depth; j--)
                        request->entries[j] = request->entries[j - 1];
                request->entries[j] = entry;
        }
}

/* What the entries of a batch take from it, and what they may not have in common. */
static int finish_batch(struct request *request, struct error *error)
{
        if (request->entry_count == 0)
                return refuse(error, "mounts", "is missing");
        for (size_t i = 0; i < request->entry_count; i++) {
                struct request *entry = &request->entries[i];
                int r;

                if (!entry->has_container && request->has_container) {
                        entry->container = request->container;
                        entry->has_container = true;
                }
                entry->replace = entry->replace || request->replace;
                entry->dry_run = request->dry_run;
                entry->timeout_seconds = request->timeout_seconds;
                if ((r = finish_mount(entry, error)) < 0)
                        return fail_entry(i, r, error);
                for (size_t j = 0; j < i; j++)
                        if (container_same_reference(&entry->container, &request->entries[j].container) &&
                            strcmp(entry->target, request->entries[j].target) == 0)
                                return fail_because(error, EINVAL, OPERATION_PARSE, "mounts",
                                                    "mounts[%zu]: %s is the target of mounts[%zu], too", i,
                                                    entry->target, j);
        }
        sort_entries(request);
        return 0;
}

int request_finish(struct request *request, struct error *error)
{
        if (request->kind == REQUEST_MOUNT_BATCH)
                return finish_batch(request, error);
        if ((request->kind & MOUNTS) != 0)
                return finish_mount(request, error);
        if (request->kind == REQUEST_MOUNT_REMOVE && request->id == NULL &&
            (!request->has_container || request->target[0] == '\0'))
                return refuse(error, "id", "is missing (or \"container\" and \"target\")");
        if (request->kind == REQUEST_MOUNT_REMOVE && request->id != NULL &&
            (request->has_container || request->target[0] != '\0'))
                return refuse(error, "id", "is enough: \"container\" and \"target\" belong to the other way to say it");
        return 0;
}

/*
 * One look over the text before it is parsed: how deep it nests, and which key comes last before a byte. A key is a
 * string followed by a colon. ret_key holds 129 bytes; "" before the first key.
 */
static bool scan(const char *text, size_t length, size_t until, char *ret_key)
{
        const char *string = NULL; /* the start of the last string seen */
        size_t string_length = 0;
        unsigned depth = 0;

        ret_key[0] = '\0';
        for (size_t i = 0; i < length && i < until; i++) {
                if (text[i] == '"') {
                        size_t start = i + 1;

                        for (i++; i < length && text[i] != '"'; i++)
                                if (text[i] == '\\')
                                        i++;
                        string = text + start;
                        string_length = (i < length ? i : length) - start;
                } else if (text[i] == ':' && string != NULL)
                        (void)snprintf(ret_key, 129, "%.*s", string_length > 128 ? 128 : (int)string_length, string);
                else if (text[i] == '{' || text[i] == '[') {
                        if (++depth > DEPTH_MAX)
                                return false;
                } else if (text[i] == '}' || text[i] == ']')
                        depth -= depth > 0 ? 1 : 0;
        }
        return true;
}

/* jansson's complaint, with the key it happened at, in words that are safe to print whatever the input was. */
static int fail_parse(const char *text, size_t length, const json_error_t *parse, struct error *error)
{
        char key[129];
        const char *quoted;

        (void)scan(text, length, parse->position > 0 ? (size_t)parse->position : 0, key);
        if (json_error_code(parse) == json_error_duplicate_key && (quoted = strchr(parse->text, '"')) != NULL) {
                /* the key as it was written, escapes and all */
                json_t *name = json_loads(quoted, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
                int r = refuse(error, json_is_string(name) ? json_string_value(name) : key, "is given twice");

                json_decref(name);
                return r;
        }
        for (char *byte = key; *byte != '\0'; byte++)
                if ((unsigned char)*byte < ' ' || (unsigned char)*byte > '~')
                        *byte = '?';
        return fail_because(error, EINVAL, OPERATION_PARSE, key[0] != '\0' ? key : "the request",
                            "%s%sline %d, column %d: %.*s", key, key[0] != '\0' ? ": " : "", parse->line, parse->column,
                            (int)strcspn(parse->text, "'"), parse->text);
}

static int parse_text(struct request *request, const char *text, size_t length, struct error *error)
{
        json_error_t parse;
        char name[129];
        const char *key;
        json_t *value;
        uint32_t seed = 0;

        if (!scan(text, length, length, name))
                return fail_because(error, EINVAL, OPERATION_PARSE, name[0] != '\0' ? name : "the request",
                                    "%s%snested deeper than %d levels", name, name[0] != '\0' ? ": " : "", DEPTH_MAX);
        /* jansson would open /dev/urandom for it; unpredictable, since a request may come from a container's owner */
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
                json_object_seed(seed | 1); /* 0 would mean: find one yourself */
        request->json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &parse);
        if (request->json == NULL)
                return fail_parse(text, length, &parse, error);
        if (!json_is_object((json_t *)request->json))
                return refuse(error, "the request", "must be a JSON object");
        json_object_foreach ((json_t *)request->json, key, value) {
                int r = take_member(request, key, value, error);

                if (r < 0)
                        return r;
        }
        return request_finish(request, error);
}

static int parse_stdin(struct request *request, struct error *error)
{
        char *text = malloc(TEXT_MAX_BYTES + 1);
        ssize_t n;
        int r;

        if (text == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "standard input");
        n = file_read_fd(STDIN_FILENO, text, TEXT_MAX_BYTES + 1);
        if (n == -EFBIG) {
                char key[129];

                (void)scan(text, TEXT_MAX_BYTES, TEXT_MAX_BYTES, key); /* the key it was still reading */
                r = refuse(error, key[0] != '\0' ? key : "the request", "the request is longer than 1 MiB");
        } else if (n < 0)
                r = fail(error, (int)-n, OPERATION_PARSE, "standard input");
        else
                r = parse_text(request, text, (size_t)n, error);
        free(text);
        return r;
}

void request_begin(struct request *ret_request, enum request_kind kind)
{
        *ret_request = (struct request){ .kind = kind,
                                         .mkdir = true,
                                         .timeout_seconds = TIMEOUT_DEFAULT_S,
                                         .uid = REQUEST_ID_NONE,
                                         .gid = REQUEST_ID_NONE };
}

int request_parse(struct request *ret_request, enum request_kind kind, int argc, char **argv, struct error *error)
{
        request_begin(ret_request, kind);
        if (argc != 2)
                return refuse(error, "the request", "one argument is needed: a JSON object, or - for standard input");
        if (strcmp(argv[1], "-") == 0)
                return parse_stdin(ret_request, error);
        return parse_text(ret_request, argv[1], strlen(argv[1]), error);
}

void request_release(struct request *request)
{
        for (size_t i = 0; i < request->entry_count; i++)
                mount_options_release(&request->entries[i].options);
        free(request->entries);
        request->entries = NULL;
        request->entry_count = 0;
        json_decref(request->json);
        request->json = NULL;
        mount_options_release(&request->options);
}
