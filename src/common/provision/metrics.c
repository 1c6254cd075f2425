/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply.h"

#include "base/json.h"
#include "base/metrics_text.h"

/* A number that each pool's object has under a key, if it has no problem. */
static const struct pool_number {
        const char *metric;
        const char *key;
        const char *help;
} pool_numbers[] = {
        { "flexgraft_pool_size_bytes", "total", "Size that a pool may use, in bytes." },
        { "flexgraft_pool_available_bytes", "available", "Free room in a pool, in bytes." },
        { "flexgraft_pool_largest_volume_bytes", "largest", "Largest volume that a pool has room for, in bytes." },
        { "flexgraft_pool_files", "inodes", "Inodes of the filesystem that a pool is in." },
        { "flexgraft_pool_files_free", "inodesFree", "Free inodes of the filesystem that a pool is in." },
}, profile_numbers[] = {
        { "flexgraft_profile_available_bytes", "available", "Free room in a pool for volumes of a profile, in bytes." },
        { "flexgraft_profile_largest_volume_bytes", "largest",
          "Largest volume of a profile that a pool has room for, in bytes." },
};
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static void put_number(struct metrics_text *text, const struct pool_number *number, const json_t *pool,
                       const json_t *profile)
{
        const json_t *value = json_object_get(profile != NULL ? profile : pool, number->key);

        if (value == NULL)
                return; /* it has a problem */
        metrics_sample(text, number->metric);
        metrics_label(text, "pool", json_member_text(pool, "name"));
        if (profile != NULL)
                metrics_label(text, "profile", json_member_text(profile, "profile"));
        else
                metrics_label(text, "type", json_member_text(pool, "type"));
        metrics_value(text, (uint64_t)json_integer_value(value));
}

static void put_pools(struct metrics_text *text, const struct pool_number *number, const json_t *pools)
{
        const json_t *pool;
        size_t i;

        metrics_family(text, number->metric, "gauge", number->help);
        json_array_foreach (pools, i, pool) {
                put_number(text, number, pool, /* profile= */ NULL);
        }
}

static void put_profiles(struct metrics_text *text, const struct pool_number *number, const json_t *pools)
{
        const json_t *pool;
        const json_t *profile;
        size_t i;
        size_t j;

        metrics_family(text, number->metric, "gauge", number->help);
        json_array_foreach (pools, i, pool) {
                json_array_foreach (json_object_get(pool, "profiles"), j, profile) {
                        put_number(text, number, pool, profile);
                }
        }
}

/* A pool that cannot be read has no other line. */
static void put_problems(struct metrics_text *text, const json_t *reply)
{
        const json_t *pool;
        size_t i;

        metrics_family(text, "flexgraft_pool_problem", "gauge", "Whether a pool cannot be used.");
        json_array_foreach (json_object_get(reply, "pools"), i, pool) {
                metrics_sample(text, "flexgraft_pool_problem");
                metrics_label(text, "pool", json_member_text(pool, "name"));
                metrics_value(text, json_object_get(pool, "problem") != NULL);
        }
        metrics_gauge(text, "flexgraft_profiles_rejected", "Whether the file of profiles was rejected.",
                      json_object_get(reply, "profilesProblem") != NULL);
}

int provision_metrics_say(const json_t *reply)
{
        const json_t *pools = json_object_get(reply, "pools");
        struct metrics_text text = {};

        for (size_t i = 0; i < COUNT(pool_numbers); i++)
                put_pools(&text, &pool_numbers[i], pools);
        for (size_t i = 0; i < COUNT(profile_numbers); i++)
                put_profiles(&text, &profile_numbers[i], pools);
        put_problems(&text, reply);
        return metrics_say(&text);
}
