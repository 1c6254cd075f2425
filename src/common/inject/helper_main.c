/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/helper_main.h"

#include "inject/apply.h"
#include "inject/reply_failure.h"
#include "inject/request/request.h"

int helper_main(const struct helper *helper, int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin_words(&helper->program, &argc, &argv, &error) < 0 ||
            request_parse(&request, helper->kind, helper->sources, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        request.releaser = helper->releaser;
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failed(&request, &outcome, &error);
        if (request.dry_run)
                return inject_reply_planned(&plan, &outcome);
        return helper->kind == REQUEST_MOUNT_REMOVE ? inject_reply_removed(&outcome) : inject_reply_mounted(&outcome);
}
