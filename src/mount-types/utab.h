/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utab.h - /run/mount/utab, where libmount keeps what the kernel does not know of a mount: that umount(8) has to call
 * umount.flexgraft (helper=flexgraft), and the options x-*, which findmnt(8) and systemd read.
 *
 * libmount makes system calls that no program of flexgraft is allowed, and another version makes others. So a process
 * of its own calls it, which may do nothing else and has no capability; it is started before privileges are dropped.
 */
#ifndef FLEXGRAFT_MOUNT_TYPES_UTAB_H
#define FLEXGRAFT_MOUNT_TYPES_UTAB_H

#include "base/error.h"

/* utab_begin() - start that process. Before privileges_drop(). utab_end() - end it. */
int utab_begin(struct error *error);
void utab_end(void);

/*
 * utab_prepare() - before a mount: what will hold of it, if nothing is mounted there. Were it written after the mount, an
 * unmount between the two would not call umount.flexgraft.
 *
 * Takes: source and root, as the kernel will show them; options, x-* separated by commas, to which those of fstab(5) are
 *        added.
 */
int utab_prepare(const char *source, const char *target, const char *root, const char *options, struct error *error);

/* utab_settle() - after it: ensure that it is written, as the kernel shows the mount. */
int utab_settle(const char *source, const char *target, const char *options, struct error *error);

/* utab_forget() - of a target on which nothing is mounted: that nothing is written. */
int utab_forget(const char *target, struct error *error);

#endif
