/* SPDX-License-Identifier: Apache-2.0 */
#include "named/node_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/mountinfo.h"
#include "mount/on_node.h"
#include "mount/superblock.h"
#include "pool/pool_kind.h"
#include "process/worker.h"
#include "volume/by_name.h"
#include "volume/exec_helpers.h"
#include "volume/mount_dir.h"

#define UNDO_UNMOUNT_S 10 /* what it may take to unmount a volume that nobody uses */
#define UNDO_MS 20000     /* that, what is detached lazily, and to detach the device */

static struct volume_by_name volume = VOLUME_BY_NAME_NONE;

struct job {
        const struct node_mount *mount;
        struct provision_request create;
        bool fake;
};

int node_mount_begin(const char *name, int argc, char **argv, struct error *error)
{
        bool any_filesystem; /* which is the same for the node */

        pool_kinds_allow(); /* the volume may be on a share, or be made there */
        return volume_exec_helpers_begin_for(volume_by_name_runs(name, &any_filesystem), argc, argv, error);
}

/* ---- the mount */

/* What mountinfo says of a mount of ours. */
static bool find_type(int fd, char *ret_type, size_t size)
{
        cleanup_mount_table struct mountinfo table = {};

        return mountinfo_find_own(&table, fd) > 0 && text_copy(ret_type, size, table.type);
}

/*
 * A mount of the stage's superblock that the kernel shows with the volume's name as its source, so that findmnt(8),
 * "umount NAME" and "mount -a" know it by that. The kernel shows what it was given, and resolves that as any path (seen on
 * 6.18 and 6.1): in a directory where the name is a link to the device.
 */
static int mount_named(const struct volume_call *call, const char *type, struct error *error)
{
        const struct mount_options none = {};
        const char *name = call->request->name;
        cleanup_close int directory_fd = superblock_new_tmpfs(error);
        cleanup_close int context_fd = -EBADF;
        int r;

        if (directory_fd < 0)
                return directory_fd;
        if (symlinkat(call->record.device, directory_fd, name) < 0 || fchdir(directory_fd) < 0)
                return fail(error, errno, "symlink", name);
        context_fd = superblock_open(type, error);
        r = context_fd < 0 ? context_fd
                           : superblock_create_on(context_fd, type, name, &none, call->record.read_only, error);
        if (chdir("/") < 0)
                return fail(error, errno, "chdir", "/");
        return r < 0 ? r
                     : superblock_mount(
                               context_fd, name,
                               (unsigned)(call->request->mount_options.attr_set & ~(uint64_t)MOUNT_ATTR_RDONLY), error);
}

/* Of the stage, where its filesystem has one superblock for its device, whatever the path; btrfs shows a path of its own. */
static int mount_stage(const struct volume_call *call, int stage_fd, struct error *error)
{
        static const char *const types[] = { "ext2", "ext3", "ext4", "xfs", NULL };
        struct error ignored;
        char type[32];

        if (call->kind->has_device && strchr(call->request->name, '/') == NULL &&
            find_type(stage_fd, type, sizeof type) && text_among(type, types)) {
                int fd = mount_named(call, type, &ignored);

                if (fd >= 0)
                        return fd;
        }
        return detached_mount_clone(stage_fd, call->request->name, /* recursive= */ false, error);
}

static int give_owner(const struct node_mount *mount, int mount_fd, struct error *error)
{
        struct stat st;

        if (fstatat(mount_fd, "", &st, AT_EMPTY_PATH) < 0)
                return fail(error, errno, "stat", mount->name);
        if (!mount->owned || (st.st_uid == mount->uid && st.st_gid == mount->gid))
                return 0;
        if ((mount->set & MOUNT_ATTR_RDONLY) != 0)
                return fail_because(error, EROFS, "chown", mount->name,
                                    "the directory has another owner than owner=, and is to be mounted read-only");
        return fchownat(mount_fd, "", mount->uid, mount->gid, AT_EMPTY_PATH) < 0
                       ? fail(error, errno, "chown", mount->name)
                       : 0;
}

static int set_attributes(const struct node_mount *mount, int mount_fd, struct error *error)
{
        struct mount_attributes attributes = { .set = mount->set, .clear = mount->clear };
        cleanup_close int user_ns_fd = -EBADF;

        volume_by_name_add_attributes(&volume, &attributes);
        if (mount->map.user_count > 0 && (user_ns_fd = idmap_open(&mount->map, error)) < 0)
                return user_ns_fd;
        return detached_mount_set(mount_fd, mount->name, &attributes, user_ns_fd, error);
}

