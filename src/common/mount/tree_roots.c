/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/tree_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "mount/identity.h"
#include "mount/mountinfo.h"
#include "mount/scratch_namespace.h"

/* The index of the mount with the id among the first count; count: there is none. In mountinfo's order it is often at hint. */
static size_t find(const struct tree_roots *roots, size_t count, uint64_t id, size_t hint)
{
        for (size_t i = 0; i < count; i++) {
                size_t index = (hint + i) % count;

                if (roots->roots[index].id == id)
                        return index;
        }
        return count;
}

static int add(struct tree_roots *roots, uint64_t id, size_t parent)
{
        struct tree_root *grown = reallocarray(roots->roots, roots->count + 1, sizeof *grown);

        if (grown == NULL)
                return -ENOMEM;
        roots->roots = grown;
        grown[roots->count++] = (struct tree_root){ .id = id, .parent = parent };
        if (roots->count > 1)
                grown[parent].unseen_children++;
        return 0;
}

/* Adds the mounts below those that are there. Returns how many, or negative errno. */
static int add_children(struct tree_roots *roots)
{
        cleanup_mount_table struct mountinfo table = {};
        const size_t before = roots->count;
        size_t parent = 0;
        size_t next = 0;
        int r = mountinfo_open_own(&table);

        while (r == 0 && mountinfo_next(&table)) {
                size_t found = find(roots, roots->count, table.parent, parent);
                size_t known = found == roots->count ? before : find(roots, before, table.id, next);

                if (table.bytes > MOUNTINFO_MAX)
                        return -EFBIG;
                if (found == roots->count)
                        continue;
                parent = found;
                next = known + 1;
                if (known == before)
                        r = add(roots, table.id, parent);
        }
        if (r == 0 && table.failed)
                return -EIO;
        return r < 0 ? r : (int)(roots->count - before);
}

#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC 12 loses sight of what is stored through the array */
#endif
static int keep_path(struct tree_root *root, const char *path)
{
        free(root->path);
        root->path = strdup(path);
        return root->path != NULL ? 0 : -ENOMEM;
}

static int read_paths(struct tree_roots *roots)
{
        cleanup_mount_table struct mountinfo table = {};
        size_t next = 0;
        int r = mountinfo_open_own(&table);

        while (r == 0 && mountinfo_next(&table)) {
                size_t found = find(roots, roots->count, table.id, next);

                if (table.bytes > MOUNTINFO_MAX)
                        return -EFBIG;
                if (found == roots->count)
                        continue;
                next = found + 1;
                r = keep_path(&roots->roots[found], table.mount_point);
        }
        return r == 0 && table.failed ? -EIO : r;
}
#pragma GCC diagnostic pop

/* Another mount, or a directory of one, may be at the path by now. */
static bool look(struct tree_root *root)
{
        cleanup_close int fd = root->path == NULL ? -EBADF
                                                  : sys_openat2(AT_FDCWD, root->path, O_PATH | O_NOFOLLOW, 0,
                                                                RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        struct mount_seen seen;
        uint64_t id = 0;

        return fd >= 0 && mount_see(fd, "", &seen) == 0 && seen.root && mount_see_short_id(fd, &id) == 0 &&
               id == root->id && fstat(fd, &root->stat) == 0;
}

/* Looks at what can be seen now, children first, which may cover others; in the order in which they can have come. */
static size_t see_all(struct tree_roots *roots)
{
        size_t count = 0;

        for (size_t i = roots->count; i-- > 0;) {
                struct tree_root *root = &roots->roots[i];

                if (root->seen || root->unseen_children > 0 || !look(root))
                        continue;
                root->seen = true;
                count++;
                if (i == 0)
                        continue;
                scratch_namespace_uncover(root->path); /* if it stays, what it covers is not found */
                roots->roots[root->parent].unseen_children--;
        }
        return count;
}

int tree_roots_read(int mount_fd, struct tree_roots *ret_roots, struct error *error)
{
        size_t left;
        uint64_t id = 0;
        int r = mount_see_short_id(mount_fd, &id);

        if (r == 0)
                r = add(ret_roots, id, 0);
        while (r == 0 && (r = add_children(ret_roots)) > 0) /* once more, should one come before its parent */
                r = 0;
        for (left = ret_roots->count; r == 0 && left > 0;) {
                size_t seen;

                if ((r = read_paths(ret_roots)) < 0)
                        break;
                seen = see_all(ret_roots);
                if (seen == 0)
                        return fail_because(
                                error, EXDEV, "look at", "the mounts below the source",
                                "the owners of %zu of them cannot be seen: something covers them, moves them "
                                "about, or lets no user search",
                                left);
                left -= seen;
        }
        return r < 0 ? fail(error, -r, "read", "mountinfo") : 0;
}

void tree_roots_release(struct tree_roots *roots)
{
        for (size_t i = 0; i < roots->count; i++)
                free(roots->roots[i].path);
        free(roots->roots);
        *roots = (struct tree_roots){};
}
