/* SPDX-License-Identifier: Apache-2.0 */
/* mount-batch REQUEST - many mounts into running containers: all of them or none. */
#include "privileges/mount-batch.h"
#include "inject/apply.h"
#include "inject/helper_main.h"
#include "inject/reply_failure.h"
#include "inject/request/request.h"
#include "inject/request/request_keys.h"
#include "named/batch_begin.h"
#include "process/program.h"

static const struct schema schema = { .request = &request_batch_keys,
                                      .programs = 1,
                                      .make_request = batch_schema,
                                      .reply_programs = REPLIES_BATCH,
                                      .replies = inject_reply_forms,
                                      .people = inject_people };

static const struct program program = {
        .usage = { .name = "mount-batch",
                   .about =
                           "Put many mounts into a container that is already running: all of them or none. Every mount "
                           "is prepared before any is placed; then they are placed, parents before children. With "
                           "\"wanted\" it mounts what \"persist\" wants in the container, where no hook does.",
                   .options = usage_of_long,
                   .schema = &schema,
                   .examples = "Example: mount-batch '{\"container\": \"web\", \"mounts\": [\n"
                               "  {\"type\": \"bind\", \"source\": \"/srv/data\", \"target\": \"/data\"},\n"
                               "  {\"destination\": \"/data/tmp\", \"type\": \"tmpfs\", \"source\": \"tmpfs\",\n"
                               "   \"options\": [\"size=16m\"]}]}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = batch_begin_for_request,
};

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        const struct batch batch = { .request = &request };
        static struct outcome outcomes[REQUEST_ENTRIES_MAX];
        static struct plan plans[REQUEST_ENTRIES_MAX];
        const struct outcome *failed;
        static struct error error;

        if (program_begin_words(&program, &argc, &argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_BATCH, source_kinds, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        if (request.entry_count == 0) /* nothing is wanted */
                return request.dry_run ? inject_reply_planned_all(plans, outcomes, 0)
                                       : inject_reply_mounted_all(outcomes, 0);
        request.releaser = &named_releaser;
        plan_make_batch(plans, &request);
        if (plan_apply_batch(plans, &batch, outcomes, &failed, &error) < 0)
                return inject_reply_failed(&request, failed, &error);
        return request.dry_run ? inject_reply_planned_all(plans, outcomes, request.entry_count)
                               : inject_reply_mounted_all(outcomes, request.entry_count);
}
