/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the one option table: a name as in mount(8) -> a mount attribute, a propagation, or an option of
 * the filesystem's.
 */
#ifndef FLEXGRAFT_MOUNT_OPTIONS_H
#define FLEXGRAFT_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct mount_options {
        uint64_t attr_set;   /* MOUNT_ATTR_* */
        uint64_t attr_clear; /* MOUNT_ATTR_* */
        int propagation;     /* MS_PRIVATE, ...; 0: nothing said */
        bool read_only;      /* "ro" was said (and "rw" not after it) */
        bool recursive;      /* "rbind" */
        char **fs_options;   /* what the table leaves to the filesystem, in order; owned */
        size_t fs_count;
};

/*
 * mount_options_add() - one option, which may itself hold commas. Later options win over earlier ones.
 *
 * Errors: EINVAL for one that makes no sense for a mount put into a running container ("remount", "loop").
 */
int mount_options_add(struct mount_options *options, const char *option, struct error *error);

/* mount_options_add_list() - options separated by commas; a comma within double quotes belongs to its option. */
int mount_options_add_list(struct mount_options *options, const char *list, struct error *error);

/*
 * mount_options_default() - what holds unless an option said otherwise: nosuid and nodev, since the filesystem comes
 * from elsewhere and a device file on it would open the node's devices to the container.
 */
void mount_options_default(struct mount_options *options);

/* mount_options_propagation() - "private", ... -> MS_PRIVATE, ...; 0 for an unknown word. */
int mount_options_propagation(const char *word);

/* mount_options_text() - statfs(2)'s flags of a mount as options: "rw,nosuid,nodev,relatime". */
void mount_options_text(unsigned long statfs_flags, char *ret_text, size_t size);

/* mount_options_attributes() - the same flags as MOUNT_ATTR_* values to set. */
uint64_t mount_options_attributes(unsigned long statfs_flags);

/* mount_options_of() - those of the mount that fd is on. Returns 0 or negative errno. */
int mount_options_of(int fd, uint64_t *ret_attributes);

/* mount_options_kept() - how many bytes of an option may be kept: not the value of one that may hold a secret. */
size_t mount_options_kept(const char *option);

void mount_options_release(struct mount_options *options);

/* mount_options_tmpfs_harmless - options of tmpfs(5) that a policy need not list, ended by NULL. */
extern const char *const mount_options_tmpfs_harmless[];

/*
 * mount_options_tmpfs_limit() - if it is a limit of tmpfs's (size, nr_inodes, nr_blocks), in plain numbers: the kernel reads
 * such text with overflow, and takes 0 for no limit (docs/KERNEL.md#tmpfs). Replaces the option, which is on the heap.
 *
 * Errors: EINVAL it is no number above 0.
 */
int mount_options_tmpfs_limit(char **option, struct error *error);

#endif
