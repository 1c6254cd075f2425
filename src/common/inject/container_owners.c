/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/container_owners.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "process/id_ranges.h"

#define OVERFLOW_ID 65534 /* overflowuid and overflowgid of proc(5) */

/* The maps of the source's container and of the target's, users and groups. */
enum { USERS_FROM, USERS_TO, GROUPS_FROM, GROUPS_TO, MAPS };

struct maps {
        const struct container *from;
        const struct container *to;
        struct id_range ranges[MAPS][ID_RANGES_MAX];
        int counts[MAPS];
};

/*
 * Reads them, once for all ways that are tried: a map is written once (user_namespaces(7)), so what was read stays
 * right. Containers stay pinned as long as the session.
 */
static int read_maps(const struct injection *injection, const struct maps **ret_maps, struct error *error)
{
        static struct maps maps; /* static, for its size */

        *ret_maps = &maps;
        if (maps.from == injection->from && maps.to == injection->container)
                return 0;
        maps.from = NULL;
        for (int i = 0; i < MAPS; i++) {
                maps.counts[i] = container_read_map(i % 2 == 0 ? injection->from : injection->container,
                                                    i < GROUPS_FROM ? "uid_map" : "gid_map", maps.ranges[i], error);
                if (maps.counts[i] < 0)
                        return maps.counts[i];
        }
        if (maps.counts[USERS_FROM] == 0 || maps.counts[USERS_TO] == 0 || maps.counts[GROUPS_FROM] == 0 ||
            maps.counts[GROUPS_TO] == 0)
                return 0; /* not written yet */
        maps.from = injection->from;
        maps.to = injection->container;
        return 0;
}

/*
 * The ids of the filesystem -> those of the target's container on the node. first: the map of users or of groups of the
 * source's container; mounted: with FROM_MOUNT the ranges of the source's mount; inverted here.
 */
static int make_ranges(const struct injection *injection, enum owner_ids ids, const struct maps *maps, int first,
                       struct id_range *mounted, int mounted_count, struct id_range *ret_ranges, struct error *error)
{
        static struct id_range inside[ID_RANGES_MAX];
        static struct id_range between[ID_RANGES_MAX];
        const struct id_range *from = maps->ranges[first];
        const struct id_range *to = maps->ranges[first + 1];
        int from_count = maps->counts[first];
        int to_count = maps->counts[first + 1];
        const char *map = first == USERS_FROM ? "uid_map" : "gid_map";
        int count;

        if (ids == FROM_INSIDE) {
                for (int i = 0; i < from_count; i++) {
                        inside[i] = from[i];
                        inside[i].outside = inside[i].inside;
                }
                from = inside;
        }
        if (ids != FROM_MOUNT) {
                count = id_ranges_join(from, from_count, to, to_count, ret_ranges);
                return count < 0 ? container_fail(injection->from, -count, OPERATION_MAP_OWNERS, map, error) : count;
        }
        for (int i = 0; i < mounted_count; i++)
                mounted[i] = (struct id_range){ .inside = mounted[i].outside,
                                                .outside = mounted[i].inside,
                                                .count = mounted[i].count };
        count = id_ranges_join(from, from_count, to, to_count, between);
        if (count >= 0)
                count = id_ranges_join(mounted, mounted_count, between, count, ret_ranges);
        return count < 0 ? container_fail(injection->from, -count, OPERATION_MAP_OWNERS, map, error) : count;
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
        mapping.user_count =
                make_ranges(injection, ids, maps, USERS_FROM, mounted.users, mounted.user_count, mapping.users, error);
        if (mapping.user_count < 0)
                return mapping.user_count;
        mapping.group_count = make_ranges(injection, ids, maps, GROUPS_FROM, mounted.groups, mounted.group_count,
                                          mapping.groups, error);
        if (mapping.group_count < 0)
                return mapping.group_count;
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
        bool known[4];

        for (int i = 0; i < 4; i++)
                known[i] = id_ranges_map(maps->ranges[i], maps->counts[i], /* inside= */ false, &ids[i]);
        for (int i = 0; i < 4; i += 2)
                if ((overflows[i / 2] && known[i + 1]) || known[i] != known[i + 1] ||
                    (known[i] ? ids[i] != ids[i + 1] : strict))
                        return false;
        return true;
}

bool container_owners_same(const struct injection *injection)
{
        const struct maps *maps;
        struct error ignored; /* a map that cannot be read is not known to be the same */

        if (read_maps(injection, &maps, &ignored) < 0)
                return false;
        for (int i = 0; i < MAPS; i += 2) {
                if (maps->counts[i] != maps->counts[i + 1])
                        return false;
                for (int j = 0; j < maps->counts[i]; j++) {
                        const struct id_range *from = &maps->ranges[i][j];
                        const struct id_range *to = &maps->ranges[i + 1][j];

                        if (from->inside != to->inside || from->outside != to->outside || from->count != to->count)
                                return false;
                }
        }
        return true;
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
