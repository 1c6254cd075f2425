/* SPDX-License-Identifier: Apache-2.0 */
/*
 * superblock.h - a filesystem context (fsopen), configured one option at a time, made a superblock, made a mount.
 */
#ifndef FLEXGRAFT_MOUNT_SUPERBLOCK_H
#define FLEXGRAFT_MOUNT_SUPERBLOCK_H

#include "base/error.h"
#include "base/failure.h"
#include "container/container.h"
#include "mount/options.h"

/*
 * superblock_open() - start configuring a filesystem that the node owns.
 *
 * Needs:   CAP_SYS_ADMIN.
 * Returns: a filesystem-context fd, owned by the caller.
 * Errors:  ENODEV unknown type.
 */
int superblock_open(const char *fs_type, struct error *error);

/*
 * superblock_open_owned() - the same, but the superblock will belong to the container's user namespace: the context
 * remembers its opener's. Opened by a sealed child inside, passed out, and configured from here, where the node's
 * paths and devices are.
 *
 * Errors:  EPERM, later, at superblock_create(): since Linux 6.11 (commit e1c5ae59c0f2) for every filesystem without
 *          FS_USERNS_MOUNT.
 */
int superblock_open_owned(const struct container *container, const char *fs_type, struct error *error);

/* superblock_option() - one option: "name" or "name=value". On failure the error carries the kernel's own messages. */
int superblock_option(int context_fd, const char *option, struct error *error);

/* superblock_options() - all that the option table leaves to the filesystem, in order. */
int superblock_options(int context_fd, const struct mount_options *options, struct error *error);

/* superblock_set() - one option by name and value, whatever they hold; a NULL value for a flag. */
int superblock_set(int context_fd, const char *name, const char *value, struct error *error);

/* superblock_create() - make it, or share the one that there is. Errors with the kernel's messages. */
int superblock_create(int context_fd, const char *source, struct error *error);

/*
 * superblock_create_on() - all of it for a filesystem on a block device: its source, its options, read-only or not,
 * made or shared. ext4 can have errors=panic ("tune2fs -e panic"), which stops the whole machine, and what is on the disk
 * may be a container's own work: errors=remount-ro is passed unless the options have errors=. The caller has asked
 * filesystem_check_alone() (block/filesystem.h). Errors: those of superblock_create().
 */
int superblock_create_on(int context_fd, const char *fs_type, const char *device, const struct mount_options *options,
                         bool read_only, struct error *error);

/* superblock_mount() - a detached mount of it, with these MOUNT_ATTR_* values. Returns its fd, owned by the caller. */
int superblock_mount(int context_fd, const char *source, unsigned attributes, struct error *error);

/* superblock_allow_writing() - a filesystem that is mounted at dir, and read-only, from now on is not (fspick). */
int superblock_allow_writing(const char *dir, struct error *error);

/* superblock_new_tmpfs() - a fresh small tmpfs of the node's own, as a detached mount. */
int superblock_new_tmpfs(struct error *error);

/* ---- hints.c: what to do about failures of mounts: the kernel's calls for them, and what was found in their places */
extern const struct hint mount_hints[];

#endif
