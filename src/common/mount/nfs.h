/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs.h - an export of an NFS server as a detached mount: the server's address, the NFS version, the mount.
 */
#ifndef FLEXGRAFT_MOUNT_NFS_H
#define FLEXGRAFT_MOUNT_NFS_H

#include "base/error.h"
#include "base/failure.h"
#include "container/container.h"
#include "mount/options.h"
#include "network/nfs_server.h"

#define NFS_VERSION_SIZE 8

/* nfs_hints - for failures of this file and of nfs_server.h. */
extern const struct hint nfs_hints[];

struct nfs_mount {
        const struct nfs_export *export;
        const struct mount_options *options; /* those of nfs(5) go to the kernel as they are */
        const struct container *container;   /* its network namespace and resolver; NULL: the node's */
        const struct nfs_server_rule *rule;  /* which servers are allowed; NULL: all */
        bool read_only;
        bool no_locks;       /* version 3 without locks, unless the options name locks; always so in a container */
        int64_t deadline_ms; /* on clock_now_ms()'s clock, for finding the server */
        struct nfs_server address; /* by nfs_mount_find() */
        char version[NFS_VERSION_SIZE];
};

/*
 * nfs_mount_find() - the server's address. Errors: those of nfs_server_find(); EINVAL a wrong option.
 */
int nfs_mount_find(struct nfs_mount *mount, struct error *error);

/*
 * nfs_mount_make() - mount it, with the version in the options, else the newest that server and kernel speak.
 *
 * Takes:   owned: the container's user namespace is to own the superblock; most kernels refuse that with EPERM
 *          (docs/KERNEL.md#superblocks-of-a-user-namespace).
 * Returns: the detached mount's descriptor, owned by the caller.
 * Errors:  operation "fsconfig": ENOENT no such export, EACCES or EPERM not allowed, EPROTONOSUPPORT no such version.
 *          It waits for a silent server until a signal: run it in a worker.
 */
int nfs_mount_make(struct nfs_mount *mount, bool owned, struct error *error);

/*
 * nfs_mount_on_node() - both, from the node's network: without locks of version 3 where the node has no rpcbind, or no
 * rpc.statd, for them.
 */
int nfs_mount_on_node(struct nfs_mount *mount, struct error *error);

#endif
