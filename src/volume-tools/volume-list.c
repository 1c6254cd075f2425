/* SPDX-License-Identifier: Apache-2.0 */
/* volume-list [REQUEST] - pools, disks that could be adopted, and volumes. */
#include <string.h>

#include "base/reply.h"
#include "privileges/volume-list.h"
#include "process/program.h"
#include "provision/provision.h"
#include "provision/reply.h"
#include "volume/tools.h"

static const char *const formats[] = { "prometheus", "json", NULL };
static const char *format;
static const char *table;

static const struct usage_option options[] = {
        { .name = "--format",
          .words = formats,
          .help = "prometheus: metrics for node_exporter's textfile collector instead of JSON, also of the driver's "
                  "volumes and of calls",
          .ret_word = &format },
        { .name = "--table", .help = "tables for people instead of JSON", .ret_word = &table },
        {},
};

static const struct program program = {
        .usage = { .name = "volume-list",
                   .options = options,
                   .about = "List the pools (raw, without an id), the disks in them that no volume has (raw, with an "
                            "id), and the volumes (mount or block).",
                   .schema = &provision_schemas[PROVISION_LIST],
                   .examples = "Example: volume-list '{\"pool\": \"fast\"}'\n"
                               "         volume-list --table\n"
                               "         volume-list --format prometheus\n" },
        .privileges = &PRIVILEGES,
        .before_drop = provision_begin,
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_LIST };
        json_t *reply;
        static struct error error;
        bool metrics;
        int r;

        r = program_begin_words(&program, &argc, &argv, &error);
        if (table != NULL)
                reply_to_people(provision_people_listed);
        metrics = format != NULL && strcmp(format, "prometheus") == 0;
        if (r < 0 || provision_request_parse(&request, PROVISION_LIST, argc, argv, &error) < 0 ||
            (request.path != NULL ? volume_health_mounted(&request, &reply, &error)
                                  : provision_run(&request, &reply, &error)) < 0)
                return metrics ? provision_reply_complaint(&request, &error)
                               : provision_reply_failure(&request, &error);
        if (request.path != NULL)
                return provision_end(), reply_say(reply, EXIT_DONE);
        r = volume_health_add(reply, &error);
        if (!metrics)
                return r < 0 ? provision_reply_failure(&request, &error) : reply_say(reply, EXIT_DONE);
        if (r == 0)
                r = volume_metrics_say(reply, &error);
        return r < 0 ? provision_reply_complaint(&request, &error) : r;
}
