/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_roots.h - the root of each mount of a tree, also of one that another covers: whose it is shows only when it is looked at.
 *
 * A path in the mountinfo of a container's namespace does not do for that: the container changes its mounts, and renames
 * the directories above them, while they are read.
 */
#ifndef FLEXGRAFT_MOUNT_TREE_ROOTS_H
#define FLEXGRAFT_MOUNT_TREE_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

struct tree_root {
        uint64_t id; /* the reusable one, as in mountinfo */
        size_t parent;
        size_t unseen_children;
        char *path; /* as mountinfo had it last */
        bool seen;
        struct stat stat;
};

struct tree_roots {
        struct tree_root *roots; /* the first is the tree's own; then in the order of mountinfo, the same for a clone */
        size_t count;
};

/*
 * tree_roots_read() - all of the tree whose root is mount_fd's that mountinfo has a line for (scratch_namespace_count()
 * knows whether those are all). What is seen is unmounted, so that what it covers can be seen, too; but for the tree's own
 * root, and a locked mount, which stays for the container that gets it, too.
 *
 * Runs in: a scratch namespace, to which the tree is attached, and is nobody's peer (MS_PRIVATE).
 * Needs:   CAP_SYS_ADMIN.
 * Errors:  EXDEV one of them cannot be seen: a locked mount covers it, or the directory under it is moved about.
 */
int tree_roots_read(int mount_fd, struct tree_roots *ret_roots, struct error *error);

void tree_roots_release(struct tree_roots *roots);
#define cleanup_tree_roots __attribute__((cleanup(tree_roots_release)))

#endif
