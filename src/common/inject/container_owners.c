/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/container_owners.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "mount/idmap.h"
#include "mount/mountinfo.h"
#include "process/id_ranges.h"

#define OVERFLOW_ID 65534 /* overflowuid and overflowgid of proc(5) */

/* A container's id ranges; one range of all ids in the node's own user namespace. */
static int read_ranges(const struct container *container, const char *map, struct id_range *ret_ranges)
{
        if (container->own_user_ns)
                return id_ranges_read(container->proc_fd, map, ret_ranges);
        ret_ranges[0] = (struct id_range){ .inside = 0, .outside = 0, .count = UINT32_MAX };
        return 1;
}

/*
 * The ids of the filesystem -> those of the target's container on the node. mounted: with FROM_MOUNT the ranges of the
 * source's mount; inverted here.
 */
static int make_ranges(const struct injection *injection, enum owner_ids ids, const char *map, struct id_range *mounted,
                       int mounted_count, struct id_range *ret_ranges)
{
        static struct id_range from[ID_RANGES_MAX];
        static struct id_range to[ID_RANGES_MAX];
        static struct id_range between[ID_RANGES_MAX];
        int from_count = read_ranges(injection->from, map, from);
        int to_count = read_ranges(injection->container, map, to);

        if (from_count < 0 || to_count < 0)
                return from_count < 0 ? from_count : to_count;
        for (int i = 0; ids == FROM_INSIDE && i < from_count; i++)
                from[i].outside = from[i].inside;
        if (ids != FROM_MOUNT)
                return id_ranges_join(from, from_count, to, to_count, ret_ranges);
        for (int i = 0; i < mounted_count; i++)
                mounted[i] = (struct id_range){ .inside = mounted[i].outside,
                                                .outside = mounted[i].inside,
                                                .count = mounted[i].count };
        from_count = id_ranges_join(from, from_count, to, to_count, between);
        return from_count < 0 ? from_count : id_ranges_join(mounted, mounted_count, between, from_count, ret_ranges);
}

int container_owners_open(const struct injection *injection, enum owner_ids ids, struct error *error)
{
        static struct idmap mapping;
        static struct idmap mounted;
        int r = 0;

        if (ids == FROM_MOUNT)
                r = idmap_of_mount(injection->from->mnt_ns.id, injection->source.mount.id, &mounted);
        if (r < 0)
                return fail(error, ENOSYS, "statmount", injection->request->source);
        mapping.user_count = make_ranges(injection, ids, "uid_map", mounted.users, mounted.user_count, mapping.users);
        mapping.group_count =
                make_ranges(injection, ids, "gid_map", mounted.groups, mounted.group_count, mapping.groups);
        if (mapping.user_count < 0 || mapping.group_count < 0)
                return container_fail(injection->from,
                                      -(mapping.user_count < 0 ? mapping.user_count : mapping.group_count),
                                      "read uid_map", injection->from->name, error);
        if (mapping.user_count == 0 || mapping.group_count == 0)
                return fail_because(error, EOPNOTSUPP, "map ids", injection->request->source,
                                    "the two containers have no id in common");
        return idmap_open(&mapping, error);
}

/*
 * Whether a, in the source's container, and b, in the target's, have the same owner as each container sees it. An owner
 * that neither maps counts as the same, unless strict.
 */
static bool same_owner(const struct injection *injection, const struct stat *a, const struct stat *b, bool strict)
{
        /* the kernel also shows 65534 for ids without a mapping: on the clone it proves nothing */
        bool overflows[2] = { b->st_uid == OVERFLOW_ID, b->st_gid == OVERFLOW_ID };
        uint32_t ids[4] = { a->st_uid, b->st_uid, a->st_gid, b->st_gid };
        int known[4];

        for (int i = 0; i < 4; i++)
                known[i] = container_inside_id(i % 2 == 0 ? injection->from : injection->container,
                                               i < 2 ? "uid_map" : "gid_map", &ids[i]);
        for (int i = 0; i < 4; i += 2)
                if ((overflows[i / 2] && known[i + 1] == 0) || (known[i] == 0) != (known[i + 1] == 0) ||
                    (known[i] == 0 ? ids[i] != ids[i + 1] : strict))
                        return false;
        return true;
}

/* The mounts below the source, which may be of other filesystems. */
static int check_below(const struct injection *injection, int clone_fd, bool strict)
{
        cleanup_mount_table struct mountinfo table = {};
        const char *path = injection->source.path;
        size_t length = strcmp(path, "/") == 0 ? 0 : strlen(path);
        int r = mountinfo_open(&table, injection->from->proc_fd);

        while (r == 0 && mountinfo_next(&table)) {
                cleanup_close int theirs = -EBADF;
                cleanup_close int ours = -EBADF;
                struct stat a;
                struct stat b;

                if (strncmp(table.mount_point, path, length) != 0 || table.mount_point[length] != '/' ||
                    table.mount_point[length + 1] == '\0')
                        continue;
                theirs = sys_openat2(injection->from->root_fd, table.mount_point + 1, O_PATH | O_NOFOLLOW, 0,
                                     RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
                ours = sys_openat2(clone_fd, table.mount_point + length + 1, O_PATH | O_NOFOLLOW, 0,
                                   RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
                if (theirs < 0 || ours < 0 || fstat(theirs, &a) < 0 || fstat(ours, &b) < 0)
                        continue; /* covered or unmounted: not visible */
                if (!same_owner(injection, &a, &b, strict))
                        return -EXDEV;
        }
        return r;
}

int container_owners_check(const struct injection *injection, int clone_fd, bool strict)
{
        struct stat a;
        struct stat b;

        if (fstat(injection->source.fd, &a) < 0 || fstat(clone_fd, &b) < 0)
                return -errno;
        if (!same_owner(injection, &a, &b, /* strict= */ false))
                return -EXDEV;
        return injection->request->recursive ? check_below(injection, clone_fd, strict) : 0;
}
