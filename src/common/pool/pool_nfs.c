/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_nfs.c - directories on a share of an NFS server, one per volume, with the parameters of csi-driver-nfs.
 *
 * The share is mounted for the length of a call, as a mount that is in nobody's tree and ends with its descriptor:
 * a killed call leaves none. Only programs that make or delete volumes mount it; to others the records say what is
 * there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "mount/nfs.h"
#include "pool/pool.h"
#include "pool/pool_directory.h"
#include "pool/pool_implied.h"
#include "pool/pool_nfs_share.h"
#include "pool/record.h"
#include "state/volume_record.h"

#define ARCHIVED "archived-"
#define ALIGNMENT_BYTES 4096U

/* ---- the pool's file */

/* A path below the share, of names that are neither ours nor ".."; also with "${...}" in it. */
static bool is_below(const char *path)
{
        size_t length = strlen(path);

        for (const char *name = path;; name += strcspn(name, "/") + 1) {
                if (name[0] == '\0' || name[0] == '/' || name[0] == '.')
                        return false;
                if (name[strcspn(name, "/")] == '\0')
                        return length < PROVISION_ID_MAX;
        }
}

static bool is_sub_dir(const json_t *value)
{
        return json_is_string(value) && is_below(json_string_value(value));
}

static bool is_mode(const json_t *value)
{
        const char *text = json_string_value(value);

        return text != NULL && text[0] != '\0' && strlen(text) <= 5 && strspn(text, "01234567") == strlen(text) &&
               strtoul(text, NULL, 8) <= 07777;
}

static const char *const on_delete_words[] = { "delete", "retain", "archive", NULL };

static bool is_on_delete(const json_t *value)
{
        return json_is_string(value) && text_among(json_string_value(value), on_delete_words);
}

static const struct file_key keys[] = {
        { "server", "a host name or an address", file_key_is_text, true, NULL, "The NFS server.", NULL },
        { "share", "an absolute path", file_key_is_path, true, NULL, "The exported directory.", NULL },
        { "subDir", "a relative path without \"..\"", is_sub_dir, false, "${pv.metadata.name}",
          "Directory of a volume on the share; \"${pv.metadata.name}\" is the volume's name.", NULL },
        { "mountPermissions", "octal, as \"0777\"", is_mode, false, "0",
          "Mode of new directories; 0: what the server makes of 0755.", NULL },
        { "onDelete", "\"delete\", \"retain\" or \"archive\"", is_on_delete, false, "delete",
          "What volume-delete does with a directory that is not empty.", NULL },
        { "mountOptions", "an array of strings", file_key_is_texts, false, "[]",
          "Options of nfs(5), for the mounts of volume-create, volume-delete and mount-volume, and of pods by CSI.",
          NULL },
        {},
};

static const char *read_keys(const json_t *file, struct pool *pool)
{
        const json_t *options = json_object_get(file, "mountOptions");
        const json_t *option;
        size_t length = 0;
        size_t i;

        if (json_object_get(file, "maxPercent") != NULL) /* which would promise what nobody keeps to */
                return "\"maxPercent\": a server's export has no size that is known";
        if (!text_copy(pool->nfs.server, sizeof pool->nfs.server, file_key_text(keys, file, "server")))
                return "\"server\" is too long";
        if (!text_copy(pool->nfs.share, sizeof pool->nfs.share, file_key_text(keys, file, "share")))
                return "\"share\" is too long";
        (void)text_copy(pool->nfs.sub_dir, sizeof pool->nfs.sub_dir, file_key_text(keys, file, "subDir")); /* shorter */
        (void)text_copy(pool->nfs.on_delete, sizeof pool->nfs.on_delete, file_key_text(keys, file, "onDelete"));
        pool->nfs.mode = (unsigned)strtoul(file_key_text(keys, file, "mountPermissions"), NULL, 8);
        json_array_foreach (options, i, option) {
                length += (size_t)snprintf(pool->nfs.options + length, sizeof pool->nfs.options - length, "%s%s",
                                           i > 0 ? "," : "", json_string_value(option));
                if (length >= sizeof pool->nfs.options)
                        return "\"mountOptions\" are too long";
        }
        return NULL;
}

/* ---- the id of a volume: its directory below the share */

