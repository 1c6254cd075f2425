/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authority.h - who decides who may do what on a filesystem.
 */
#ifndef FLEXGRAFT_MOUNT_AUTHORITY_H
#define FLEXGRAFT_MOUNT_AUTHORITY_H

enum authority {
        AUTHORITY_UNKNOWN, /* no filesystem for files of users (/proc), or one that is not known here */
        AUTHORITY_KERNEL,  /* this node's kernel alone */
        AUTHORITY_OTHERS, /* others too: a server, other nodes, or a FUSE daemon, by the ids of the process that asks */
};

/*
 * authority_of() - by the type of the filesystem that a descriptor is on. It waits for one that does not answer. Needs
 * name_to_handle_at(2). Returns: the authority, or negative errno.
 *
 * authority_is_known() - whether that is known, without asking which it is. Returns: 1, 0 or negative errno.
 */
int authority_of(int fd);
int authority_is_known(int fd);

#endif
