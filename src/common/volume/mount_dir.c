/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/mount_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/identity.h"
#include "mount/mountinfo.h"
#include "mount/on_node.h"
#include "process/log.h"
#include "volume/provisioned.h"

/* stat(2) gives an anonymous device number for btrfs; mountinfo names the device. */
static bool source_is(int fd, const char *device)
{
        cleanup_mount_table struct mountinfo table = {};

        return mountinfo_find_own(&table, fd) > 0 && mountinfo_names(&table, device);
}

static bool is_of_device(const struct volume_call *call, const char *dir, const struct mount_seen *seen)
{
        cleanup_close int fd = -EBADF;
        struct stat st;

        if (call->record.device_number == 0)
                return false;
        if (!seen->directory)
                return fstatat(AT_FDCWD, dir, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISBLK(st.st_mode) &&
                       (st.st_rdev == call->record.device_number || pod_device_is(call, st.st_rdev));
        if (major(seen->device) != 0)
                return seen->device == call->record.device_number;
        fd = open(dir, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* O_DIRECTORY would set off an automount */
        return fd >= 0 && source_is(fd, call->record.device);
}

/* How many of the path's last parts are missing. */
static int count_missing(const char *dir, unsigned *ret_made)
{
        char path[PATH_MAX];
        struct stat st;

        (void)text_copy(path, sizeof path, dir); /* it fits */
        for (*ret_made = 0; fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0; (*ret_made)++) {
                char *last = strrchr(path, '/');

                if (errno != ENOENT)
                        return -errno;
                if (last == path) /* the root exists */
                        return (int)++*ret_made > 0 ? 0 : -ENOENT;
                *last = '\0';
        }
        return 0;
}

int mount_dir_look(const struct volume_call *call, const char *dir, unsigned *ret_made, struct error *error)
{
        const struct mount_dir *place;
        struct mount_seen seen;
        int r = mount_see(AT_FDCWD, dir, &seen);

        *ret_made = 0;
        if (r == -ENOENT) {
                r = count_missing(dir, ret_made);
                return r < 0 ? fail(error, -r, "stat", dir) : MOUNT_DIR_MISSING;
        }
        if (r < 0)
                return fail(error, -r, "stat", dir);
        if (!seen.root && seen.directory == call->request->block)
                return fail(error, seen.directory ? EISDIR : ENOTDIR, "stat", dir);
        if (!seen.root)
                return MOUNT_DIR_BARE;
        place = volume_record_mount_dir((struct volume_record *)&call->record, dir); /* only read */
        if (place != NULL && volume_record_dir_shows(place, &seen))
                return MOUNT_DIR_OURS;
        return is_of_device(call, dir, &seen) ? MOUNT_DIR_OURS : MOUNT_DIR_TAKEN;
}

bool mount_dir_has(const struct volume_call *call, const struct mount_dir *place)
{
        struct error ignored;
        unsigned missing;

        return mount_dir_look(call, place->dir, &missing, &ignored) == MOUNT_DIR_OURS ||
               (strcmp(call->record.boot_id, call->boot_id) == 0 && volume_record_dir_has(place) > 0);
}

bool mount_dir_is_staged(const struct volume_call *call)
{
        struct error ignored;
        unsigned missing;

        return call->record.staged.dir != NULL &&
               mount_dir_look(call, call->record.staged.dir, &missing, &ignored) == MOUNT_DIR_OURS;
}

int mount_dir_find(const struct volume_call *call, char *ret_dir, struct error *error)
{
        cleanup_mount_table struct mountinfo table = {};
        unsigned ignored;
        int r;

        if ((r = mountinfo_open_own(&table)) < 0)
                return fail(error, -r, "open", "mountinfo");
        while (mountinfo_next(&table))
                if ((table.device == call->record.device_number || mountinfo_names(&table, call->record.device)) &&
                    text_copy(ret_dir, PATH_MAX, table.mount_point) &&
                    mount_dir_look(call, ret_dir, &ignored, error) == MOUNT_DIR_OURS)
                        return 0;
        return table.failed ? fail(error, EIO, "read", "mountinfo") : -ENOENT;
}

int mount_dir_make(const char *dir, unsigned made, struct error *error)
{
        char path[PATH_MAX];

        while (made-- > 0) {
                const char *end = dir + strlen(dir);

                for (unsigned i = 0; i < made; i++)
                        do
                                end--;
                        while (*end != '/');
                (void)snprintf(path, sizeof path, "%.*s", (int)(end - dir), dir);
                if (mkdirat(AT_FDCWD, path, 0750) < 0 && errno != EEXIST)
                        return fail(error, errno, "mkdir", path);
        }
        return 0;
}

/* The parent directories that are missing; on_node_place_file() makes the file. */
static int make_parents(const char *path, unsigned made, struct error *error)
{
        char parent[PATH_MAX];

        if (made < 2)
                return 0;
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
        return mount_dir_make(parent, made - 1, error);
}

/* An empty directory, or the empty file below a device. A missing one was never made: the call was killed before. */
static bool remove_bare(const char *path)
{
        struct stat st;

        if (unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
                return true;
        return errno == ENOTDIR && fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
               st.st_size == 0 && unlinkat(AT_FDCWD, path, 0) == 0;
}

void mount_dir_unmake(const char *dir, unsigned made)
{
        char path[PATH_MAX];

        (void)text_copy(path, sizeof path, dir); /* it fits */
        while (made-- > 0 && remove_bare(path))
                *strrchr(path, '/') = '\0';
}

static bool is_read_only_device(const char *path)
{
        cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        int read_only = 0;

        return fd >= 0 && ioctl(fd, BLKROGET, &read_only) == 0 && read_only != 0;
}

bool mount_dir_reads_only(const char *dir)
{
        cleanup_close int fd = open(dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct statfs fs;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return false;
        if (S_ISBLK(st.st_mode))
                return is_read_only_device(dir);
        return fstatfs(fd, &fs) == 0 && ((unsigned long)fs.f_flags & ST_RDONLY) != 0;
}

static void adopt_device(const struct volume_call *call, struct mount_dir *place)
{
        struct stat st;

        if (!call->request->block || fstatat(AT_FDCWD, place->dir, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISBLK(st.st_mode) || st.st_rdev == call->record.device_number)
                return;
        place->pod_device = st.st_rdev;
        place->pod_source = call->record.device_number;
        place->pod_writes = !place->read_only;
}

int mount_dir_adopt(struct volume_call *call, const char *dir, bool staged, struct error *error)
{
        struct mount_dir *place;
        struct mount_seen seen;
        int r = mount_see(AT_FDCWD, dir, &seen);

        if (r < 0)
                return fail(error, -r, "stat", dir);
        if ((r = volume_record_remember(&call->record, dir, staged, 0, &seen.identity, error)) < 0)
                return r;
        place = volume_record_mount_dir(&call->record, dir);
        place->read_only = !staged && mount_dir_reads_only(dir);
        adopt_device(call, place);
        return volume_call_save(call, FILE_ORDERED, error);
}

int mount_dir_save(struct volume_call *call, struct error *error)
{
        const struct volume_record *record = &call->record;

        if (!volume_kind_has_device(record->kind) && record->published_count == 0 && record->staged.dir == NULL)
                return volume_call_remove_record(call, error);
        return volume_call_save(call, FILE_ORDERED, error);
}

int mount_dir_save_unmounted(struct volume_call *call, struct error *error)
{
        int r = mount_dir_save(call, error);

        if (r != -ENOSPC && r != -EDQUOT && r != -EROFS)
                return r;
        log_say("the record cannot be written: %s", error_text(-r)); /* detach removes it */
        return 0;
}

static int place(const struct volume_call *call, int mount_fd, unsigned made, struct error *error)
{
        const char *dir = call->request->dir;
        int r = call->request->block ? make_parents(dir, made, error) : mount_dir_make(dir, made, error);

        if (r < 0)
                return r;
        return call->request->block ? on_node_place_file(mount_fd, dir, error) : on_node_place(mount_fd, dir, error);
}

static bool is_in_table(int mount_fd)
{
        cleanup_mount_table struct mountinfo table = {};

        return mountinfo_find_own(&table, mount_fd) != 0; /* also where that cannot be seen */
}

static void take_back(struct volume_call *call, const struct mount_dir_new *new, const struct mount_seen *meant,
                      bool placed)
{
        const char *dir = call->request->dir;
        struct error ignored; /* the first failure is the one to report */
        struct mount_seen seen;

        if (placed && is_in_table(new->mount_fd)) {
                /* beneath another process's mount ours stays, and its record: umount2(2) would take the topmost off */
                if (mount_see(AT_FDCWD, dir, &seen) < 0 || !mount_seen_is(&seen, &meant->identity))
                        return;
                (void)on_node_unmount(dir, MNT_DETACH, call->config.unmount_seconds, &ignored);
        }
        mount_dir_unmake(dir, new->made);
        if (new->device != NULL)
                pod_device_release(new->device); /* what is open cannot be taken away */
        if (pod_device_give_back(call, volume_record_mount_dir(&call->record, dir), &ignored) < 0 ||
            (call->kind->has_made != NULL && call->kind->has_made(call->config.state_dir, dir)))
                return; /* the record names it, for a later call: unmount deletes what was made for the directory */
        volume_record_forget(&call->record, dir);
        if (call->recorded)
                (void)mount_dir_save(call, &ignored);
}

/* Writes it into the record. */
static int note(struct volume_call *call, const struct mount_dir_new *new, const struct mount_seen *meant,
                struct error *error)
{
        const char *dir = call->request->dir;
        struct mount_dir *entry;
        int r = volume_record_remember(&call->record, dir, new->staged, new->made, &meant->identity, error);

        if (r < 0)
                return r;
        entry = volume_record_mount_dir(&call->record, dir);
        entry->read_only = call->request->read_only;
        entry->remap_key = new->served.key;
        entry->source_device = new->served.source_device;
        entry->waits_for_users = new->served.waits_for_users;
        entry->source_key = new->served.source_key;
        entry->source_reads_only = new->served.source_reads_only;
        if (new->device != NULL) {
                entry->pod_device = new->device->number;
                entry->pod_source = call->record.device_number;
                entry->pod_writes = new->device->writes;
        }
        if (new->staged && major(meant->device) == 0)
                call->record.filesystem = meant->device; /* btrfs shows another number than its device's */
        return volume_call_save(call, new->durability, error);
}

int mount_dir_put(struct volume_call *call, const struct mount_dir_new *new, struct error *error)
{
        const char *dir = call->request->dir;
        struct mount_seen meant;
        struct mount_seen seen;
        bool placed = false;
        int r;

        if ((r = mount_see(new->mount_fd, "", &meant)) < 0)
                return fail(error, -r, "statx", dir);
        if ((r = note(call, new, &meant, error)) == 0 &&
            (r = new->device == NULL ? 0 : pod_device_keep(new->device, error)) == 0 &&
            (r = new->staged ? 0 : volume_access_check(call, error)) == 0 &&
            (r = place(call, new->mount_fd, new->made, error)) == 0) {
                placed = true;
                if ((r = mount_see(AT_FDCWD, dir, &seen)) < 0)
                        r = fail(error, -r, OPERATION_LOOK_AGAIN, dir);
                else if (!mount_seen_is(&seen, &meant.identity))
                        r = fail_because(error, ESTALE, OPERATION_LOOK_AGAIN, dir,
                                         "another process mounted on %s meanwhile; unmount that and try again", dir);
        }
        if (r < 0 && volume_record_mount_dir(&call->record, dir) != NULL)
                take_back(call, new, &meant, placed);
        return r;
}
