/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/kinds/container_owners.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "process/id_ranges.h"

#define OVERFLOW_ID 65534 /* overflowuid and overflowgid of proc(5) */

/* The maps of the source's container and of the target's. */
struct maps {
        const struct container *from;
        const struct container *to;
        struct id_maps of_from;
        struct id_maps of_to;
};

/*
 * Reads them, once for all ways that are tried: a map is written once (user_namespaces(7)), so what was read stays
 * right. Containers stay pinned as long as the session.
 */
static int read_maps(const struct injection *injection, const struct maps **ret_maps, struct error *error)
{
        static struct maps maps;
        int r;

        *ret_maps = &maps;
        if (maps.from == injection->from && maps.to == injection->container)
                return 0;
        maps.from = NULL;
        if ((r = container_read_maps(injection->from, &maps.of_from, error)) < 0 ||
            (r = container_read_maps(injection->container, &maps.of_to, error)) < 0)
                return r;
        if (maps.of_from.users.count == 0 || maps.of_to.users.count == 0 || maps.of_from.groups.count == 0 ||
            maps.of_to.groups.count == 0)
                return 0; /* not written yet */
        maps.from = injection->from;
        maps.to = injection->container;
        return 0;
}

/*
 * The ids of the filesystem -> those of the target's container on the node. theirs, to: the users or the groups of the
 * source's container and of the target's; mounted: with FROM_MOUNT the ranges of the source's mount; inverted here.
 */
static int join_maps(enum owner_ids ids, const struct id_map *theirs, const struct id_map *to, struct id_range *mounted,
                     int mounted_count, struct id_range *ret_ranges)
{
        static struct id_range inside[ID_RANGES_MAX];
        static struct id_range between[ID_RANGES_MAX];
        const struct id_range *from = theirs->ranges;
        int count;

        if (ids == FROM_INSIDE) {
                for (int i = 0; i < theirs->count; i++) {
                        inside[i] = from[i];
                        inside[i].outside = inside[i].inside;
                }
                from = inside;
        }
        if (ids != FROM_MOUNT)
                return id_ranges_join(from, theirs->count, to->ranges, to->count, ret_ranges);
        for (int i = 0; i < mounted_count; i++)
                mounted[i] = (struct id_range){ .inside = mounted[i].outside,
                                                .outside = mounted[i].inside,
                                                .count = mounted[i].count };
        count = id_ranges_join(from, theirs->count, to->ranges, to->count, between);
        return count < 0 ? count : id_ranges_join(mounted, mounted_count, between, count, ret_ranges);
}

int container_owners_map(const struct injection *injection, enum owner_ids ids, const struct idmap **ret_mapping,
                         struct error *error)
{
        static struct idmap mapping;
        static struct idmap mounted;
        const struct maps *maps;
        int r = 0;

        if (ids == FROM_MOUNT)
                r = idmap_of_mount(injection->from->mnt_ns.id, injection->source.mount.id, &mounted);
        if (r < 0)
                return fail(error, ENOSYS, "statmount", injection->request->source);
        if ((r = read_maps(injection, &maps, error)) < 0)
                return r;
        mapping.user_count = join_maps(ids, &maps->of_from.users, &maps->of_to.users, mounted.users, mounted.user_count,
                                       mapping.users);
        if (mapping.user_count < 0)
                return container_fail(injection->from, -mapping.user_count, OPERATION_MAP_OWNERS, "uid_map", error);
        mapping.group_count = join_maps(ids, &maps->of_from.groups, &maps->of_to.groups, mounted.groups,
                                        mounted.group_count, mapping.groups);
        if (mapping.group_count < 0)
                return container_fail(injection->from, -mapping.group_count, OPERATION_MAP_OWNERS, "gid_map", error);
        if (mapping.user_count == 0 || mapping.group_count == 0)
                return fail_because(error, EOPNOTSUPP, OPERATION_MAP_OWNERS, injection->request->source,
                                    "the two containers have no id in common");
        *ret_mapping = &mapping;
        return 0;
}

