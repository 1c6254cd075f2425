/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request_keys.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/json_value.h"
#include "base/text.h"
#include "container/reference.h"

#define TIMEOUT_MAX_S 3600

static const char *const ids_words[] = { "auto", "idmapped", "userns", "remap", "host" };

static int take_container(struct request *request, const char *key, const json_t *value, struct error *error)
{
        request->has_container = true;
        return container_reference_take(key, value, &request->container, error);
}

static int set_target(struct request *request, const char *key, const char *path, struct error *error)
{
        int r = text_path_normal(path, request->target);

        if (r == -EINVAL)
                return json_value_refuse(error, key, "must be an absolute path, as the container sees it");
        if (r < 0)
                return json_value_refuse(error, key, "a component is longer than 255 bytes");
        if (strcmp(request->target, "/") == 0)
                return json_value_refuse(error, key, "the container's root itself cannot be a target");
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
                return json_value_refuse(error, key, "must be an object, {\"container\": ..., \"path\": ...}");
        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "container") == 0) {
                        *ret_has = true;
                        r = container_reference_take(path, part, ret_container, error);
                } else if (strcmp(member, "path") == 0)
                        r = json_value_string(path, part, JSON_VALUE_STRING_MAX, ret_path, error);
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
                return json_value_refuse(error, key, "has no \"container\"");
        if (r == 0 && request->source == NULL)
                return json_value_refuse(error, key, "has no \"path\"");
        if (r == 0 && request->source[0] != '/')
                return json_value_refuse(error, key, "\"path\" must be absolute, as the container sees it");
        return r;
}

static int take_to(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *path = NULL;
        int r = take_side(key, value, &path, &request->container, &request->has_container, error);

        if (r == 0 && path == NULL)
                return json_value_refuse(error, key, "has no \"path\"");
        return r < 0 ? r : set_target(request, key, path, error);
}

int request_key_source(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_string(key, value, JSON_VALUE_STRING_MAX, &request->source, error);
}

int request_key_target(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *path;
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &path, error);

        return r < 0 ? r : set_target(request, key, path, error);
}

int request_key_options(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *text;
        const json_t *option;
        size_t i;
        int r;

        if (json_is_string(value)) {
                if (json_string_length(value) == 0)
                        return 0;
                r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &text, error);
                return r < 0 ? r : mount_options_add_list(&request->options, text, error);
        }
        if (!json_is_array(value))
                return json_value_refuse(error, key, "must be a string or an array of strings");
        json_array_foreach (value, i, option)
                if ((r = json_value_string(key, option, JSON_VALUE_STRING_MAX, &text, error)) < 0 ||
                    (r = mount_options_add(&request->options, text, error)) < 0)
                        return r;
        return 0;
}

static int take_propagation(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *word;
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &word, error);

        if (r < 0)
                return r;
        request->options.propagation = mount_options_propagation(word);
        if (request->options.propagation == 0 || word[0] == 'r')
                return json_value_refuse(error, key, "must be private, slave, shared or unbindable");
        return 0;
}

static int take_ids(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *word;
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &word, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof ids_words / sizeof ids_words[0]; i++)
                if (strcmp(word, ids_words[i]) == 0) {
                        request->ids = (enum request_ids)i;
                        return 0;
                }
        return json_value_refuse(error, key, "must be auto, idmapped, userns, remap or host");
}

static int take_server(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_string(key, value, JSON_VALUE_ID_MAX * 2, &request->server, error);
}

static int take_share(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_path(key, value, &request->share, error);
}

static int take_fs_type(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_string(key, value, JSON_VALUE_ID_MAX, &request->fs_type, error);
}

static int take_record_id(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_id(key, value, &request->id, error);
}

static int take_timeout(struct request *request, const char *key, const json_t *value, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > TIMEOUT_MAX_S)
                return json_value_refuse(error, key, "must be a whole number of seconds, from 1 to 3600");
        request->timeout_seconds = (int)json_integer_value(value);
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
        int r = json_value_size(key, value, /* percent= */ true, text, sizeof text, error);

        return r < 0 ? r : add_fs_option(request, "size", text, error);
}

static int take_inodes(struct request *request, const char *key, const json_t *value, struct error *error)
{
        char text[32];
        int r = json_value_size(key, value, /* percent= */ false, text, sizeof text, error);

        return r < 0 ? r : add_fs_option(request, "nr_inodes", text, error);
}

static int take_mode(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *text;

        if (!json_is_string(value)) /* 755 and 0755 would be other numbers than they look */
                return json_value_refuse(error, key, "must be a string of octal digits, as \"0755\" or \"1777\"");
        if (json_value_string(key, value, 5, &text, error) < 0 || strspn(text, "01234567") != strlen(text) ||
            strtoul(text, NULL, 8) > 07777)
                return json_value_refuse(error, key, "must be at most four octal digits, as \"0755\" or \"1777\"");
        return add_fs_option(request, "mode", text, error);
}

