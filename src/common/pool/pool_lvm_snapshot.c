/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_lvm_snapshot.c - snapshots and copies of logical volumes.
 *
 * A snapshot of a thin volume is a thin volume, which shares blocks with the other and needs it no more. Of other
 * volumes it is the old content of what has changed: it needs room for that, and the volume, with which it becomes
 * active.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "block/device_copy.h"
#include "block/lvm.h"
#include "pool/pool_lvm.h"
#include "pool/record.h"
#include "state/uses.h"
#include "state/volume_record.h"

#define EXCEPTION_BYTES 16U /* of a chunk that has changed: struct disk_exception of dm-snap-persistent.c */

/* A header, the chunks, and areas that say where these belong, of a chunk each: see dm-snap-persistent.c. */
uint64_t pool_lvm_snapshot_room(uint64_t size_bytes, unsigned percent)
{
        const uint64_t all = (size_bytes + BLOCK_DEVICE_CHUNK_BYTES - 1) / BLOCK_DEVICE_CHUNK_BYTES;
        const uint64_t chunks = (all * percent + 99) / 100;
        const uint64_t areas = chunks / (BLOCK_DEVICE_CHUNK_BYTES / EXCEPTION_BYTES) + 1;

        return (1 + chunks + areas) * BLOCK_DEVICE_CHUNK_BYTES;
}

/* Snapshots lie anywhere in the group, however their volume is laid out. */
int pool_lvm_measure_snapshot(const struct config *config, const struct pool *pool, const json_t *parameters,
                              struct pool_measure *ret_measure, struct error *error)
{
        const struct pool_lvm_layout layout = pool_lvm_layout_of(parameters);
        const bool thin = layout.thin_pool != NULL;
        uint64_t extent_bytes;
        uint64_t size_bytes;
        int r = pool_lvm_layout_measure(config, pool, thin ? parameters : NULL, ret_measure, error);

        if (r < 0 || thin)
                return r;
        extent_bytes = ret_measure->alignment_bytes;
        size_bytes = (ret_measure->largest_bytes / layout.snapshot_percent * 100) / extent_bytes * extent_bytes;
        while (size_bytes > 0 &&
               pool_lvm_snapshot_room(size_bytes, layout.snapshot_percent) > ret_measure->largest_bytes)
                size_bytes -= extent_bytes;
        ret_measure->largest_bytes = size_bytes;
        return 0;
}

static int find(const struct pool *pool, const char *id, struct lvm_volume *ret_volume, struct error *error)
{
        int r = lvm_find(pool->volume_group, id, ret_volume, error);

        return r == -ENOENT ? fail_because(error, ENOENT, "find volume", id, "there is no logical volume %s/%s",
                                           pool->volume_group, id)
                            : r;
}

int pool_lvm_can_share(const struct config *config, const struct pool *pool, const char *id, bool snapshot,
                       struct error *error)
{
        struct lvm_volume volume;
        int r = find(pool, id, &volume, error);

        (void)config;
        return r < 0 ? r : snapshot || volume.thin_pool[0] != '\0';
}

/* Of a thin volume. One that is used as a volume is activated as others are. */
static int share_thin(const struct pool *pool, const struct lvm_volume *volume, const char *name, bool snapshot,
                      uint64_t size_bytes, struct error *error)
{
        static const char *const asleep[] = { NULL }; /* lvcreate sets the flag that skips activation */
        static const char *const usual[] = { "-kn", "-an", NULL };
        struct lvm_volume made;
        int r = lvm_snapshot(pool->volume_group, volume, name, snapshot ? asleep : usual, error);

        if (r >= 0 && !snapshot)
                r = lvm_put_asleep(pool->volume_group, name, error);
        if (r < 0 || size_bytes <= volume->size_bytes)
                return r;
        r = find(pool, name, &made, error);
        return r < 0 ? r : lvm_extend(pool->volume_group, &made, size_bytes, error);
}

/* The room of its thin pool, also where parameters did not say which: a volume that was adopted has none. */
static int check_thin_room(const struct config *config, const struct pool *pool, const struct lvm_volume *volume,
                           uint64_t size_bytes, struct error *error)
{
        cleanup_json json_t *parameters = json_pack("{s:s, s:s}", "type", "thin", "thinpool", volume->thin_pool);
        struct pool_measure measure = {};
        int r = pool_lvm_layout_measure(config, pool, parameters, &measure, error);

        if (r < 0 || size_bytes <= measure.largest_bytes)
                return r;
        return fail_because(error, ENOSPC, "create volume", volume->thin_pool,
                            "thin pool %s/%s has room for a volume of %llu bytes at most, and the request is for %llu",
                            pool->volume_group, volume->thin_pool, (unsigned long long)measure.largest_bytes,
                            (unsigned long long)size_bytes);
}

