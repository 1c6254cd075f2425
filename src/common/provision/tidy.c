/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/tree_remove.h"
#include "pool/pool_kind.h"
#include "pool/pool_sums.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/call.h"
#include "provision/cdi.h"
#include "state/volume_record.h"

#define TIDY_REMOVE_MS 20000 /* of trees; volume-delete, and the next call, go on */

struct tidying {
        struct provision_call *call;
        bool dry_run;
        provision_thaw *thaw;
        provision_tell *tell;
        void *argument;
        json_t *pools; /* descriptors of the directories of pools of images, by name; owned; negative: not to be had */
};

static int image_pool(const struct tidying *tidying, const char *name)
{
        const struct config *config = &tidying->call->config;
        const json_t *known = json_object_get(tidying->pools, name);
        struct error ignored; /* of pools that cannot be looked at, others tell */
        struct pool pool;
        int fd = -EBADF;

        if (known != NULL)
                return (int)json_integer_value(known);
        if (pool_find(config, name, &pool, &ignored) == 0 && pool.kind->has_images) {
                pool.only_read = true;
                if (pool_check_answers(config, &pool, &ignored) == 0)
                        fd = pool_open(config, &pool, &ignored);
        }
        (void)json_object_set_new(tidying->pools, name, json_integer(fd));
        return fd;
}

static void close_pools(json_t *pools)
{
        const char *name;
        json_t *value;

        json_object_foreach (pools, name, value)
                if (json_integer_value(value) >= 0)
                        (void)close((int)json_integer_value(value)); /* only read from */
        json_decref(pools);
}

