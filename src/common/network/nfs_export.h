/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs_export.h - an export of an NFS server as text.
 */
#ifndef FLEXGRAFT_NETWORK_NFS_EXPORT_H
#define FLEXGRAFT_NETWORK_NFS_EXPORT_H

#include <limits.h>

#define NFS_HOST_SIZE 256

struct nfs_export {
        char host[NFS_HOST_SIZE]; /* a name or an address, without brackets */
        char path[PATH_MAX];
        char source[PATH_MAX + NFS_HOST_SIZE + 4]; /* as the kernel wants both: "host:/path", "[fd00::1]:/path" */
};

/* nfs_export_parse() - from "host:/path". Errors: -EINVAL; fills no struct error. */
int nfs_export_parse(const char *source, struct nfs_export *ret_export);

/* nfs_export_join() - from both parts; the host may be in brackets. */
int nfs_export_join(const char *host, const char *path, struct nfs_export *ret_export);

#endif
