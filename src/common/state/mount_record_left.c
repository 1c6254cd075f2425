/* SPDX-License-Identifier: Apache-2.0 */
/* mount_record_left.c - records of mounts that are in their containers no more, and that may still be in use. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "mount/in_container.h"
#include "mount/mountinfo.h"
#include "state/mount_record.h"

#define TRIES 10             /* a tidying call looks once at each file */
#define FORMER_FILES_MS 2000 /* so long processes are looked at: a container may have very many */
#define END_PAUSE_MS 10

void mount_record_removed_id(const struct mount_record *record, char *ret_id)
{
        (void)snprintf(ret_id, MOUNT_RECORD_ID_MAX, "raw-%016llx", (unsigned long long)record->raw_device);
}

/* What is left of a mount that is in its container no more: a record with an id of its own, unless there is one. */
static int write_left(const struct state *state, const struct mount_record *record, const char *id,
                      const struct mount_identity *identity, struct error *error)
{
        static struct mount_record left;
        char keys[USE_KEYS_SIZE];
        char name[NAME_MAX + 1];
        struct error ignored;
        int tries = TRIES;
        int r;

        if (mount_record_read(state, id, &left, &ignored) == 0)
                return 0;
        left = *record;
        (void)text_copy(left.id, sizeof left.id, id);
        left.removed = true;
        left.made = 0;
        left.identity = *identity;
        left.replaces = (struct mount_identity){};
        left.replaces_uses[0] = '\0';
        left.replaces_raw = 0;
        left.replaces_raw_source = 0;
        /* its lock is not held: another call may take the temporary file for what a killed one left */
        do
                r = mount_record_write(state, &left, error);
        while (r == -ENOENT && --tries > 0);
        if (r < 0)
                return r;
        /* likewise, what a repair of the index dropped meanwhile, because there was no record yet */
        (void)snprintf(name, sizeof name, "%s" RECORD_SUFFIX, id);
        mount_record_keys(&left, keys);
        return use_index_add(state, keys, USE_HOLDER_MOUNT, name, error);
}

int mount_record_write_removed(const struct state *state, const struct mount_record *record, struct error *error)
{
        char id[MOUNT_RECORD_ID_MAX];

        mount_record_removed_id(record, id);
        return write_left(state, record, id, &(const struct mount_identity){}, error);
}

bool mount_record_is_former(const struct mount_record *record)
{
        return record->removed && record->raw_device == 0 && record->volume[0] != '\0';
}

int mount_record_write_former(const struct state *state, const struct mount_record *record, struct error *error)
{
        uint64_t hash = hash_bytes(mount_record_guard_key(record), &record->identity.id, sizeof record->identity.id);
        char id[MOUNT_RECORD_ID_MAX];

        hash = hash_bytes(hash, &record->identity.device, sizeof record->identity.device); /* ids are used again */
        hash = hash_bytes(hash, record->volume, strlen(record->volume));
        if (record->volume[0] == '\0' || record->raw_device != 0 || record->removed)
                return 0;
        (void)snprintf(id, sizeof id, "former-%016llx", (unsigned long long)hash);
        return write_left(state, record, id, &record->identity, error);
}

void mount_record_former_files(const struct mount_record *record, enum open_files_of of, size_t most,
                               struct open_files *ret_files)
{
        open_files_find(&record->identity, &record->mnt_ns, of, most, clock_now_ms() + FORMER_FILES_MS, ret_files);
}

/* A volume of a server has a filesystem of its own for each mount. */
static bool is_of_server(const struct mount_record *record)
{
        char key[USE_KEYS_SIZE] = "";

        use_keys_add_named(key, record->volume);
        return use_keys_have(record->uses, key);
}

/* Its origin is a path of the node then, and not the volume's name. */
static bool is_directory(const struct mount_record *record)
{
        return record->origin[0] == '/' && strcmp(record->origin, record->source) != 0;
}

bool mount_record_has_device(const struct mount_record *record)
{
        return record->remap_key == 0 && !is_of_server(record) && !is_directory(record);
}

/* A mount of the same volume that is recorded keeps it in use by itself, and is asked the same when it goes. */
static int is_other_of_volume(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        const struct mount_record *of = argument;

        (void)error;
        return record != NULL && !record->removed && strcmp(id, of->id) != 0 &&
               strcmp(record->volume, of->volume) == 0 && strcmp(record->boot_id, of->boot_id) == 0 &&
               container_same_namespace(&record->mnt_ns, &of->mnt_ns);
}

/* What a mount of the volume shows in a mount table. -ENOENT: its directory is gone. */
static int locate(const struct mount_record *record, uint64_t *ret_device, char *ret_root)
{
        cleanup_close int fd = -EBADF;

        if (!is_directory(record)) {
                *ret_device = record->identity.device;
                return text_copy(ret_root, PATH_MAX, "/") ? 0 : -ENAMETOOLONG;
        }
        fd = open(record->origin, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : mountinfo_locate(fd, ret_device, ret_root);
}

bool mount_record_is_elsewhere(const struct state *state, const struct mount_record *record,
                               const struct container *container)
{
        struct error ignored;
        char root[PATH_MAX];
        uint64_t device = 0;
        int r;

        if (record->remap_key != 0 || mount_record_has_device(record))
                return false;
        r = locate(record, &device, root);
        if (r == 0)
                r = in_container_has_part(container, device, root);
        if (r <= 0)
                return r < 0 && r != -ENOENT; /* what cannot be asked is in use */
        return mount_record_each_of(state, &record->mnt_ns, record->boot_id, record->id, is_other_of_volume,
                                    (void *)record, &ignored) <= 0;
}

void mount_record_wait_for_end(struct state *state, const struct mount_record *record, int64_t until_ms)
{
        while (record->remap_key != 0 && mount_record_remap_lives(state, record->remap_key) &&
               clock_now_ms() < until_ms)
                clock_pause_ms(END_PAUSE_MS);
}

bool mount_record_former_stays(struct state *state, const struct mount_record *record,
                               const struct container *container)
{
        return (record->remap_key != 0 && mount_record_remap_lives(state, record->remap_key)) ||
               mount_record_is_elsewhere(state, record, container);
}

bool mount_record_former_is_used(struct state *state, const struct mount_record *record,
                                 const struct container *container)
{
        static struct open_files files;

        files = (struct open_files){};
        mount_record_former_files(record, OPEN_FILES_OF_NAMESPACE, /* most= */ 1, &files);
        return files.count > 0 || files.unsure || mount_record_former_stays(state, record, container);
}
