/* SPDX-License-Identifier: Apache-2.0 */
#include "source_ids.h"

#include "shared.h"

#define NO_ID 4294967295U

bool source_ids_differ(void)
{
        return shared->source_users.count > 0;
}

static bool take(const struct id_map *map, uint32_t *id)
{
        return !source_ids_differ() || id_ranges_map(map->ranges, map->count, /* inside= */ true, id);
}

static void show(const struct id_map *map, uint32_t *id)
{
        if (source_ids_differ() && !id_ranges_map(map->ranges, map->count, /* inside= */ false, id))
                *id = NO_ID;
}

bool source_ids_take_user(uid_t *uid)
{
        return take(&shared->source_users, uid);
}

bool source_ids_take_group(gid_t *gid)
{
        return take(&shared->source_groups, gid);
}

bool source_ids_take(uid_t *uid, gid_t *gid)
{
        uid_t user = *uid;

        if (!take(&shared->source_users, &user) || !take(&shared->source_groups, gid))
                return false;
        *uid = user;
        return true;
}

int source_ids_take_groups(gid_t *groups, int count)
{
        int taken = 0;

        for (int i = 0; i < count; i++) {
                gid_t group = groups[i];

                if (take(&shared->source_groups, &group))
                        groups[taken++] = group;
        }
        return taken;
}

void source_ids_show_user(uid_t *uid)
{
        show(&shared->source_users, uid);
}

void source_ids_show_group(gid_t *gid)
{
        show(&shared->source_groups, gid);
}

void source_ids_show(uid_t *uid, gid_t *gid)
{
        source_ids_show_user(uid);
        source_ids_show_group(gid);
}
