/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authority.h - who decides who may do what on a filesystem.
 */
#ifndef FLEXGRAFT_MOUNT_AUTHORITY_H
#define FLEXGRAFT_MOUNT_AUTHORITY_H

#include <stdbool.h>

enum authority {
        AUTHORITY_UNKNOWN, /* no filesystem for files of users (/proc), or one that is not known here */
        AUTHORITY_KERNEL,  /* this node's kernel alone */
        AUTHORITY_OTHERS, /* others too: a server, other nodes, or a FUSE daemon, by the ids of the process that asks */
};

/*
 * authority_of() - by the type of the filesystem that a descriptor is on. It waits for one that does not answer. Needs
 * name_to_handle_at(2). Returns: the authority, or negative errno.
 *
 * authority_is_known() - whether that is known, without asking which it is, and the filesystem is for files of users.
 * Returns: 1, 0 or negative errno.
 *
 * authority_is_mounted_as() - whether the mount namespace of this process has a mount of that filesystem with that type,
 * which statfs(2) need not tell; or that is not known.
 */
int authority_of(int fd);
int authority_is_known(int fd);
bool authority_is_mounted_as(const char *type, int fd);

#endif