int pool_lvm_share(const struct config *config, const struct pool *pool, const char *id,
                   const struct provision_record *record, struct error *error)
{
        const struct pool_lvm_layout layout = pool_lvm_layout_of(record->parameters);
        struct lvm_volume volume;
        char chunk[16];
        char room[32];
        struct lvm_volume other;
        int r = find(pool, id, &volume, error);

        if (r < 0)
                return r;
        r = lvm_find(pool->volume_group, record->id, &other, error);
        if (r != -ENOENT)
                return r < 0 ? r
                             : fail_because(error, EEXIST, "find volume", record->id,
                                            "group %s has something else of this name, of type %s", pool->volume_group,
                                            other.type);
        if (volume.thin_pool[0] != '\0') {
                r = check_thin_room(config, pool, &volume, record->size_bytes, error);
                return r < 0 ? r
                             : share_thin(pool, &volume, record->id, record->snapshot_of[0] != '\0', record->size_bytes,
                                          error);
        }
        (void)snprintf(chunk, sizeof chunk, "%ub", BLOCK_DEVICE_CHUNK_BYTES);
        (void)snprintf(room, sizeof room, "%llub",
                       (unsigned long long)pool_lvm_snapshot_room(volume.size_bytes, layout.snapshot_percent));
        return lvm_snapshot(pool->volume_group, &volume, record->id,
                            (const char *const[]){ "--chunksize", chunk, "-L", room, NULL }, error);
}

/*
 * lvm suspends a volume while it makes its snapshot, which is a volume of its own at first. Only lvm's activation removes
 * parts of it that the device mapper has and the group does not know.
 */
int pool_lvm_resume(const struct config *config, const struct pool *pool, const char *id, const char *to,
                    struct error *error)
{
        struct lvm_volume volume = {};
        struct lvm_volume made;
        struct error ignored; /* it goes on in any case */
        int r = lvm_find(pool->volume_group, id, &volume, error);

        (void)config;
        if (r == 0 && volume.active)
                r = lvm_resume(pool->volume_group, &volume, error);
        if (r == 0 || r == -ENOENT)
                r = lvm_find(pool->volume_group, to, &made, error);
        if (r == 0 && made.ours && !made.is_snapshot && made.thin_pool[0] == '\0' &&
            (!made.active || (r = lvm_deactivate(pool->volume_group, to, error)) == 0))
                r = lvm_activate(pool->volume_group, &made, error);
        if (volume.active)
                (void)lvm_refresh(pool->volume_group, &volume, &ignored);
        return r == -ENOENT ? 0 : r;
}

/* Both, and what has to be active for them. */
struct pair {
        const struct pool *pool;
        struct lvm_volume from;
        struct lvm_volume to;
        struct lvm_volume base; /* from, or what it is a snapshot of */
};

static int find_pair(const char *from, const char *to, struct pair *pair, struct error *error)
{
        int r;

        lvm_hold(); /* one run of lvm */
        if ((r = find(pair->pool, from, &pair->from, error)) == 0 && (r = find(pair->pool, to, &pair->to, error)) == 0)
                r = find(pair->pool, pair->from.is_snapshot ? pair->from.origin : from, &pair->base, error);
        lvm_release();
        return r;
}

/* A snapshot that had no room for a change says so only while it is active. */
static int check_valid(struct pair *pair, struct error *error)
{
        int r = pair->from.is_snapshot && !pair->from.active ? find(pair->pool, pair->from.name, &pair->from, error)
                                                             : 0;

        return r < 0 || !pair->from.invalid
                       ? r
                       : fail_because(error, ENODATA, "copy volume", pair->from.name,
                                      "the snapshot is lost: its room for changes of the volume was full");
}

static int copy_active(struct pair *pair, bool only_changes, bool *ret_begun, struct error *error)
{
        struct block_device from;
        struct block_device to;
        int r;

        if ((r = check_valid(pair, error)) < 0 ||
            (r = lvm_find_device(pair->pool->volume_group, pair->from.name, &from, error)) < 0 ||
            (r = lvm_find_device(pair->pool->volume_group, pair->to.name, &to, error)) < 0)
                return r;
        return block_device_copy(&from, &to, only_changes, ret_begun, error);
}

struct owners {
        struct state state; /* with their locks */
        bool idle;          /* no other call works on one of them, by its name */
};

static int lock_owner(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct owners *owners = argument;

        (void)stem;
        (void)error;
        owners->idle = record != NULL && state_try_lock(&owners->state, volume_record_key(record->name));
        return !owners->idle;
}

