/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/job.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "process/log.h"
#include "provision/pool_kind.h"
#include "provision/record.h"
#include "provision/released_disks.h"

/* 1: the volume is there, perhaps in part, and not in use. 0: it is gone, and something else has its id. */
static int find_unused(const struct job *job, const struct provision_record *record, struct error *error)
{
        struct pool_item item;
        int r = job->kind->look(&job->config, &job->pool, record->id, &item, error);

        if (r == 0 && !job_is_volume(record, &item)) {
                log_say("%s of pool %s is kept: it is not volume %s any more", record->id, record->pool, record->name);
                return 0;
        }
        if (r < 0 && r != -ENOENT)
                return r;
        r = owners_check_unused(job, &job->pool, record->id, error);
        return r < 0 ? r : 1;
}

/* With the locks of name and pool; the pool's is released while the volume is overwritten, which may take hours. */
static int give_back(struct job *job, const struct provision_record *record, bool erase, bool begun,
                     struct error *error)
{
        int r;

        if (strcmp(record->reclaim_policy, "retain") == 0)
                return released_disks_add(&job->state, record->identity, error);
        if (strcmp(record->reclaim_policy, "recycle") == 0) {
                job_unlock_pool(job);
                r = job->kind->wipe(&job->config, &job->pool, record->id, error);
                return r < 0 ? r : released_disks_add(&job->state, record->identity, error);
        }
        if (erase && job->kind->erase != NULL) {
                job_unlock_pool(job);
                if ((r = job->kind->erase(&job->config, &job->pool, record->id, begun, error)) < 0 ||
                    (r = job_lock_pool(job, error)) < 0 || (r = find_unused(job, record, error)) <= 0)
                        return r;
        }
        return job->kind->remove(&job->config, &job->pool, record->id, error);
}

/* Delete, or end what an earlier call started. With the locks of name and pool. asked: a policy instead of the
 * volume's, or NULL. */
int delete_take_away(struct job *job, struct provision_record *record, const char *asked, struct error *error)
{
        const enum provision_stage was = record->stage;
        char policy[sizeof record->reclaim_policy];
        int r = find_unused(job, record, error);

        if (r < 0)
                return r;
        if (r == 0)
                return provision_record_remove(&job->state, record->name, error);
        (void)text_copy(policy, sizeof policy, record->reclaim_policy);
        if (was == PROVISION_CREATING && !record->adopted)
                asked = "delete"; /* a volume that was never finished is not kept */
        if (asked != NULL)
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, asked);
        record->stage = PROVISION_DELETING;
        r = provision_record_write(&job->state, record, error);
        /* on a full disk deleting makes room; killed now, the record would outlive its disk, and be deleted next
         * time */
        if (r < 0 && !((r == -ENOSPC || r == -EDQUOT) && strcmp(record->reclaim_policy, "delete") == 0))
                return r;
        r = give_back(job, record, was != PROVISION_CREATING && !record->keeps_content, was == PROVISION_DELETING,
                      error);
        if ((r == -EBUSY || r == -ENODEV) && was == PROVISION_CREATED) {
                struct error ignored; /* the first failure is the one to report */

                record->stage = was; /* nothing was changed, and it stays usable */
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, policy);
                (void)provision_record_write(&job->state, record, &ignored);
        }
        if (r < 0 && r != -ENOENT)
                return r;
        log_say("deleted volume %s of pool %s (%s)", record->name, record->pool, record->reclaim_policy);
        return provision_record_remove(&job->state, record->name, error);
}

int delete_volume(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&job->state, request->name, &record, error);

        if (r == -ENOENT) {
                if ((r = provision_record_remove(&job->state, request->name, error)) <
                    0) /* a temporary file may be there */
                        return r;
                job->reply = json_pack("{s:s, s:o, s:b}", "status", "Success", "name", reply_printable(request->name),
                                       "existed", false);
                return 0;
        }
        if (r < 0 || (r = job_use_pool(job, record.pool, error)) < 0 || (r = job_lock_pool(job, error)) < 0)
                return r;
        if ((r = delete_take_away(job, &record, request->reclaim_policy, error)) < 0)
                return r;
        job->reply = json_pack("{s:s, s:o, s:b, s:s, s:s}", "status", "Success", "name", reply_printable(request->name),
                               "existed", true, "pool", record.pool, "reclaimPolicy", record.reclaim_policy);
        return 0;
}
