/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs.h - an export of an NFS server as a detached mount: where it is, which version it speaks.
 */
#ifndef FLEXGRAFT_MOUNT_NFS_H
#define FLEXGRAFT_MOUNT_NFS_H

#include "base/error.h"
#include "container/container.h"
#include "mount/nfs_export.h"
#include "mount/nfs_server.h"
#include "mount/options.h"

#define NFS_VERSION_SIZE 8

/* nfs_harmless_options - options of nfs(5) that a policy need not list, ended by NULL. */
extern const char *const nfs_harmless_options[];

struct nfs_mount {
        const struct nfs_export *export;
        const struct mount_options *options; /* those of nfs(5) go to the kernel as they are */
        const struct container *container;   /* whose network namespace and names; NULL: the node's */
        bool read_only;
        bool no_locks;       /* of version 3, unless the options say something of locks: as always in a container */
        int64_t deadline_ms; /* on clock_now_ms()'s clock, for finding the server */
        struct nfs_server address; /* found out */
        char version[NFS_VERSION_SIZE];
};

/*
 * nfs_mount_find() - the server's address. Errors: those of nfs_server_find(); EINVAL an option that makes no
 * sense.
 */
int nfs_mount_find(struct nfs_mount *mount, struct error *error);

/*
 * nfs_mount_make() - mount it, of the version that the options name, else of the newest that both speak.
 *
 * Takes:   owned: the superblock is to belong to the container's user namespace; most kernels refuse that with EPERM.
 * Returns: the detached mount's descriptor, owned by the caller.
 * Errors:  operation "fsconfig": ENOENT no such export, EACCES or EPERM not for us, EPROTONOSUPPORT version not spoken.
 *          A server that is silent is waited for until a signal comes: run it in a worker.
 */
int nfs_mount_make(struct nfs_mount *mount, bool owned, struct error *error);

#endif