/*
 * Whether a, in the source's container, and b, in the target's, have the same owner as each container sees it. An owner
 * that neither maps counts as the same, unless strict.
 */
static bool same_owner(const struct maps *maps, const struct stat *a, const struct stat *b, bool strict)
{
        /* the kernel also shows 65534 for ids without a mapping: on the clone it proves nothing */
        bool overflows[2] = { b->st_uid == OVERFLOW_ID, b->st_gid == OVERFLOW_ID };
        uint32_t ids[4] = { a->st_uid, b->st_uid, a->st_gid, b->st_gid };
        const struct id_map *const of[4] = { &maps->of_from.users, &maps->of_to.users, &maps->of_from.groups,
                                             &maps->of_to.groups };
        bool known[4];

        for (int i = 0; i < 4; i++)
                known[i] = id_ranges_map(of[i]->ranges, of[i]->count, /* inside= */ false, &ids[i]);
        for (int i = 0; i < 4; i += 2)
                if ((overflows[i / 2] && known[i + 1]) || known[i] != known[i + 1] ||
                    (known[i] ? ids[i] != ids[i + 1] : strict))
                        return false;
        return true;
}

static bool is_same_map(const struct id_map *one, const struct id_map *other)
{
        return one->count == other->count &&
               memcmp(one->ranges, other->ranges, (size_t)one->count * sizeof one->ranges[0]) == 0;
}

bool container_owners_same(const struct injection *injection)
{
        const struct maps *maps;
        struct error ignored; /* a map that cannot be read is not known to be the same */

        return read_maps(injection, &maps, &ignored) == 0 && is_same_map(&maps->of_from.users, &maps->of_to.users) &&
               is_same_map(&maps->of_from.groups, &maps->of_to.groups);
}

int container_owners_of_source(const struct injection *injection, const struct id_maps **ret_maps, struct error *error)
{
        const struct maps *maps;
        int r = read_maps(injection, &maps, error);

        if (r < 0)
                return r;
        if (maps->of_from.users.count == 0 || maps->of_from.groups.count == 0)
                return fail_because(error, EOPNOTSUPP, OPERATION_MAP_OWNERS, injection->request->source,
                                    "the user namespace of container %s has no ids yet", injection->from->name);
        *ret_maps = &maps->of_from;
        return 0;
}

static int fail_owners(const struct injection *injection, struct error *error)
{
        return fail_because(error, EXDEV, OPERATION_MAP_OWNERS, injection->request->source,
                            "no id mapping shows its owners, or those of the mounts below it, as they are in "
                            "container %s",
                            injection->from->name);
}

int container_owners_check(const struct injection *injection, int clone_fd, struct error *error)
{
        const struct maps *maps;
        struct stat a;
        struct stat b;
        int r = read_maps(injection, &maps, error);

        if (r < 0)
                return r;
        if (fstat(injection->source.fd, &a) < 0 || fstat(clone_fd, &b) < 0)
                return container_fail(injection->from, errno, "fstat", injection->source.path, error);
        return same_owner(maps, &a, &b, /* strict= */ false) ? 0 : fail_owners(injection, error);
}

int container_owners_check_tree(const struct injection *injection, const struct tree_roots *theirs,
                                const struct tree_roots *ours, bool strict, struct error *error)
{
        const struct maps *maps;
        int r = read_maps(injection, &maps, error);

        if (r < 0)
                return r;
        if (theirs->count != ours->count)
                return fail_owners(injection, error);
        for (size_t i = 0; i < theirs->count; i++) {
                const struct stat *a = &theirs->roots[i].stat;
                const struct stat *b = &ours->roots[i].stat;

                if (a->st_dev != b->st_dev || a->st_ino != b->st_ino || !same_owner(maps, a, b, strict && i > 0))
                        return fail_owners(injection, error);
        }
        return 0;
}
