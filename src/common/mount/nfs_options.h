/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs_options.h - what the options of nfs(5) of a mount say, where that is more than the kernel takes as it is.
 */
#ifndef FLEXGRAFT_MOUNT_NFS_OPTIONS_H
#define FLEXGRAFT_MOUNT_NFS_OPTIONS_H

#include <stdbool.h>

#include "mount/options.h"

/* nfs_harmless_options - options of nfs(5) that a policy need not list, ended by NULL. */
extern const char *const nfs_harmless_options[];

/* nfs_option_value() - the value of the last "name=value"; NULL: none. */
const char *nfs_option_value(const struct mount_options *options, const char *name);

/* nfs_option_is_for_mount() - whether it is of mount.nfs(8), and not known to the kernel. */
bool nfs_option_is_for_mount(const char *option);

/* nfs_option_is_version() - whether it names a version, but for minorversion. */
bool nfs_option_is_version(const char *option);

/*
 * nfs_options_version() - the version that they name, as "4.2"; NULL: none. The last one counts. ret_minor: of minorversion,
 * where that does; NULL: it does not, or the version has one itself, and stands behind it.
 */
const char *nfs_options_version(const struct mount_options *options, const char **ret_minor);

/* nfs_options_say_locks() - whether they say who knows of locks. */
bool nfs_options_say_locks(const struct mount_options *options);

/* nfs_options_need_rpcbind() - whether the kernel registers its lock manager with rpcbind of the client before it mounts. */
bool nfs_options_need_rpcbind(const struct mount_options *options, const char *version);

/* nfs_options_are_datagram() - whether the server is not asked by TCP. */
bool nfs_options_are_datagram(const struct mount_options *options);

/*
 * nfs_options_family() - the family that the server's address must have, as with mount.nfs(8): "tcp6" is IPv6, and "tcp"
 * IPv4 alone; AF_UNSPEC: either. The kernel refuses another one (nfs_fs_context_validate() in fs/nfs/fs_context.c).
 */
int nfs_options_family(const struct mount_options *options);

#endif