static int choose_id(const struct pool *pool, const struct provision_record *record, char *ret_id, struct error *error)
{
        static const char *const words[][2] = { { "${pv.metadata.name}", POOL_PARAMETER_PV },
                                                { "${pvc.metadata.name}", POOL_PARAMETER_PVC },
                                                { "${pvc.metadata.namespace}", POOL_PARAMETER_NAMESPACE } };
        char stem[VOLUME_RECORD_STEM_SIZE];
        size_t length = 0;

        if (pool_implied_by(record->parameters) && !pool_implied_is_name(pool->name))
                return fail_because(error, EINVAL, "choose directory", pool->name,
                                    "the pool has a server and a share of its own");
        volume_record_stem(record->name, stem);
        for (const char *from = pool->nfs.sub_dir; *from != '\0' && length < PROVISION_ID_MAX;) {
                const char *key = NULL;

                for (size_t i = 0; key == NULL && i < sizeof words / sizeof words[0]; i++)
                        if (text_starts(from, words[i][0])) {
                                key = words[i][1];
                                from += strlen(words[i][0]);
                        }
                if (key == NULL) {
                        ret_id[length++] = *from++;
                        continue;
                }
                const char *value = json_string_value(json_object_get(record->parameters, key));

                if (value == NULL && strcmp(key, POOL_PARAMETER_PV) == 0)
                        value = stem;
                if (value == NULL)
                        return fail_because(error, EINVAL, "choose directory", pool->name,
                                            "\"subDir\" of the pool wants the parameter \"%s\"", key);
                length += (size_t)snprintf(ret_id + length, PROVISION_ID_MAX - length, "%s", value);
        }
        if (length >= PROVISION_ID_MAX)
                return fail_because(error, ENAMETOOLONG, "choose directory", pool->name,
                                    "the path of the volume's directory is longer than %d bytes", PROVISION_ID_MAX - 1);
        ret_id[length] = '\0';
        return is_below(ret_id) ? 0
                                : fail_because(error, EINVAL, "choose directory", ret_id,
                                               "\"%.200s\" is not a directory below the share", ret_id);
}

static void put_path(const struct pool *pool, const char *id, char *ret_path)
{
        struct nfs_export export;
        const char *slash = text_ends(pool->nfs.share, "/") ? "" : "/";

        if (nfs_export_join(pool->nfs.server, pool->nfs.share, &export) < 0)
                export.source[0] = '\0';
        (void)snprintf(ret_path, PATH_MAX, "%s%s%s", export.source, slash, id);
}

/* ---- what every pool can do */

static int locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error)
{
        char path[PATH_MAX];

        (void)config;
        (void)error;
        put_path(pool, "", path);
        (void)snprintf(ret_location, POOL_LOCATION_SIZE, "nfs:%016llx", (unsigned long long)hash_text(path));
        return 0;
}

/* The server is not asked: it may not answer, and keeps to no sizes. */
static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        (void)config;
        (void)pool;
        (void)parameters;
        (void)error;
        *ret_measure = (struct pool_measure){ .unknown = true, .alignment_bytes = ALIGNMENT_BYTES };
        ret_measure->available_bytes = ret_measure->largest_bytes = INT64_MAX;
        return 0;
}

static void put_item(const struct pool *pool, const char *id, struct pool_item *ret_item)
{
        *ret_item = (struct pool_item){ .ours = true };
        (void)text_copy(ret_item->id, sizeof ret_item->id, id);
        put_path(pool, id, ret_item->path);
}

static int look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                struct error *error)
{
        cleanup_close int share_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        const char *name;

        if (!is_below(id))
                return fail_because(error, EINVAL, "open directory", id, "\"%.200s\" is not below the share", id);
        share_fd = pool_nfs_open_share(config, pool, error);
        if (share_fd < 0)
                return share_fd;
        fd = pool_nfs_open_parent(share_fd, id, /* make= */ false, &name, error);
        if (fd < 0)
                return fd;
        if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? -ENOENT : fail(error, errno, "look for directory", id);
        put_item(pool, id, ret_item);
        pool_nfs_put_identity(fd, name, ret_item->identity);
        return 0;
}

struct walk {
        const struct pool *pool;
        pool_item_function *function;
        void *argument;
};