static int make(const struct node_mount *mount, struct error *error)
{
        cleanup_close int stage_fd = volume_by_name_stage(&volume, error);
        cleanup_close int mount_fd = -EBADF;
        int r;

        if (stage_fd < 0)
                return stage_fd;
        if ((mount->set & MOUNT_ATTR_RDONLY) == 0 && (r = node_mounted_check_writes(&volume.call, error)) < 0)
                return r;
        mount_fd = volume_by_name_is_apart(&volume) ? fd_take(&stage_fd) : mount_stage(&volume.call, stage_fd, error);
        if (mount_fd >= 0 && mount->subdir != NULL)
                mount_fd = detached_mount_descend(mount_fd, mount->subdir, mount->name, error);
        if (mount_fd < 0 || (r = give_owner(mount, mount_fd, error)) < 0 ||
            (r = set_attributes(mount, mount_fd, error)) < 0)
                return mount_fd < 0 ? mount_fd : r;
        return fd_take(&mount_fd);
}

/* Below a shared mount it has become a shared one. */
static int set_propagation(const struct node_mount *mount, int mount_fd, struct error *error)
{
        const struct mount_attributes attributes = { .propagation = (uint64_t)mount->propagation };
        struct error ignored; /* the first failure is the one to report */
        int r = mount->propagation == 0 ? 0 : detached_mount_set(mount_fd, mount->name, &attributes, -EBADF, error);

        if (r < 0 && on_node_unmount(mount->target, MNT_DETACH, volume.call.config.unmount_seconds, &ignored) == 0) {
                volume_record_forget(&volume.call.record, mount->target);
                (void)mount_dir_save(&volume.call, &ignored);
        }
        return r;
}

static int place(const struct node_mount *mount, struct error *error)
{
        cleanup_close int mount_fd = make(mount, error);
        int r;

        if (mount_fd < 0)
                return mount_fd;
        (void)text_copy(volume.request.dir, sizeof volume.request.dir, mount->target); /* it fits */
        volume.request.read_only = (mount->set & MOUNT_ATTR_RDONLY) != 0;
        if (!volume.call.kind->has_device)
                volume_call_init_record(&volume.call);
        r = mount_dir_put(&volume.call, &(struct mount_dir_new){ .mount_fd = mount_fd, .durability = FILE_ORDERED },
                          error);
        return r < 0 ? r : set_propagation(mount, mount_fd, error);
}

static int work(void *argument, struct error *error)
{
        const struct job *job = argument;
        const struct node_mount *mount = job->mount;
        int r;

        if ((r = volume_by_name_hold(&volume, mount->name, job->fake, error)) < 0 ||
            (r = node_mounted_look(&volume.call, mount->target, error)) != 0 ||
            (r = volume_by_name_choose(&volume, mount->fs_type, mount->size_bytes > 0 ? &job->create : NULL, error)) <
                    0 ||
            job->fake)
                return r;
        return place(mount, error);
}

/* What was staged for this mount alone. */
static int undo(void *argument, struct error *error)
{
        (void)argument;
        return volume_by_name_let_go(&volume, /* mount_id= */ NULL, error);
}

int node_mount(const struct node_mount *mount, bool fake, struct error *error)
{
        struct job job = { .mount = mount,
                           .create = { .verb = PROVISION_CREATE,
                                       .name = mount->name,
                                       .pool = mount->pool,
                                       .profile = mount->profile,
                                       .target_type = "mount",
                                       .fs_type = mount->fs_type,
                                       .size_bytes = mount->size_bytes },
                           .fake = fake };
        struct config config;
        struct error ignored; /* the first failure is the one to report */
        int r = config_load(&config, error);

        if (r < 0)
                return r;
        r = worker_run(work, &job,
                       clock_now_ms() +
                               (int64_t)(config.call_seconds + config.device_seconds + 2 * config.command_seconds) *
                                       1000,
                       error);
        if (r < 0 && volume.changed && !volume_exec_helpers_end_killed()) {
                if (volume.call.config.unmount_seconds > UNDO_UNMOUNT_S)
                        volume.call.config.unmount_seconds = UNDO_UNMOUNT_S;
                (void)worker_run(undo, NULL, clock_now_ms() + UNDO_MS, &ignored);
        }
        volume_exec_helpers_end();
        volume_by_name_release(&volume);
        return r;
}