static int take_uid(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_number(key, value, &request->uid, error);
}

static int take_gid(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_number(key, value, &request->gid, error);
}

static int take_lower(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const json_t *layer;
        size_t i;
        int r;

        if (json_is_string(value)) {
                request->lower_count = 1;
                return json_value_path(key, value, &request->lower[0], error);
        }
        if (!json_is_array(value) || json_array_size(value) == 0)
                return json_value_refuse(error, key,
                                         "must be a directory of the node or an array of them, the topmost first");
        if (json_array_size(value) > REQUEST_LAYERS_MAX)
                return json_value_refuse(error, key, "has more than 64 layers");
        json_array_foreach (value, i, layer)
                if ((r = json_value_path(key, layer, &request->lower[i], error)) < 0)
                        return r;
        request->lower_count = json_array_size(value);
        return 0;
}

static int take_upper(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_path(key, value, &request->upper, error);
}

static int take_work(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return json_value_path(key, value, &request->work, error);
}

/* Every key, the requests it belongs to, and either who takes it or which flag it sets. */
static const struct {
        const char *key;
        unsigned kinds;
        int (*take)(struct request *request, const char *key, const json_t *value, struct error *error);
        size_t flag;
} keys[] = {
        { "container", REQUEST_IN_CONTAINER | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST | REQUEST_MOUNT_BATCH,
          take_container, 0 },
        { "source", REQUEST_FROM_NODE | REQUEST_MOUNT_NFS, request_key_source, 0 },
        { "server", REQUEST_MOUNT_NFS, take_server, 0 },
        { "share", REQUEST_MOUNT_NFS, take_share, 0 },
        { "target", REQUEST_IN_CONTAINER | REQUEST_MOUNT_REMOVE, request_key_target, 0 },
        { "from", REQUEST_MOUNT_CONTAINER, take_from, 0 },
        { "to", REQUEST_MOUNT_CONTAINER, take_to, 0 },
        { "id", REQUEST_MOUNTS | REQUEST_MOUNT_REMOVE, take_record_id, 0 },
        { "fsType", REQUEST_MOUNT_BLOCK, take_fs_type, 0 },
        { "size", REQUEST_MOUNT_TMPFS, take_fs_size, 0 },
        { "inodes", REQUEST_MOUNT_TMPFS, take_inodes, 0 },
        { "mode", REQUEST_MOUNT_TMPFS, take_mode, 0 },
        { "uid", REQUEST_MOUNT_TMPFS, take_uid, 0 },
        { "gid", REQUEST_MOUNT_TMPFS, take_gid, 0 },
        { "lower", REQUEST_MOUNT_OVERLAY, take_lower, 0 },
        { "upper", REQUEST_MOUNT_OVERLAY, take_upper, 0 },
        { "work", REQUEST_MOUNT_OVERLAY, take_work, 0 },
        { "options", REQUEST_MOUNTS, request_key_options, 0 },
        { "propagation", REQUEST_MOUNTS, take_propagation, 0 },
        { "ids", REQUEST_MOUNTS, take_ids, 0 },
        { "timeoutSeconds", REQUEST_MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST | REQUEST_MOUNT_BATCH,
          take_timeout, 0 },
        { "replace", REQUEST_MOUNTS | REQUEST_MOUNT_BATCH, NULL, offsetof(struct request, replace) },
        { "readOnly", REQUEST_MOUNTS, NULL, offsetof(struct request, read_only) },
        { "recursive", REQUEST_MOUNT_BIND | REQUEST_MOUNT_CONTAINER, NULL, offsetof(struct request, recursive) },
        { "mkdir", REQUEST_MOUNTS, NULL, offsetof(struct request, mkdir) },
        { "mkdirSource", REQUEST_MOUNT_CONTAINER, NULL, offsetof(struct request, mkdir_source) },
        { "locked", REQUEST_MOUNTS, NULL, offsetof(struct request, locked) },
        { "raw", REQUEST_MOUNT_BLOCK, NULL, offsetof(struct request, raw) },
        { "dryRun", REQUEST_MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_BATCH, NULL,
          offsetof(struct request, dry_run) },
        { "force", REQUEST_MOUNT_REMOVE, NULL, offsetof(struct request, force) },
};

int request_key_take(struct request *request, const char *key, const json_t *value, struct error *error)
{
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                if (strcmp(key, keys[i].key) != 0 || (keys[i].kinds & request->kind) == 0)
                        continue;
                if (keys[i].take != NULL)
                        return keys[i].take(request, key, value, error);
                if (!json_is_boolean(value))
                        return json_value_refuse(error, key, "must be true or false");
                *(bool *)((char *)request + keys[i].flag) = json_is_true(value);
                return 0;
        }
        return fail_because(error, EINVAL, OPERATION_PARSE, key, "unknown key \"%.128s\"", key);
}
