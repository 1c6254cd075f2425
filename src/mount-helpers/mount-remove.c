/* SPDX-License-Identifier: Apache-2.0 */
/* mount-remove REQUEST - take away a mount that flexgraft put into a container, and nothing else. */
#include "privileges/mount-remove.h"
#include "inject/apply.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Take away a mount that flexgraft put into a container, and the directories it made for it.\n"
        "REQUEST is a JSON object; - reads it from standard input. The answer is one JSON object.\n"
        "What is gone already is a success.\n"
        "\n"
        "  id                  the mount's id, from the reply that made it or from mount-list; or\n"
        "  container, target   as they were given\n"
        "  force               true: detach it although it is in use, or its server does not answer\n"
        "  dryRun              true: only say what would be done\n"
        "  timeoutSeconds      1 to 3600, default 30\n"
        "\n"
        "Example: mount-remove '{\"container\": \"web\", \"target\": \"/data\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "mount-remove", .help = help, .privileges = &PRIVILEGES };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_REMOVE, /* sources= */ NULL, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failure(&request, &error);
        return request.dry_run ? inject_reply_planned(&plan, &outcome) : inject_reply_removed(&outcome);
}
