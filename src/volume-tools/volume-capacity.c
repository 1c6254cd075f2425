/* SPDX-License-Identifier: Apache-2.0 */
/* volume-capacity [REQUEST] - how much room there is, per pool and profile. */
#include <string.h>

#include "base/reply.h"
#include "privileges/volume-capacity.h"
#include "process/program.h"
#include "provision/metrics.h"
#include "provision/provision.h"
#include "provision/reply.h"

static const char help[] =
        "\n"
        "Tell how much room there is for volumes: per pool, and per pool and profile; in bytes. REQUEST is a JSON\n"
        "object and may be left out; - reads it from standard input. The answer is one JSON object.\n"
        "\n"
        "  --format prometheus  before REQUEST: metrics for node_exporter's textfile collector instead of JSON\n"
        "  pool                 this one alone\n"
        "  profile              this one alone\n"
        "\n"
        "Example: volume-capacity '{\"pool\": \"fast\"}'\n"
        "         volume-capacity --format prometheus >/var/lib/node_exporter/flexgraft.prom\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "volume-capacity",
                                        .help = help,
                                        .privileges = &PRIVILEGES,
                                        .arguments = "[--format prometheus | json] [REQUEST | -]",
                                        .before_drop = provision_begin };

int main(int argc, char **argv)
{
        bool formatted = argc > 2 && strcmp(argv[1], "--format") == 0;
        bool metrics = formatted && strcmp(argv[2], "prometheus") == 0;
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_CAPACITY };
        json_t *reply;
        static struct error error;

        if (metrics || (formatted && strcmp(argv[2], "json") == 0)) {
                argv += 2;
                argc -= 2;
        }
        if (program_begin(&program, argc, argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_CAPACITY, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return metrics ? provision_reply_complaint(&request, &error)
                               : provision_reply_failure(&request, &error);
        return metrics ? provision_metrics_say(reply) : reply_say(reply, EXIT_DONE);
}
