/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_nfs_share.h - the share of a pool of type nfs, mounted for the length of a call, and the directories on it.
 */
#ifndef FLEXGRAFT_POOL_POOL_NFS_SHARE_H
#define FLEXGRAFT_POOL_POOL_NFS_SHARE_H

#include <stdbool.h>

#include "base/error.h"
#include "pool/pool_kind.h"
#include "state/config.h"

/* pool_nfs_allow() - for pool_kinds_allow(). */
void pool_nfs_allow(void);

/*
 * pool_nfs_close_share() - close the share that is kept open between functions, in a worker: it is the last descriptor of
 * its mount, whose end waits for the server. One that does not answer is left to the kernel after two seconds; the program
 * would wait for it else when it exits, however long that is. Call it in the program, after its worker.
 */
void pool_nfs_close_share(void);

/* pool_nfs_close_here() - the same in a worker: it is that which may hang. */
void pool_nfs_close_here(void);

/*
 * pool_nfs_open_share() - its root. Returns: a descriptor, owned by the caller; the mount ends with the process.
 * Errors: EOPNOTSUPP without pool_kinds_allow(); those of nfs_mount_on_node().
 */
int pool_nfs_open_share(const struct config *config, const struct pool *pool, struct error *error);

/*
 * pool_nfs_mount_volume() - a volume of such a pool, as a detached mount of its directory with the pool's options and the
 * mount flags of its record; the path leads through no symbolic link, which others who have the share may make.
 *
 * Gives:   ret_attributes, which MOUNT_ATTR_* those say, for the caller to set.
 * Returns: its descriptor, owned by the caller.
 * Errors:  those of pool_find() and pool_nfs_open_share(); ENODEV the pool has become one of another type, or the
 *          directory is not there; ESTALE another one has its name.
 */
int pool_nfs_mount_volume(const struct config *config, const struct provision_record *record, uint64_t *ret_attributes,
                          struct error *error);

/* pool_nfs_open_below() - a directory, beneath it and through no symbolic link. Errors: ENOENT, without a message. */
int pool_nfs_open_below(int share_fd, const char *path, struct error *error);

/*
 * pool_nfs_open_parent() - likewise the directory that has it. make: ensure that there is one.
 * Gives: ret_name, where in path its own name begins.
 */
int pool_nfs_open_parent(int share_fd, const char *path, bool make, const char **ret_name, struct error *error);

/*
 * pool_nfs_put_identity() - the server's handle of a directory (name in fd, or "": fd itself), as PROVISION_IDENTITY_MAX
 * bytes for the record: another of the same name, and even of the same inode, has another. "" where the kernel does not
 * tell.
 */
void pool_nfs_put_identity(int fd, const char *name, char *ret_identity);

#endif