static int pass_on(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        struct pool_item item;

        (void)stem;
        if (record == NULL || strcmp(record->pool, walk->pool->name) != 0)
                return 0;
        put_item(walk->pool, record->id, &item);
        return walk->function(&item, walk->argument, error);
}

/* What the records say: what others have on the share is not listed. */
static int each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                struct error *error)
{
        struct walk walk = { .pool = pool, .function = function, .argument = argument };
        cleanup_state struct state records = STATE_NONE;
        int r = provision_record_open(config->state_dir, /* create= */ false, &records, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return provision_record_each(&records, /* set_aside= */ true, pass_on, &walk, error);
}

static int is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int share_fd = pool_nfs_open_share(config, pool, error);
        cleanup_close int fd = share_fd < 0 ? share_fd : pool_nfs_open_below(share_fd, id, error);
        int r;

        if (fd < 0)
                return fd;
        r = file_directory_is_empty(fd);
        return r < 0 ? fail(error, -r, "open directory", id) : r;
}

/* "pvc-" and a UUID, as provisioners name volumes: no other volume, of whatever cluster, has the name. */
static bool is_unique_name(const char *name)
{
        static const char pattern[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        const size_t length = strlen(name);
        const char *uuid = name + length - (sizeof pattern - 1);

        if (length < sizeof pattern - 1)
                return false;
        for (size_t i = 0; pattern[i] != '\0'; i++)
                if (pattern[i] == '-' ? uuid[i] != '-' : strchr("0123456789abcdef", uuid[i]) == NULL)
                        return false;
        return true;
}

static bool is_one_everywhere(const struct provision_record *record)
{
        return strcmp(record->namespace, PROVISION_OF_CSI) == 0 && is_unique_name(record->name) &&
               strstr(record->id, record->name) != NULL;
}

/* CSI's controller is asked again on another node if the node that it ran on is lost, and that one has no record here. */
static bool is_of_other_call(const struct config *config, const struct pool *pool,
                             const struct provision_record *record)
{
        struct error ignored;

        return is_one_everywhere(record) && is_blank(config, pool, record->id, &ignored) == 1;
}

static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct pool_item *ret_item, struct error *error)
{
        cleanup_close int share_fd = pool_nfs_open_share(config, pool, error);
        cleanup_close int parent_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        const char *name;
        int r;

        if (share_fd < 0)
                return share_fd;
        parent_fd = pool_nfs_open_parent(share_fd, record->id, /* make= */ true, &name, error);
        if (parent_fd < 0)
                return parent_fd == -ENOENT ? fail(error, ENOENT, "make directory", record->id) : parent_fd;
        r = mkdirat(parent_fd, name, 0755) < 0 ? -errno : 0;
        if (r < 0 && (r != -EEXIST || !is_of_other_call(config, pool, record)))
                return fail(error, -r, "make directory", record->id);
        if (pool->nfs.mode != 0) {
                fd = pool_nfs_open_below(parent_fd, name, error);
                if (fd < 0)
                        return fd == -ENOENT ? fail(error, ENOENT, "make directory", record->id) : fd;
                if (fchmod(fd, (mode_t)pool->nfs.mode) < 0)
                        return fail(error, errno, "set mode", record->id);
        }
        put_item(pool, record->id, ret_item);
        pool_nfs_put_identity(parent_fd, name, ret_item->identity);
        return 0;
}

static int wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int share_fd = pool_nfs_open_share(config, pool, error);
        cleanup_close int fd = share_fd < 0 ? share_fd : pool_nfs_open_below(share_fd, id, error);

        return fd < 0 ? fd : pool_trash_wipe(fd, id, error);
}

/* Another node, which deletes the volume, too, may have archived it just now. */
static bool is_moved(int parent_fd, const char *name)
{
        struct statx ignored;

        return statx(parent_fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_INO, &ignored) < 0 &&
               file_is_gone(errno);
}

