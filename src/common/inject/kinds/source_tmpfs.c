/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tmpfs.c - a fresh tmpfs as the source of a mount.
 *
 * By default the node's user namespace owns the superblock: if the container's owned it, its root could raise the size
 * (docs/KERNEL.md#tmpfs). The ids stored are the node's, and the container's root owns the root directory. Where
 * the mount maps owners (id-mapped, or with remap-daemon), the ids stored are the container's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json_value.h"
#include "base/text.h"
#include "inject/attributes.h"
#include "inject/injection.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "mount/superblock.h"

/* Sets the owner of the root directory, uid or gid: the one requested, or the container's root. */
static int set_owner(int context_fd, const struct injection *injection, const char *name, uint32_t id, bool node_ids,
                     struct error *error)
{
        char text[16];
        uint32_t ignored;
        uint32_t stored = id == REQUEST_ID_NONE ? 0 : id;
        int r = 0;

        if (injection->request->ids != IDS_HOST) /* the container has to map it, also if the mount is id-mapped later */
                r = container_node_id(injection->container, name[0] == 'u' ? "uid_map" : "gid_map", stored,
                                      node_ids ? &stored : &ignored, error);
        (void)snprintf(text, sizeof text, "%u", stored);
        return r < 0 ? r : superblock_set(context_fd, name, text, error);
}

static int configure(int context_fd, const struct injection *injection, bool node_ids, struct error *error)
{
        const struct request *request = injection->request;
        int r;

        if ((r = superblock_set(context_fd, "source", "tmpfs", error)) < 0 ||
            (r = superblock_options(context_fd, &request->options, error)) < 0 ||
            (r = set_owner(context_fd, injection, "uid", request->uid, node_ids, error)) < 0 ||
            (r = set_owner(context_fd, injection, "gid", request->gid, node_ids, error)) < 0)
                return r;
        return superblock_create(context_fd, "tmpfs", error);
}

static int make_tmpfs(struct injection *injection, bool owned, struct error *error)
{
        enum request_ids ids = injection->request->ids;
        bool mapped = injection->container->own_user_ns && ids == IDS_IDMAPPED;
        bool node_ids = injection->container->own_user_ns && (ids == IDS_AUTO || ids == IDS_USERNS);
        cleanup_close int context_fd =
                owned ? superblock_open_owned(injection->container, "tmpfs", error) : superblock_open("tmpfs", error);
        const char *word = owned ? "userns" : mapped ? "idmapped" : ids == IDS_HOST ? "host" : "none";
        int r;

        if (context_fd < 0)
                return context_fd;
        if ((r = configure(context_fd, injection, node_ids, error)) < 0)
                return r;
        injection->mount_fd = superblock_mount(context_fd, "tmpfs", 0, error);
        if (injection->mount_fd < 0)
                return injection->mount_fd;
        if (mapped && (r = detached_mount_map(injection->mount_fd, "tmpfs", /* recursive= */ false,
                                              injection->container->user_ns_fd, error)) < 0)
                return r;
        injection->directory = true;
        (void)text_copy(injection->fs_type, sizeof injection->fs_type, "tmpfs");
        if (injection->container->own_user_ns && ids == IDS_REMAP)
                return attributes_remap(injection, /* ids= */ NULL, error);
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping,
                        injection->container->own_user_ns ? word : "none");
        return 0;
}

/* The options uid= and gid= mean the keys: ids as the container sees them. */
static int check(struct request *request, struct error *error)
{
        request->source = "tmpfs";
        for (size_t i = 0; i < request->options.fs_count; i++) {
                int r = mount_options_tmpfs_limit(&request->options.fs_options[i], error);
                char *option = request->options.fs_options[i];
                uint32_t *id = text_starts(option, "uid=")   ? &request->uid
                               : text_starts(option, "gid=") ? &request->gid
                                                             : NULL;
                uint64_t number;

                if (r < 0)
                        return r;
                if (id == NULL)
                        continue;
                if (!text_number(option + 4, UINT32_MAX - 1, &number))
                        return json_value_refuse(error, "options",
                                                 "uid and gid must be ids as the container sees them");
                if (*id == REQUEST_ID_NONE)
                        *id = (uint32_t)number;
                option[0] = '\0';
        }
        return 0;
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

static json_t *schema_of_mode(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return request_schema_string("^0?[0-7]{1,4}$");
}

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { REQUEST_KEY_TARGET },
        { "size", 1, 0, KEY_SIZE_SHARE, .take = take_fs_size,
          .help = "bytes, \"64m\", \"64Mi\", \"1g\", or \"10%\" of the memory; half of the memory if absent" },
        { "inodes", 1, 0, KEY_SIZE, .take = take_inodes, .help = "how many files, directories and links it may hold" },
        { "mode", 1, 0, KEY_OWN, .take = take_mode, .schema = schema_of_mode, .preset = "1777",
          .help = "permissions of its root directory, a string of octal digits" },
        { "uid", 1, 0, KEY_USER_ID, REQUEST_FIELD(uid),
          .help = "owner of its root directory, as the container counts; the container's root if absent" },
        { "gid", 1, 0, KEY_USER_ID, REQUEST_FIELD(gid), .help = "its group, likewise" },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_FS_OPTIONS },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT(request_ids_words),
};
REQUEST_KEY_TABLE(source_tmpfs_keys, keys);

static const char *const oci_types[] = { "tmpfs", NULL };

static const struct hint hints[] = {
        { OPERATION_MOUNT_SETATTR, EINVAL,
          "this kernel cannot id-map a tmpfs; \"ids\": \"auto\", the default, makes it with ids of the container" },
        {},
};

const struct source_kind source_tmpfs = {
        .word = "tmpfs",
        .keys = &source_tmpfs_keys,
        .hints = hints,
        .oci_types = oci_types,
        .maps = true,
        .fresh = true,
        .ownable = true,
        .remap = REMAP_ASKED,
        .make_text = SOURCE_MOUNTS_FILESYSTEM, /* fsopen, fsconfig, fsmount */
        .harmless_options = mount_options_tmpfs_harmless,
        .check = check,
        .make = make_tmpfs,
};
