/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_node.h - a detached mount onto a directory of the node, and off it again.
 */
#ifndef FLEXGRAFT_MOUNT_ON_NODE_H
#define FLEXGRAFT_MOUNT_ON_NODE_H

#include <stdbool.h>

#include "base/error.h"
#include "mount/identity.h"

/*
 * on_node_place() - put it there; in one step, so that the directory is never seen half mounted.
 *
 * Takes:   mount_fd, borrowed; dir, a directory that is there. A symbolic link in its place is refused. An automount
 *          there is not set off: it may be this mount that it waits for.
 */
int on_node_place(int mount_fd, const char *dir, struct error *error);

/* on_node_place_at() - the same, where the directory is open (O_PATH, without O_DIRECTORY). */
int on_node_place_at(int mount_fd, int dir_fd, const char *dir, struct error *error);

/*
 * on_node_place_beneath() - put it under the mount whose root is open (O_PATH), which shows until it is taken off. Mount
 * namespaces that get what is mounted there get that, too. Errors: EINVAL before Linux 6.5, or the mount is at no path of
 * ours, or it shows the directory on which it is mounted.
 *
 * on_node_take_off() - unmount, lazily, the mount that fd is on, whatever is at its path by now; what is mounted below it
 * goes with it, there and where that was propagated to.
 *
 * on_node_has_below() - whether anything is mounted on the mount that fd is on, or below. Returns 1 or 0, or negative errno.
 */
int on_node_place_beneath(int mount_fd, int top_fd, const char *dir, struct error *error);
int on_node_take_off(int fd, const char *dir, struct error *error);
int on_node_has_below(int fd);

/*
 * on_node_place_file() - put a mount of a file, as a device's node, on a file: an empty one, which is made if there is
 * none. Errors: ELOOP it is a link; EEXIST it is no empty file.
 */
int on_node_place_file(int mount_fd, const char *path, struct error *error);

/*
 * on_node_has() - whether the mount namespace that we are in has the mount, also where its directory does not show it:
 * below another mount, or below a directory that is covered.
 *
 * Takes:   identity, of this boot; dir, on which it was mounted.
 * Returns: 1 or 0, or negative errno.
 */
int on_node_has(const struct mount_identity *identity, const char *dir);

/*
 * on_node_remove() - take off all that is mounted on a directory, and below it.
 *
 * What is there is neither opened nor asked anything, so a server that is dead or silent does not matter; nothing below
 * is reached through a name that a pod could turn into a link. What is busy is tried again until the time is over;
 * what then is left is detached lazily, all of it at once, if we insist.
 *
 * Needs:   CAP_SYS_ADMIN.
 * Gives:   ret_lazy, whether that happened.
 * Returns: 1 something was mounted, 0 nothing was (or there is no such directory).
 * Errors:  EPERM, EACCES, ...; EBUSY, where we do not insist; ETIMEDOUT not even that came back.
 */
int on_node_remove(const char *dir, unsigned timeout_seconds, bool insist, bool *ret_lazy, struct error *error);

/*
 * on_node_unmount() - the topmost mount on a directory alone, with these flags of umount2(2), which takes the mount off
 * first and then ends the filesystem if that was its last: where it waits for a dead server then (nfs4_destroy_session()
 * of fs/nfs/nfs4session.c), it is killed when the time is over, and the mount is gone all the same.
 *
 * Errors: EINVAL nothing is mounted there; EBUSY; ETIMEDOUT the mount is still there.
 */
int on_node_unmount(const char *dir, int flags, unsigned timeout_seconds, struct error *error);

#endif
