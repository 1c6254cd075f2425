/* SPDX-License-Identifier: Apache-2.0 */
/* node_remount.c - other attributes of a mount of a volume on a directory of this node (named/node_mount.h). */
#include <errno.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "mount/detached.h"
#include "named/node_mount.h"
#include "process/worker.h"
#include "volume/by_name.h"
#include "volume/mount_dir.h"

/* Without the option that sets them they go, as with mount(2): mount(8) does not pass on exec, suid and the like. */
#define ATTRIBUTES_SAID                                                                                                \
        (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW)

static struct volume_by_name volume = VOLUME_BY_NAME_NONE;

struct job {
        const struct node_mount *mount;
        bool fake;
};

/* Of the mount alone: its filesystem may be mounted in containers, too. */
static int set_attributes(const struct node_mount *mount, struct error *error)
{
        const struct mount_attributes attributes = { .set = mount->set,
                                                     .clear = mount->clear | (ATTRIBUTES_SAID & ~mount->set),
                                                     .propagation = (uint64_t)mount->propagation };

        return node_mounted_set(mount->target, &attributes, error);
}

/* Whether it will refuse writes; what is not said stays. */
static bool reads_only(const struct node_mount *mount)
{
        return ((mount->set | mount->clear) & MOUNT_ATTR_RDONLY) != 0 ? (mount->set & MOUNT_ATTR_RDONLY) != 0
                                                                      : mount_dir_reads_only(mount->target);
}

static int check(const struct node_mount *mount, struct error *error)
{
        struct volume_call *call = &volume.call;
        int r = node_mounted_look(call, mount->target, error);

        if (r < 0)
                return r;
        if (r == 0 || volume_record_mount_dir(&call->record, mount->target) == &call->record.staged)
                return fail_because(error, EINVAL, OPERATION_FIND_TARGET, mount->target,
                                    "volume %.200s is not mounted here, so it cannot be remounted", mount->name);
        return reads_only(mount) ? 0 : node_mounted_check_writes(call, error);
}

static int note(struct mount_dir *place, bool read_only, struct error *error)
{
        if (place->read_only == read_only)
                return 0;
        place->read_only = read_only;
        return mount_dir_save(&volume.call, error);
}

static int work(void *argument, struct error *error)
{
        const struct job *job = argument;
        const struct node_mount *mount = job->mount;
        struct mount_dir *place;
        struct error ignored; /* the first failure is the one to report */
        bool will;
        int r = volume_by_name_hold(&volume, mount->name, job->fake, error);

        if (r < 0 || (r = check(mount, error)) < 0 || job->fake)
                return r;
        place = volume_record_mount_dir(&volume.call.record, mount->target); /* check() has seen to it */
        will = reads_only(mount);
        if ((r = note(place, place->read_only && will, error)) < 0) /* killed, it counts as one that writes */
                return r;
        if ((r = set_attributes(mount, error)) < 0) {
                (void)note(place, mount_dir_reads_only(mount->target), &ignored);
                return r;
        }
        return note(place, will, error);
}

int node_remount(const struct node_mount *mount, bool fake, struct error *error)
{
        struct job job = { .mount = mount, .fake = fake };
        struct config config;
        int r = config_load(&config, error);

        if (r < 0)
                return r;
        r = worker_run(work, &job, clock_now_ms() + (int64_t)config.call_seconds * 1000, error);
        volume_by_name_release(&volume);
        return r;
}