/* 0: there is none, or it cannot be looked at. Logical volumes are not asked for: lvm would have to be run each time. */
static uint64_t image_bytes(const struct tidying *tidying, const struct provision_record *record)
{
        int pool_fd = pool_kind_has_images(record->pool_type) ? image_pool(tidying, record->pool) : -EBADF;
        struct stat st;

        return pool_fd >= 0 && fstatat(pool_fd, record->id, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
                       ? (uint64_t)st.st_size
                       : 0;
}

static bool is_finished(const struct provision_record *record)
{
        return record->lifecycle == PROVISION_CREATED && record->restoring[0] == '\0';
}

/* A call that grew the image was killed before it wrote the record. With the lock of its name. Returns 1: written. */
static int agree_size(const struct tidying *tidying, const char *name, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        const struct state *state = &tidying->call->state;
        uint64_t size_bytes;
        int r;

        provision_record_forget_read(); /* it was read without the lock */
        r = provision_record_read(state, name, &record, error);
        if (r < 0 || !is_finished(&record))
                return r == -ENOENT ? 0 : r;
        size_bytes = image_bytes(tidying, &record);
        if (size_bytes <= record.size_bytes)
                return 0;
        record.size_bytes = size_bytes;
        r = tidying->dry_run ? 0 : provision_record_write(state, &record, FILE_DURABLE, error);
        return r < 0 ? r : 1;
}

/* Only what is copied takes long: what needs not be overwritten has the snapshot's blocks, in a moment. */
static int check_restored_soon(struct provision_call *call, const struct provision_record *record, struct error *error)
{
        int r;

        if (!pool_kind_is_torn(record) || record->size_bytes <= DELETE_SOON_MAX_BYTES)
                return 0;
        if ((r = provision_call_use_pool_of(call, record, error)) < 0)
                return r;
        if (call->kind->is_erased != NULL &&
            (r = call->kind->is_erased(&call->config, &call->pool, record->id, error)) != 0)
                return r < 0 ? r : 0;
        return fail_because(error, EBUSY, "restore snapshot", record->name,
                            "%llu bytes are not compared yet; run volume-snapshot to finish",
                            (unsigned long long)record->size_bytes);
}

/* With the lock of its name. Returns 1: deleted, or would be. */
static int tidy(const struct tidying *tidying, const char *name, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        struct provision_call *call = tidying->call;
        int r;

        provision_record_forget_read(); /* it was read without the lock */
        r = provision_record_read(&call->state, name, &record, error);

        if (r < 0 || is_finished(&record))
                return r == -ENOENT ? 0 : r;
        if (tidying->dry_run)
                return record.lifecycle != PROVISION_CREATED;
        if (record.lifecycle == PROVISION_CREATED)
                return (r = check_restored_soon(call, &record, error)) < 0 ? r
                                                                           : restore_unrestore(call, &record, error);
        /* this record is what tells that the volume's filesystem may be frozen */
        if (record.lifecycle == PROVISION_CREATING && record.snapshot_of[0] != '\0' &&
            (r = tidying->thaw(&call->config, record.snapshot_of, error)) < 0)
                return r;
        if ((r = provision_call_use_pool_of(call, &record, error)) < 0 ||
            (r = pool_check_answers(&call->config, &call->pool, error)) < 0)
                return r;
        if ((r = delete_check_soon(call, &record, error)) < 0 || (r = provision_call_lock_pool(call, error)) < 0)
                return r;
        r = delete_finish(call, &record, /* asked= */ NULL, error);
        cdi_settle(&call->config, &call->state, name);
        return r < 0 ? r : 1;
}

static int tidy_one(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct tidying *tidying = argument;
        struct state *state = &tidying->call->state;
        struct error failure = {};
        bool finished;
        int r;

        (void)stem;
        (void)error;
        if (record == NULL)
                return 0;
        finished = is_finished(record);
        if ((finished && image_bytes(tidying, record) <= record->size_bytes) ||
            !state_try_lock(state, volume_record_key(record->name))) /* a running call works on it */
                return 0;
        r = finished ? agree_size(tidying, record->name, &failure) : tidy(tidying, record->name, &failure);
        provision_call_unlock_pool(tidying->call); /* the others may take long */
        if (r != 0)
                tidying->tell(record->name,
                              finished ? "wrote the size of a volume whose image had grown"
                                       : "deleted a volume that was half made or half deleted",
                              r < 0 ? &failure : NULL, tidying->argument);
        state_unlock(state, volume_record_key(record->name));
        return 0;
}

struct counting {
        const struct config *config;
        json_t *kept; /* the names of the pools' sums; owned */
};

/* What was changed by hand may not be seen in the pool's directory. */
static int count_pool(const struct pool *pool, void *argument, struct error *error)
{
        const struct counting *counting = argument;
        cleanup_close int pool_fd = -EBADF;
        struct pool_use ignored;

        if (pool->kind == NULL || !pool->kind->has_images || pool_check_answers(counting->config, pool, error) < 0 ||
            (pool_fd = pool_open(counting->config, pool, error)) < 0)
                return 0;
        pool_sums_keep(pool_fd, counting->kept);
        /* a failure costs the next call a count */
        (void)pool_sums_ask(counting->config->state_dir, pool_fd, /* anew= */ true, &ignored, error);
        return 0;
}

/* A failure is met again by the call that uses the pool, and by the next volume-reconcile. */
static int tidy_pool(const struct pool *pool, void *argument, struct error *error)
{
        if (pool->kind != NULL && pool->kind->tidy != NULL &&
            (pool_check_answers(argument, pool, error) < 0 || pool->kind->tidy(argument, pool, error) < 0))
                log_say("pool %s is not tidy: %s", pool->name, error_why(error));
        return 0;
}

static void count_anew(const struct config *config)
{
        struct counting counting = { .config = config, .kept = json_object() };
        struct error ignored; /* of pools that cannot be looked at, others tell */

        if (pool_each(config, count_pool, &counting, &ignored) == 0)
                pool_sums_remove_others(config->state_dir, counting.kept);
        json_decref(counting.kept);
}

int provision_tidy(const struct config *config, bool dry_run, provision_thaw *thaw, provision_tell *tell,
                   void *argument, struct error *error)
{
        static struct provision_call call;
        const struct tidying tidying = { .call = &call,
                                         .dry_run = dry_run,
                                         .thaw = thaw,
                                         .tell = tell,
                                         .argument = argument,
                                         .pools = json_object() };
        struct error ignored; /* of pools that cannot be listed, others tell */
        int r;

        tree_remove_until(clock_now_ms() + TIDY_REMOVE_MS);
        call = (struct provision_call){ .config = *config, .state = STATE_NONE };
        r = provision_record_open(config->state_dir, /* create= */ false, &call.state, error);
        if (r == 0)
                r = provision_record_each(&call.state, /* set_aside= */ true, tidy_one, (void *)&tidying, error);
        close_pools(tidying.pools);
        if (r >= 0 && !dry_run) {
                provision_record_tidy(&call.state);
                r = record_find_repair(&call.state, error);
        }
        if ((r >= 0 || r == -ENOENT) && !dry_run)
                count_anew(config);
        if ((r >= 0 || r == -ENOENT) && !dry_run)
                (void)pool_each(config, tidy_pool, (void *)config, &ignored);
        provision_call_release(&call);
        return r == -ENOENT ? 0 : r;
}
