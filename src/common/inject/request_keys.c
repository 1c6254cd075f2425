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
#include "inject/request_schema.h"
#include "state/mount_record.h"

#define TIMEOUT_MAX_S 3600

/* In the order of enum request_ids. */
static const char *const ids_words[] = { "auto", "idmapped", "userns", "remap", "host", NULL };

/*
 * What a kind can do. Where there is nothing to map, as in a container without a user namespace, every word is taken.
 */
static const char *const ids_of_bind[] = { "auto", "idmapped", "remap", "host", NULL };
static const char *const ids_of_container[] = { "auto", "host", NULL };
static const char *const ids_of_tmpfs[] = { "auto", "idmapped", "userns", "host", NULL };
static const char *const ids_of_overlay[] = { "auto", "idmapped", "host", NULL };

static const char *const propagation_words[] = { "private", "slave", "shared", "unbindable", NULL };

static int take_container(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;

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

static int take_from(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
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

static int take_to(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *path = NULL;
        int r = take_side(key, value, &path, &request->container, &request->has_container, error);

        if (r == 0 && path == NULL)
                return json_value_refuse(error, key, "has no \"path\"");
        return r < 0 ? r : set_target(request, key, path, error);
}

static int take_target(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *path;
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &path, error);

        return r < 0 ? r : set_target(request, key, path, error);
}

static int take_options(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
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

static int take_propagation(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        size_t index;
        int r = key_word(propagation_words, key, value, &index, error);

        if (r == 0)
                request->options.propagation = mount_options_propagation(propagation_words[index]);
        return r;
}

static int take_ids(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        size_t index;
        int r = key_word(ids_words, key, value, &index, error);

        if (r == 0)
                request->ids = (enum request_ids)index;
        return r;
}

/* What the request says as a key of its own is an option of the filesystem's in the end. */
static int add_fs_option(struct request *request, const char *name, const char *value, struct error *error)
{
        char option[64];

        (void)snprintf(option, sizeof option, "%s=%s", name, value);
        return mount_options_add(&request->options, option, error);
}

static int take_fs_size(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        char text[32];
        int r = json_value_size(key, value, /* percent= */ true, text, sizeof text, error);

        return r < 0 ? r : add_fs_option(request, "size", text, error);
}

static int take_inodes(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        char text[32];
        int r = json_value_size(key, value, /* percent= */ false, text, sizeof text, error);

        return r < 0 ? r : add_fs_option(request, "nr_inodes", text, error);
}

static int take_mode(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *text;

        if (!json_is_string(value)) /* 755 and 0755 would be other numbers than they look */
                return json_value_refuse(error, key, "must be a string of octal digits, as \"0755\" or \"1777\"");
        if (json_value_string(key, value, 5, &text, error) < 0 || strspn(text, "01234567") != strlen(text) ||
            strtoul(text, NULL, 8) > 07777)
                return json_value_refuse(error, key, "must be at most four octal digits, as \"0755\" or \"1777\"");
        return add_fs_option(request, "mode", text, error);
}

/* In words a number is a string, too. */
static int take_partition(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        uint64_t number;

        if (json_is_integer(value) && json_integer_value(value) >= 0 &&
            json_integer_value(value) <= IMAGE_PARTITION_MAX) {
                request->partition =
                        (struct image_choice){ .by_number = true, .number = (unsigned)json_integer_value(value) };
                return 0;
        }
        if (!json_is_string(value))
                return json_value_refuse(error, key,
                                         "must be a number from 0 to 65535 (0: the whole image), or a string: a "
                                         "partition's name, or PARTLABEL=, PARTUUID=, LABEL= or UUID= and its value");
        if (text_number(json_string_value(value), IMAGE_PARTITION_MAX, &number)) {
                request->partition = (struct image_choice){ .by_number = true, .number = (unsigned)number };
                return 0;
        }
        request->partition = (struct image_choice){};
        return json_value_string(key, value, JSON_VALUE_ID_MAX * 2, &request->partition.name, error);
}

static int take_lower(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
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

static const struct key create_keys[] = {
        { "size", REQUEST_MOUNT_VOLUME, REQUEST_MOUNT_VOLUME, KEY_SIZE,
          .offset = offsetof(struct request_create, size_bytes), .help = "bytes, or with k, m, g, t" },
        { "pool", REQUEST_MOUNT_VOLUME, 0, KEY_TEXT, .maximum = JSON_VALUE_ID_MAX,
          .offset = offsetof(struct request_create, pool), .help = "the pool; a profile may choose it" },
        { "profile", REQUEST_MOUNT_VOLUME, 0, KEY_TEXT, .maximum = MOUNT_RECORD_VOLUME_MAX - 1,
          .offset = offsetof(struct request_create, profile), .help = "profile of profiles.json" },
};
static const struct key_table create_table = KEY_TABLE(create_keys);

static int take_create(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *member;
        json_t *part;
        int r;

        if (!json_is_object(value))
                return json_value_refuse(error, key, "must be an object, {\"size\": ..., \"pool\": ...}");
        json_object_foreach ((json_t *)value, member, part) {
                const struct key *row = key_find(&create_table, request->kind, member);
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                r = row == NULL ? key_unknown(path, error) : key_take(row, path, &request->create, part, error);
                if (r < 0)
                        return r;
        }
        return request->create.size_bytes > 0 ? 0 : json_value_refuse(error, key, "has no \"size\"");
}

#define CONTAINER_OBJECTS                                                                                              \
        "{\"pid\": N}, {\"id\": S, \"runtime\": S, \"user\": N}, {\"pod\": \"namespace/name\", \"container\": S}, "    \
        "{\"unit\": S} or {\"procDir\": S}"
#define IDS_HELP "how file owners are mapped"
#define FIELD(field) .offset = offsetof(struct request, field)
#define WITHOUT_SIDES (REQUEST_IN_CONTAINER | REQUEST_MOUNT_REMOVE)
#define EVERYWHERE (REQUEST_MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST | REQUEST_MOUNT_BATCH)

/* A side of container-to-container, in words; take_side() reads it. */
static const struct key side_keys[] = {
        { "container", 1, 1, KEY_OWN, .members = &container_reference_members, .spelling = SPELLED_MEMBERS },
        { "path", 1, 1, KEY_PATH, .help = "as that container sees it" },
};
static const struct key_table side_members = KEY_TABLE(side_keys);

static const struct key keys[] = {
        { "container", WITHOUT_SIDES | REQUEST_MOUNT_LIST | REQUEST_MOUNT_BATCH, REQUEST_IN_CONTAINER, KEY_OWN,
          .take = take_container, .schema = request_schema_container, .members = &container_reference_members,
          .placed = ~0U, .spelling = SPELLED_MEMBERS,
          .help = "process id, container id or name, or an object: " CONTAINER_OBJECTS },
        { "source", REQUEST_MOUNT_BIND, REQUEST_MOUNT_BIND, KEY_PATH, .placed = ~0U, FIELD(source),
          .help = "absolute path on the node, of a file or a directory" },
        { "source", REQUEST_MOUNT_BLOCK, REQUEST_MOUNT_BLOCK, KEY_STRING, .pattern = "^/|=", .placed = ~0U,
          FIELD(source), .help = "path of a block device, or UUID=, LABEL=, PARTUUID= or PARTLABEL= and its value" },
        { "volume", REQUEST_MOUNT_VOLUME, REQUEST_MOUNT_VOLUME, KEY_TEXT, .maximum = MOUNT_RECORD_VOLUME_MAX - 1,
          .placed = ~0U, FIELD(source), .help = "name of a volume that volume-create made" },
        { "source", REQUEST_MOUNT_IMAGE, REQUEST_MOUNT_IMAGE, KEY_PATH, .placed = ~0U, FIELD(source),
          .help = "absolute path on the node, of an image file" },
        { "source", REQUEST_MOUNT_NFS, 0, KEY_STRING, .pattern = ":/", .placed = ~0U, FIELD(source),
          .help = "\"host:/path\" or \"[IPv6 address]:/path\"; or give server and share" },
        { "server", REQUEST_MOUNT_NFS, 0, KEY_STRING, .maximum = (int64_t)JSON_VALUE_ID_MAX * 2, FIELD(server),
          .help = "host name or address of the server" },
        { "share", REQUEST_MOUNT_NFS, 0, KEY_PATH, FIELD(share), .help = "exported path on the server" },
        { "from", REQUEST_MOUNT_CONTAINER, REQUEST_MOUNT_CONTAINER, KEY_OWN, .take = take_from,
          .schema = request_schema_from, .members = &side_members, .placed = ~0U, .spelling = SPELLED_SIDE,
          .help = "{\"container\": C, \"path\": \"/path\"}: the source, as that container sees it; C is a process id, "
                  "container id or name, or an object: " CONTAINER_OBJECTS },
        { "to", REQUEST_MOUNT_CONTAINER, REQUEST_MOUNT_CONTAINER, KEY_OWN, .take = take_to, .schema = request_schema_to,
          .members = &side_members, .placed = ~0U, .spelling = SPELLED_SIDE,
          .help = "{\"container\": C, \"path\": \"/path\"}: the target; it is made if missing" },
        { "target", REQUEST_IN_CONTAINER, REQUEST_IN_CONTAINER, KEY_PATH, .take = take_target, .placed = ~0U,
          .help = "absolute path as the container sees it; it is made if missing" },
        { "target", REQUEST_MOUNT_REMOVE, 0, KEY_PATH, .take = take_target, .placed = ~0U,
          .help = "absolute path as the container sees it, together with container" },
        { "mounts", REQUEST_MOUNT_BATCH, 0, KEY_OWN, .spelling = SPELLED_OBJECTS,
          .help = "at most 256 entries, each the request of another helper with a \"type\" (that of mount-bind is "
                  "bind), or an entry of an OCI configuration's \"mounts\" (destination, type, source, options)" },
        { "raw", REQUEST_MOUNT_BLOCK, 0, KEY_BOOLEAN, FIELD(raw),
          .help = "true: the device itself, usable by the container's root; the target is a file" },
        { "raw", REQUEST_MOUNT_VOLUME, 0, KEY_BOOLEAN, FIELD(raw),
          .help = "true: its device itself, of a volume with targetType block; the target is a file" },
        { "partition", REQUEST_MOUNT_IMAGE, 0, KEY_OWN, .take = take_partition, .schema = request_schema_partition,
          .help = "which one: its number, its name or its filesystem's label, or PARTLABEL=, PARTUUID=, LABEL= or "
                  "UUID= and its value; the only one if absent; 0: the whole image" },
        { "fsType", REQUEST_ON_DEVICE, 0, KEY_STRING, .maximum = JSON_VALUE_ID_MAX, FIELD(fs_type),
          .help = "ext4, xfs, btrfs, erofs, squashfs, ...; probed if absent" },
        { "create", REQUEST_MOUNT_VOLUME, 0, KEY_OBJECT, .take = take_create, .members = &create_table,
          .spelling = SPELLED_MEMBERS,
          .help = "{\"size\": \"10g\", \"pool\": P, \"profile\": F}: make the volume if there is none; pool and "
                  "profile may be left out" },
        { "fsType", REQUEST_MOUNT_VOLUME, 0, KEY_STRING, .maximum = JSON_VALUE_ID_MAX, FIELD(fs_type),
          .help = "ext4, xfs or btrfs, made on a blank volume; ext4 if the volume says nothing else" },
        { "size", REQUEST_MOUNT_TMPFS, 0, KEY_SIZE_SHARE, .take = take_fs_size,
          .help = "bytes, \"64m\", \"64Mi\", \"1g\", or \"10%\" of the memory; half of the memory if absent" },
        { "inodes", REQUEST_MOUNT_TMPFS, 0, KEY_SIZE, .take = take_inodes,
          .help = "how many files, directories and links it may hold" },
        { "mode", REQUEST_MOUNT_TMPFS, 0, KEY_OWN, .take = take_mode, .schema = request_schema_mode, .preset = "1777",
          .help = "permissions of its root directory, a string of octal digits" },
        { "uid", REQUEST_MOUNT_TMPFS, 0, KEY_USER_ID, FIELD(uid),
          .help = "owner of its root directory, as the container counts; the container's root if absent" },
        { "gid", REQUEST_MOUNT_TMPFS, 0, KEY_USER_ID, FIELD(gid), .help = "its group, likewise" },
        { "lower", REQUEST_MOUNT_OVERLAY, 0, KEY_OWN, .take = take_lower, .schema = request_schema_lower,
          .spelling = SPELLED_LIST, .help = "the lower layers, absolute paths on the node, the topmost first" },
        { "upper", REQUEST_MOUNT_OVERLAY, 0, KEY_PATH, FIELD(upper),
          .help = "directory of the node for changes; without it the overlay is read-only and needs two lower layers" },
        { "work", REQUEST_MOUNT_OVERLAY, 0, KEY_PATH, FIELD(work),
          .help = "empty directory on the same filesystem as upper; they go together" },
        { "readOnly", REQUEST_MOUNTS, 0, KEY_BOOLEAN, FIELD(read_only), .help = "true: mount read-only" },
        { "recursive", REQUEST_MOUNT_BIND | REQUEST_MOUNT_CONTAINER, 0, KEY_BOOLEAN, FIELD(recursive),
          .help = "true: with the mounts below the source" },
        { "options", REQUEST_MOUNT_BIND | REQUEST_MOUNT_CONTAINER | REQUEST_MOUNT_VOLUME, 0, KEY_OWN,
          .take = take_options, .schema = request_schema_options, .spelling = SPELLED_COMMAS,
          .help = "mount options, \"noexec,noatime\" or an array; nosuid and nodev apply unless suid or dev is given" },
        { "options", REQUEST_ON_DEVICE | REQUEST_MOUNT_NFS | REQUEST_MOUNT_TMPFS | REQUEST_MOUNT_OVERLAY, 0, KEY_OWN,
          .take = take_options, .schema = request_schema_options, .spelling = SPELLED_COMMAS,
          .help = "options of the mount and of the filesystem, a string with commas or an array; nosuid and nodev "
                  "apply unless suid or dev is given" },
        { "propagation", REQUEST_MOUNTS, 0, KEY_WORD, .words = propagation_words, .take = take_propagation,
          .preset = "private", .help = "mount propagation (mount_namespaces(7))" },
        { "ids", REQUEST_ON_DEVICE | REQUEST_MOUNT_NFS, 0, KEY_WORD, .words = ids_words, .take = take_ids,
          .preset = "auto", .help = IDS_HELP },
        { "ids", REQUEST_MOUNT_BIND, 0, KEY_WORD, .words = ids_of_bind, .take = take_ids, .preset = "auto",
          .help = IDS_HELP },
        { "ids", REQUEST_MOUNT_CONTAINER, 0, KEY_WORD, .words = ids_of_container, .take = take_ids, .preset = "auto",
          .help = IDS_HELP },
        { "ids", REQUEST_MOUNT_TMPFS, 0, KEY_WORD, .words = ids_of_tmpfs, .take = take_ids, .preset = "auto",
          .help = IDS_HELP },
        { "ids", REQUEST_MOUNT_OVERLAY | REQUEST_MOUNT_VOLUME, 0, KEY_WORD, .words = ids_of_overlay, .take = take_ids,
          .preset = "auto", .help = IDS_HELP },
        { "locked", REQUEST_MOUNTS, 0, KEY_BOOLEAN, FIELD(locked),
          .help = "true: root in the container cannot remove ro, nosuid, nodev and noexec by a remount" },
        { "mkdirSource", REQUEST_MOUNT_CONTAINER, 0, KEY_BOOLEAN, FIELD(mkdir_source),
          .help = "true: make a missing source directory, owned by its container's root" },
        { "mkdir", REQUEST_MOUNTS, 0, KEY_BOOLEAN, FIELD(mkdir), .preset = "true",
          .help = "false: refuse a target that does not exist" },
        { "replace", (REQUEST_MOUNTS & ~REQUEST_MOUNT_VOLUME) | REQUEST_MOUNT_BATCH, 0, KEY_BOOLEAN, FIELD(replace),
          .help = "true: replace what flexgraft mounted there before, atomically where the kernel can" },
        { "replace", REQUEST_MOUNT_VOLUME, 0, KEY_BOOLEAN, FIELD(replace),
          .help = "true: switch to this volume from what flexgraft mounted there before; always atomically" },
        { "id", REQUEST_MOUNTS, 0, KEY_NAME, FIELD(id),
          .help = "a name for mount-list and mount-remove; derived from the target if absent" },
        { "id", REQUEST_MOUNT_REMOVE, 0, KEY_NAME, FIELD(id),
          .help = "id of the mount, from mount-list or the reply that made it; or give container and target" },
        { "force", REQUEST_MOUNT_REMOVE, 0, KEY_BOOLEAN, FIELD(force),
          .help = "true: detach it also when it is in use or its server does not answer" },
        { "persist", REQUEST_MOUNTS | REQUEST_MOUNT_BATCH, 0, KEY_BOOLEAN, FIELD(persist),
          .help = "true: mount it again whenever the container is started again, until mount-remove; false: no more; "
                  "what was said before holds if absent" },
        { "wanted", REQUEST_MOUNT_BATCH, 0, KEY_BOOLEAN, FIELD(wanted),
          .help = "true: instead of mounts: what is wanted in the container by \"persist\"" },
        { "dryRun", EVERYWHERE & ~REQUEST_MOUNT_LIST, 0, KEY_BOOLEAN, FIELD(dry_run),
          .help = "true: change nothing, reply with the plan" },
        { "timeoutSeconds", EVERYWHERE, 0, KEY_INTEGER, .minimum = 1, .maximum = TIMEOUT_MAX_S, FIELD(timeout_seconds),
          .preset = "30", .help = "give up after so many seconds" },
};

const struct key_table request_keys = KEY_TABLE(keys);

_Static_assert(sizeof keys / sizeof keys[0] <= 64, "struct request has a bit for each");

int request_key_take_as(struct request *request, const char *key, const char *name, const json_t *value,
                        struct error *error)
{
        const struct key *row = key_find(&request_keys, request->kind, key);

        if (row == NULL)
                return key_unknown(name, error);
        request->given |= 1ULL << (row - keys);
        return key_take(row, name, request, value, error);
}

bool request_key_is_for(const struct request *request, const char *key)
{
        return key_find(&request_keys, request->kind, key) != NULL;
}

int request_key_take(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return request_key_take_as(request, key, key, value, error);
}

bool request_key_given(const struct request *request, const char *key)
{
        const struct key *row = key_find(&request_keys, request->kind, key);

        return row != NULL && (request->given & 1ULL << (row - keys)) != 0;
}

int request_keys_check(const struct request *request, struct error *error)
{
        for (size_t i = 0; i < request_keys.count; i++)
                if ((keys[i].required & request->kind) != 0 && (request->given & 1ULL << i) == 0 &&
                    !(keys[i].take == take_container && request->has_container)) /* a batch or a hook names it */
                        return json_value_refuse(error, keys[i].name, "is missing");
        return 0;
}