/*
 * Deactivate the volume of a snapshot, which this call has no lock of: another may have attached it since, or be about to.
 * Then it stays, and so it does where that cannot be found out: what is left active is used next time.
 */
static void deactivate_shared(const struct config *config, const struct pool *pool, const char *id)
{
        struct owners owners = { .state = STATE_NONE, .idle = true };
        char keys[USE_KEYS_SIZE] = "";
        struct block_device device;
        struct error ignored;

        if (lvm_find_device(pool->volume_group, id, &device, &ignored) < 0 ||
            provision_record_open(config->state_dir, /* create= */ false, &owners.state, &ignored) < 0)
                return;
        use_keys_add_device(keys, device.number);
        if (record_find_each(&owners.state, id, lock_owner, &owners, &ignored) >= 0 && owners.idle &&
            uses_check_none(config->state_dir, keys, /* except= */ NULL, "look for users", id, &ignored) == 0)
                (void)lvm_deactivate(pool->volume_group, id, &ignored);
        state_release(&owners.state);
}

/*
 * What is not active is activated meanwhile. Nobody uses either, so that what a killed call left active ends here; only
 * the volume of a snapshot may be in use.
 */
static int copy(const struct config *config, struct pair *pair, bool only_changes, bool *ret_begun, struct error *error)
{
        const char *group = pair->pool->volume_group;
        const bool is_base = strcmp(pair->to.name, pair->base.name) == 0;
        const bool stays = pair->base.active && pair->from.is_snapshot && !is_base;
        struct error ignored; /* as it was before; a failure changes nothing */
        int r = pair->base.active ? 0 : lvm_activate(group, &pair->base, error);

        if (r == 0 && !is_base && !pair->to.active)
                r = lvm_activate(group, &pair->to, error);
        if (r == 0)
                r = copy_active(pair, only_changes, ret_begun, error);
        if (!is_base)
                (void)lvm_deactivate(group, pair->to.name, &ignored);
        if (pair->from.is_snapshot && !is_base && !stays)
                deactivate_shared(config, pair->pool, pair->base.name);
        else if (!stays)
                (void)lvm_deactivate(group, pair->base.name, &ignored);
        return r;
}

int pool_lvm_copy(const struct config *config, const struct pool *pool, const char *id, const char *to, bool shares,
                  struct error *error)
{
        struct pair pair = { .pool = pool };
        int r = find_pair(id, to, &pair, error);
        bool ignored = false;

        (void)shares;
        return r < 0 ? r : copy(config, &pair, /* only_changes= */ false, &ignored, error);
}

void pool_lvm_close_content(const struct config *config, const struct pool *pool, struct pool_content *content)
{
        struct error ignored; /* what stays active is used next time */

        fd_close(&content->fd);
        if (content->shared)
                deactivate_shared(config, pool, content->awake);
        else if (content->awake[0] != '\0')
                (void)lvm_deactivate(pool->volume_group, content->awake, &ignored);
}

static int open_awake(struct pair *pair, bool write, struct pool_content *content, struct error *error)
{
        struct block_device device;
        int r = check_valid(pair, error);

        if (r < 0 || (r = lvm_find_device(pair->pool->volume_group, pair->from.name, &device, error)) < 0)
                return r;
        content->fd = block_device_open(&device, (write ? O_RDWR : O_RDONLY) | O_EXCL, error);
        return content->fd < 0 ? content->fd : block_device_size(&device, &content->size_bytes, error);
}

/* As copy() does: what a killed call left active ends with this one; the volume of a snapshot may be in use. */
int pool_lvm_open_content(const struct config *config, const struct pool *pool, const char *id, bool write,
                          struct pool_content *ret_content, struct error *error)
{
        struct pair pair = { .pool = pool };
        int r;

        *ret_content = (struct pool_content){ .fd = -EBADF };
        if ((r = find(pool, id, &pair.from, error)) < 0 ||
            (r = find(pool, pair.from.is_snapshot ? pair.from.origin : id, &pair.base, error)) < 0)
                return r;
        if (!pair.base.active && (r = lvm_activate(pool->volume_group, &pair.base, error)) < 0)
                return r;
        if (!pair.base.active || !pair.from.is_snapshot)
                (void)text_copy(ret_content->awake, sizeof ret_content->awake, pair.base.name); /* shorter */
        ret_content->shared = !pair.base.active && pair.from.is_snapshot;
        if ((r = open_awake(&pair, write, ret_content, error)) < 0)
                pool_lvm_close_content(config, pool, ret_content);
        return r;
}