/* As csi-driver-nfs does: "a/b" becomes "archived-a/b". */
static int archive(int share_fd, int parent_fd, const char *name, const char *id, struct error *error)
{
        char to[PROVISION_ID_MAX + sizeof ARCHIVED];
        cleanup_close int to_fd = -EBADF;
        const char *to_name;

        if (snprintf(to, sizeof to, ARCHIVED "%s", id) >= PROVISION_ID_MAX)
                return fail(error, ENAMETOOLONG, OPERATION_ARCHIVE_DIRECTORY, id);
        to_fd = pool_nfs_open_parent(share_fd, to, /* make= */ true, &to_name, error);
        if (to_fd < 0)
                return to_fd == -ENOENT ? fail(error, ENOENT, OPERATION_ARCHIVE_DIRECTORY, id) : to_fd;
        /* NFS cannot rename without replacing; what is not empty is not replaced in any case */
        if (faccessat(to_fd, to_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                errno = EEXIST;
        else if (renameat(parent_fd, name, to_fd, to_name) == 0)
                return 0;
        if ((errno == EEXIST || errno == ENOTEMPTY) && is_moved(parent_fd, name))
                return 0;
        if (errno == EEXIST || errno == ENOTEMPTY)
                return fail_because(error, EEXIST, OPERATION_ARCHIVE_DIRECTORY, id,
                                    "%s is on the share already; rename or remove it", to);
        return errno == ENOENT ? 0 : fail(error, errno, OPERATION_ARCHIVE_DIRECTORY, id);
}

/* What a killed volume-create made is empty. What is not, another node made under that name. */
static int remove_empty(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int share_fd = pool_nfs_open_share(config, pool, error);
        cleanup_close int parent_fd = -EBADF;
        const char *name;

        if (share_fd < 0)
                return share_fd;
        parent_fd = pool_nfs_open_parent(share_fd, id, /* make= */ false, &name, error);
        if (parent_fd < 0)
                return parent_fd == -ENOENT ? 0 : parent_fd;
        return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST
                       ? 0
                       : fail(error, errno, "remove directory", id);
}

/* An empty one is removed in any case. */
static int erase(const struct config *config, const struct pool *pool, const char *id, bool begun, struct error *error)
{
        cleanup_close int share_fd = pool_nfs_open_share(config, pool, error);
        cleanup_close int parent_fd = -EBADF;
        const char *name;

        (void)begun;
        if (share_fd < 0)
                return share_fd;
        parent_fd = pool_nfs_open_parent(share_fd, id, /* make= */ false, &name, error);
        if (parent_fd < 0 && parent_fd != -ENOENT)
                return parent_fd;
        if (parent_fd >= 0 && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
                if (errno != ENOTEMPTY && errno != EEXIST)
                        return fail(error, errno, "remove directory", id);
                if (strcmp(pool->nfs.on_delete, "retain") == 0)
                        return 0;
                if (strcmp(pool->nfs.on_delete, "archive") == 0)
                        return archive(share_fd, parent_fd, name, id, error);
        }
        return pool_trash_discard(share_fd, parent_fd, name, id, error);
}

static int discard_left(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int share_fd = pool_nfs_open_share(config, pool, error);

        return share_fd < 0 ? share_fd : pool_trash_discard(share_fd, /* dir_fd= */ -EBADF, id, id, error);
}

static const struct hint hints[] = {
        { OPERATION_RESOLVE, 0,
          "check \"server\" in the pool's file or the StorageClass, and the name servers of the node" },
        { OPERATION_CONNECT, 0,
          "check \"server\" in the pool's file or the StorageClass, and that NFS is served there (port 2049)" },
        { OPERATION_ARCHIVE_DIRECTORY, EEXIST, "rename or remove what was archived before" },
        {},
};

const struct pool_kind pool_nfs = { .type = "nfs",
                                    .needs = NEED(NFS),
                                    .mappable_needs = NEED(FUSE) | NEED(MAP_FUSE) | NEED(REMAP_DAEMON),
                                    .hints = hints,
                                    .keys = keys,
                                    .parameters = pool_implied_keys,
                                    .no_device = true,
                                    .remote = true,
                                    .end = pool_nfs_close_share,
                                    .close = pool_nfs_close_here,
                                    .allow = pool_nfs_allow,
                                    .read = read_keys,
                                    .locate = locate,
                                    .measure = measure,
                                    .choose_directory = choose_id,
                                    .create = create,
                                    .look = look,
                                    .is_blank = is_blank,
                                    .is_of_other_call = is_of_other_call,
                                    .is_one_everywhere = is_one_everywhere,
                                    .wipe = wipe,
                                    .erase = erase,
                                    .discard_left = discard_left,
                                    .remove = remove_empty,
                                    .each = each };
