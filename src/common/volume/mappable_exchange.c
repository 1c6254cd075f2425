/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/mappable_exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "base/fd.h"
#include "daemon/id_mappable.h"
#include "daemon/remap.h"
#include "mount/detached.h"
#include "mount/on_node.h"
#include "mount/options.h"
#include "process/log.h"
#include "volume/mappable_daemon.h"
#include "volume/mount_dir.h"

/* What the directory shows. An automount there is not set off. */
static int open_top(const struct mount_dir *place, struct mount_seen *ret_seen, struct error *error)
{
        cleanup_close int fd = open(place->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : mount_see(fd, "", ret_seen);

        return r < 0 ? fail(error, -r, "find mount", place->dir) : fd_take(&fd);
}

static int check_below(int top_fd, const char *dir, struct error *error)
{
        int r = on_node_has_below(top_fd);

        if (r < 0)
                return fail(error, -r, "read", "mountinfo");
        return r == 0 ? 0
                      : fail_because(error, EBUSY, "exchange mount", dir,
                                     "something is mounted on %s, or below it; unmount that first", dir);
}

/* ---- after the new mount is in its place */

static int complete(struct volume_call *call, struct mount_dir *place, struct error *error)
{
        place->replaces = 0;
        place->waits_for_users = false;
        return volume_call_save(call, FILE_ORDERED, error);
}

static int finish(struct volume_call *call, struct mount_dir *place, int top_fd, struct error *error)
{
        int r = check_below(top_fd, place->dir, error); /* it would go with it */

        if (r < 0 || (r = on_node_take_off(top_fd, place->dir, error)) < 0)
                return r;
        log_say("%s has a mount now that the pod's runtime can id-map", place->dir);
        return complete(call, place, error);
}

/* ---- of a call that was killed, or failed */

static int roll_back(struct volume_call *call, struct mount_dir *place, const struct mount_identity *former,
                     struct error *error)
{
        place->identity = *former;
        place->replaces = 0;
        place->remap_key = 0;
        place->source_device = 0;
        return volume_call_save(call, FILE_ORDERED, error);
}

int volume_mappable_settle(struct volume_call *call, struct mount_dir *place, struct error *error)
{
        cleanup_close int top_fd = -EBADF;
        struct mount_seen seen;
        int r;

        if (place->replaces == 0)
                return 0;
        top_fd = open_top(place, &seen, error);
        if (top_fd < 0)
                return top_fd;
        if (mount_seen_is(&seen, &place->identity)) /* the old one is off */
                return complete(call, place, error);
        if (!volume_record_dir_shows(place, &seen))
                return 0;
        r = on_node_has(&place->identity, place->dir);
        if (r < 0)
                return fail(error, -r, "find mount", place->dir);
        if (r > 0 && (r = id_mappable_is_served(call->config.state_dir, place->remap_key, error)) < 0)
                return r;
        /* a mount whose daemon has exited may stay beneath, until the pod's volume is unmounted */
        return r == 0 ? roll_back(call, place, &seen.identity, error) : finish(call, place, top_fd, error);
}

/* ---- the exchange */

/* A mount of what clone_fd is of, with its attributes, which are those of the pod. */
static int serve(const struct volume_call *call, int clone_fd, const char *dir, struct volume_served *ret_served,
                 struct error *error)
{
        struct mount_attributes own = { .propagation = (uint64_t)call->request->mount_options.propagation };
        int r = mount_options_of(clone_fd, &own.set);

        return r < 0 ? fail(error, -r, "statfs", dir)
                     : volume_mappable_mount(call, clone_fd, dir, &own, ret_served, error);
}

/* Writes the new mount into the record, and puts it beneath. */
static int put_beneath(struct volume_call *call, struct mount_dir *place, int mount_fd, int top_fd,
                       const struct volume_served *served, struct error *error)
{
        const struct mount_identity former = place->identity;
        struct error ignored; /* the first failure is the one to report */
        struct mount_seen meant;
        int r = mount_see(mount_fd, "", &meant);

        if (r < 0)
                return fail(error, -r, "statx", place->dir);
        place->replaces = former.id;
        place->identity = meant.identity;
        place->remap_key = served->key;
        place->source_device = served->source_device;
        place->source_reads_only = served->source_reads_only;
        if ((r = volume_call_save(call, FILE_ORDERED, error)) < 0 ||
            (r = on_node_place_beneath(mount_fd, top_fd, place->dir, error)) < 0)
                (void)roll_back(call, place, &former, &ignored); /* if it cannot be written the next call does it */
        return r;
}

int volume_mappable_exchange(struct volume_call *call, struct mount_dir *place, bool try_only, struct error *error)
{
        cleanup_close int top_fd = -EBADF;
        cleanup_close int clone_fd = -EBADF;
        cleanup_close int mount_fd = -EBADF;
        struct mount_seen seen;
        struct volume_served served;
        int r;

        top_fd = open_top(place, &seen, error);
        if (top_fd < 0)
                return top_fd;
        if (!mount_seen_is(&seen, &place->identity))
                return fail_because(error, EBUSY, "exchange mount", place->dir,
                                    "something else is mounted on %s; unmount that first", place->dir);
        clone_fd = detached_mount_clone(top_fd, place->dir, /* recursive= */ false, error);
        if (clone_fd < 0)
                return clone_fd;
        if ((r = id_mappable_try(clone_fd, place->dir, /* recursive= */ false, error)) <= 0)
                return r;
        if (!seen.identity.unique) /* Linux 6.8 */
                return fail_because(error, ENOSYS, "id-map", "fuse",
                                    "this kernel cannot id-map a FUSE filesystem; use Linux 6.12 or later");
        if ((r = check_below(top_fd, place->dir, error)) < 0 || try_only)
                return r < 0 ? r : 1;
        mount_fd = serve(call, clone_fd, place->dir, &served, error);
        if (mount_fd < 0)
                return mount_fd;
        if ((r = put_beneath(call, place, mount_fd, top_fd, &served, error)) < 0)
                return r;
        r = finish(call, place, top_fd, error);
        return r < 0 ? r : 1;
}

void volume_mappable_limit_starts(unsigned seconds)
{
        remap_limit_starts(seconds);
}