void pool_lvm_put_restored(const char *id, char *ret_id)
{
        (void)snprintf(ret_id, PROVISION_ID_MAX, POOL_LVM_RESTORED "%016llx", (unsigned long long)hash_text(id));
}

/*
 * A new volume shares the blocks of the snapshot, is as large as the old one, and takes its place when that is gone. A call
 * that was killed before is repeated; without the old one, only its name is missing.
 */
static int swap_thin(const struct config *config, const struct pool *pool, const char *id,
                     const struct lvm_volume *snapshot, bool *ret_torn, struct error *error)
{
        char restored[PROVISION_ID_MAX];
        struct lvm_volume thin_pool;
        struct lvm_volume leftover;
        struct lvm_volume old;
        struct error ignored; /* the first failure is the one to report */
        int r = lvm_find(pool->volume_group, id, &old, error);
        int left;

        pool_lvm_put_restored(id, restored);
        left = r == 0 || r == -ENOENT ? lvm_find(pool->volume_group, restored, &leftover, error) : r;
        if (left < 0 && left != -ENOENT)
                return left;
        if (left == 0 && !leftover.ours)
                return fail_because(error, EEXIST, "restore snapshot", restored,
                                    "volume %s/%s was not made by flexgraft; rename or remove it", pool->volume_group,
                                    restored);
        if (r == -ENOENT) {
                *ret_torn = true;
                return lvm_rename(pool->volume_group, restored, id, error);
        }
        /* others may have made classic snapshots of it */
        if ((r = pool_lvm_check_removable(config, pool, id, error)) < 0 ||
            (r = find(pool, old.thin_pool, &thin_pool, error)) < 0 ||
            (left == 0 && (r = lvm_remove(pool->volume_group, &leftover, error)) < 0))
                return r;
        r = share_thin(pool, snapshot, restored, /* snapshot= */ false, old.size_bytes, error);
        if (r == 0 && !thin_pool.zeroes) {
                *ret_torn = true;
                r = pool_lvm_wipe(config, pool, id, error);
        }
        if (r == 0 && (r = lvm_remove(pool->volume_group, &old, error)) < 0 &&
            lvm_find(pool->volume_group, id, &old, &ignored) != 0)
                *ret_torn = true;
        if (r == 0) {
                *ret_torn = true;
                return lvm_rename(pool->volume_group, restored, id, error);
        }
        if (!*ret_torn)
                (void)pool_lvm_remove_restored(pool, id, &ignored);
        return r;
}

int pool_lvm_restore(const struct config *config, const struct pool *pool, const char *id, const char *from,
                     bool shares, bool *ret_torn, struct error *error)
{
        struct pair pair = { .pool = pool };
        int r = find(pool, from, &pair.from, error);

        (void)shares;
        if (r == 0 && pair.from.thin_pool[0] != '\0')
                return swap_thin(config, pool, id, &pair.from, ret_torn, error);
        if (r < 0 || (r = find_pair(from, id, &pair, error)) < 0)
                return r;
        return copy(config, &pair, /* only_changes= */ true, ret_torn, error);
}

struct snapshots {
        const char *origin;
        const char *thin_pool; /* that it is in; "": in none */
        char names[192];
};

/* lvm removes what needs its origin with that; a thin snapshot does not, and a thin volume outside of which its origin lies does. */
static bool needs_origin(const struct lvm_volume *volume, const char *thin_pool)
{
        return volume->is_snapshot || (volume->thin_pool[0] != '\0' && strcmp(volume->thin_pool, thin_pool) != 0);
}

static int add_snapshot(const struct lvm_volume *volume, void *argument, struct error *error)
{
        struct snapshots *snapshots = argument;
        size_t length = strlen(snapshots->names);

        (void)error;
        if (strcmp(volume->origin, snapshots->origin) == 0 && needs_origin(volume, snapshots->thin_pool))
                (void)snprintf(snapshots->names + length, sizeof snapshots->names - length, "%s%s",
                               length > 0 ? ", " : "", volume->name);
        return 0;
}

/* Thin snapshots stay. */
int pool_lvm_check_removable(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        struct snapshots snapshots = { .origin = id, .thin_pool = volume.thin_pool };
        int r = lvm_find(pool->volume_group, id, &volume, error);

        (void)config;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = lvm_each(pool->volume_group, add_snapshot, &snapshots, error);
        if (r < 0 || snapshots.names[0] == '\0')
                return r;
        return fail_because(error, EBUSY, "delete volume", id,
                            "volume %s/%s has snapshots, which would be lost with it: %s; delete them first, or make "
                            "volumes of them",
                            pool->volume_group, id, snapshots.names);
}
