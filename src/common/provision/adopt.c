/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/job.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/profile.h"
#include "provision/released_disks.h"

#define MATCHES_MAX 8 /* how often another process may take a disk first */

/* That a disk is no volume and not in use. owner: the volume that it is, or NULL. */
static int check_free(const struct job *job, const struct pool *pool, const char *owner, const char *id,
                      struct error *error)
{
        if (owner != NULL)
                return fail_because(error, EBUSY, "adopt", id, "it already is the volume \"%.200s\"", owner);
        return owners_check_unused(job, pool, id, error);
}

int adopt_disk(struct job *job, const char *id, struct provision_record *ret_record, struct error *error)
{
        char owner[PROVISION_NAME_MAX];
        struct pool_item item;
        int r;

        if ((r = job_lock_pool(job, error)) < 0)
                return r;
        r = job->kind->look(&job->config, &job->pool, id, &item, error);
        if (r == -ENOENT)
                return fail_because(error, ENOENT, "adopt", id, "there is no \"%.200s\" in pool \"%.128s\"", id,
                                    job->pool.name);
        if (r < 0 || (r = owners_look(job, job->pool.name, id, owner, error)) < 0 ||
            (r = check_free(job, &job->pool, r > 0 ? owner : NULL, id, error)) < 0)
                return r;
        if (job->kind->no_device && !item.limited) /* a directory has the size that it is given */
                item.size_bytes = job->request->size_bytes;
        if (item.size_bytes < job->request->size_bytes || (item.size_bytes == 0 && !job->kind->no_device))
                return fail_because(error, ERANGE, "adopt", id, "it has %llu bytes, and the request is for %llu",
                                    (unsigned long long)item.size_bytes, (unsigned long long)job->request->size_bytes);
        if (job->profile != NULL && job->kind->fits != NULL &&
            !job->kind->fits(&item, profile_parameters(job->profile)))
                return fail_because(error, EINVAL, "adopt", id,
                                    "its layout is \"%s\", which does not match profile \"%.200s\"", item.layout,
                                    job->request->profile);
        if (job->pool.path[0] != '\0') {
                cleanup_close int pool_fd = pool_use(&job->config, &job->pool, error);

                if (pool_fd < 0)
                        return pool_fd;
        }
        if ((r = pool_kind_check_parameters(job->kind, job->request->parameters, error)) < 0)
                return r;
        job_init_record(job, ret_record);
        if ((r = job_check_target(job, ret_record, error)) < 0)
                return r;
        (void)text_copy(ret_record->id, sizeof ret_record->id, id);
        (void)text_copy(ret_record->identity, sizeof ret_record->identity, item.identity);
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        job->request->reclaim_policy ?: "retain");
        ret_record->adopted = true;
        ret_record->size_bytes = item.size_bytes;
        ret_record->lifecycle = PROVISION_CREATED;
        if ((r = provision_record_write(&job->state, ret_record, FILE_DURABLE, error)) < 0)
                return r;
        return released_disks_remove(&job->state, item.identity, error);
}

struct match {
        struct job *job;
        struct pool pool; /* the one being searched */
        struct pool best_pool;
        struct pool_item best; /* size 0: none */
};

static int match_item(const struct pool_item *item, void *argument, struct error *error)
{
        struct match *match = argument;
        struct job *job = match->job;
        struct error ignored;
        int r;

        (void)error;
        if (item->size_bytes < job->request->size_bytes ||
            (match->best.size_bytes != 0 && item->size_bytes >= match->best.size_bytes))
                return 0;
        if (job->kind->fits != NULL &&
            !job->kind->fits(item, job->profile != NULL ? profile_parameters(job->profile) : job->request->parameters))
                return 0;
        if (check_free(job, &match->pool, owners_find(job, match->pool.name, item->id), item->id, &ignored) < 0)
                return 0; /* it is in use */
        if (job->kind->unmarked && !released_disks_has(&job->state, item->identity))
                return 0; /* nothing says that it ever was a volume */
        r = job->kind->is_blank(&job->config, &match->pool, item->id, &ignored);
        if (r < 0 && r != -ENOENT)
                log_say("skipping %s of pool %s: %s", item->id, match->pool.name, error_why(&ignored));
        if (r <= 0)
                return 0; /* it holds data, or is gone */
        match->best = *item;
        match->best_pool = match->pool;
        return 0;
}

static int match_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct match *match = argument;
        struct job *job = match->job;
        int r;

        if (pool->kind == NULL || (job->profile != NULL && !profile_selects(job->profile, pool)))
                return 0;
        match->pool = *pool;
        job->pool = *pool;
        job->kind = pool->kind;
        r = job_lock_pool(job, error); /* reading a disk may activate it */
        if (r == 0)
                r = job->kind->each(&job->config, pool, match_item, match, error);
        if (r < 0 && job->request->pool == NULL) {
                log_say("skipping pool %s: %s", pool->name, error_why(error));
                return 0;
        }
        return r;
}

/* The smallest blank disk that is large enough: 1 adopted; 0 there is none. */
int adopt_match(struct job *job, struct provision_record *ret_record, struct error *error)
{
        for (int i = 0; i < MATCHES_MAX; i++) {
                struct match match = { .job = job };
                struct pool asked;
                int r = owners_read(job, error);

                if (r == 0 && job->request->pool != NULL) {
                        r = job_use_pool(job, job->request->pool, error);
                        asked = job->pool;
                        r = r < 0 ? r : match_pool(&asked, &match, error);
                } else if (r == 0)
                        r = pool_each(&job->config, match_pool, &match, error);
                if (r < 0)
                        return r;
                if (match.best.size_bytes == 0)
                        return 0;
                if ((r = job_use_pool(job, match.best_pool.name, error)) < 0)
                        return r;
                r = adopt_disk(job, match.best.id, ret_record, error);
                if (r == 0)
                        return 1;
                provision_record_release(ret_record);
                if (r != -EBUSY && r != -ENOENT)
                        return r;
        }
        return 0;
}
