/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap.h - "ids": "remap": for a mount that the kernel cannot id-map, remap-daemon (src/remap/) serves a FUSE
 * filesystem that the container's user namespace owns, and accesses the mount with the container's ids.
 *
 * A mount helper may not execute programs. So before it drops its privileges it starts a helper process, which executes
 * remap-daemon, and nothing else, when the mount helper orders it to.
 */
#ifndef FLEXGRAFT_DAEMON_REMAP_H
#define FLEXGRAFT_DAEMON_REMAP_H

#include <stdbool.h>
#include <sys/mount.h>

#include "base/error.h"
#include "container/container.h"
#include "mount/remap_settings.h"
#include "state/state_dir.h"

/* remap_begin() - start the helper process, before privileges_drop(). It ends with the program. */
int remap_begin(int argc, char **argv, struct error *error);

/*
 * remap_begin_for() - start it if the request may have "ids" or "fallback": "remap", as json_text_may_have() says: it is
 * parsed later, without privileges. So is one on standard input, for which it is started, too.
 */
int remap_begin_for(int argc, char **argv, struct error *error);

/* remap_begin_mappable() - the same for remap_mount_mappable() alone, whose daemon serves the node. */
int remap_begin_mappable(int argc, char **argv, struct error *error);

/*
 * remap_limit_starts() - before remap_begin_mappable(): give up a daemon that does not serve after so many seconds, so that the
 * helper process can start another. Without it one takes the time that its caller has.
 */
void remap_limit_starts(unsigned seconds);

/* remap_begin_heirs() - the same for remap_start_heir() alone. */
int remap_begin_heirs(int argc, char **argv, struct error *error);

/*
 * remap_start_heir() - start the installed remap-daemon as the heir of another (daemon/keeper.h). Needs the helper process
 * of remap_begin_heirs().
 *
 * Takes:  socket_fd, borrowed: the heir has a copy, and no other process when the caller has closed its own.
 * Gives:  ret_pid, which no other process has before remap_hear_heir().
 * Errors: ENOENT remap-daemon is not installed.
 *
 * remap_hear_heir() - wait until it serves, or has ended. Errors: the heir's (heir_take_over() of src/remap).
 */
int remap_start_heir(int socket_fd, int *ret_pid, struct error *error);
int remap_hear_heir(struct error *error);

/* What remap-daemon serves. */
struct remap_source {
        int mount_fd;     /* a detached mount, borrowed: the daemon keeps a copy */
        const char *name; /* shown as the mount's source */
        enum remap_cache cache;
        const struct id_maps *ids; /* of the container that it is of, which counts its owners; NULL: nobody else does */
        const struct state *state; /* the directory of the daemon's lock */
};

/* What a daemon's mount has of the source's besides what was asked for; "ro" holds behind the daemon. */
#define REMAP_KEPT_ATTRIBUTES ((uint64_t)(MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW))

/*
 * remap_mount() - start remap-daemon for a detached mount, and make a FUSE filesystem of the container's user namespace.
 *
 * Runs in: a worker on the node. Needs CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID and the helper process.
 * Gives:   ret_key, the lock that the daemon holds while it runs (mount_record_remap_lives()); ret_pid, its pid.
 * Returns: the detached FUSE mount's descriptor, owned by the caller. The daemon exits when that and every mount made
 *          of it are gone.
 * Errors:  ENOSYS the helper process was not started; ENOENT remap-daemon is not installed; ENODEV no FUSE in this
 *          kernel. A daemon ends when the program ends before it serves.
 * Source:  /dev/fuse has to be opened, and the filesystem made, in the same user namespace (fuse_fill_super()).
 */
int remap_mount(const struct remap_source *source, const struct container *container, uint64_t *ret_key, int *ret_pid,
                struct error *error);

/*
 * remap_mount_mappable() - start remap-daemon for a detached mount, and make a FUSE filesystem of the node's own, whose
 * mounts the kernel can id-map, each with a map of its own (docs/KERNEL.md).
 *
 * Runs in: a worker on the node. Needs CAP_SYS_ADMIN, and the helper process of remap_begin_mappable().
 * Takes:   attributes, MOUNT_ATTR_* of the mount.
 * Gives and returns: as remap_mount(). The daemon leaves the control groups of the program that starts it.
 * Errors: ENOSYS, before Linux 6.12, too; ETIMEDOUT by remap_limit_starts(); the others of remap_mount().
 */
int remap_mount_mappable(const struct remap_source *source, unsigned attributes, uint64_t *ret_key, int *ret_pid,
                         struct error *error);

#endif
