/* SPDX-License-Identifier: Apache-2.0 */
/* volume-capacity [REQUEST] - how much room there is, per pool and profile. */
#include <string.h>

#include "base/reply.h"
#include "privileges/volume-capacity.h"
#include "process/program.h"
#include "provision/provision.h"
#include "provision/reply.h"

static const char *const formats[] = { "prometheus", "json", NULL };
static const char *format;

static const struct usage_option options[] = {
        { .name = "--format",
          .words = formats,
          .help = "prometheus: metrics for node_exporter's textfile collector instead of JSON",
          .ret_word = &format },
        {},
};

static const struct program program = {
        .usage = { .name = "volume-capacity",
                   .options = options,
                   .about = "Tell how much room there is for volumes, in bytes: per pool, and per pool and profile.",
                   .schema = &provision_schemas[PROVISION_CAPACITY],
                   .examples = "Example: volume-capacity '{\"pool\": \"fast\"}'\n"
                               "         volume-capacity --format prometheus\n" },
        .privileges = &PRIVILEGES,
        .before_drop = provision_begin,
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_CAPACITY };
        json_t *reply;
        static struct error error;
        bool metrics;
        int r;

        r = program_begin_words(&program, &argc, &argv, &error);
        metrics = format != NULL && strcmp(format, "prometheus") == 0;
        if (r < 0 || provision_request_parse(&request, PROVISION_CAPACITY, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return metrics ? provision_reply_complaint(&request, &error)
                               : provision_reply_failure(&request, &error);
        return metrics ? provision_metrics_say(reply) : reply_say(reply, EXIT_DONE);
}
