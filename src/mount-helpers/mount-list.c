/* SPDX-License-Identifier: Apache-2.0 */
/* mount-list REQUEST - what flexgraft put into containers, each held against the kernel. */
#include <string.h>

#include "base/reply.h"
#include "inject/helper_main.h"
#include "inject/listing.h"
#include "inject/reply_failure.h"
#include "inject/request/request.h"
#include "privileges/mount-list.h"
#include "process/program.h"

static const char *const formats[] = { "prometheus", "json", NULL };
static const char *format;
static const char *table;

static const struct usage_option options[] = {
        { .name = "--table", .help = "a table for people instead of JSON", .ret_word = &table },
        { .name = "--format",
          .words = formats,
          .help = "prometheus: metrics for node_exporter's textfile collector instead of JSON",
          .ret_word = &format },
        {},
};

static const struct program program = {
        .usage = { .name = "mount-list",
                   .about = "List what flexgraft put into containers: all of them, or one's. Each mount's "
                            "\"state\" is what the "
                            "kernel says: present, covered (by another mount, or moved away), gone. "
                            "What \"persist\" wants and is not there is \"wanted\".",
                   .options = options,
                   .schema = HELPER_SCHEMA(request_list_keys, REPLIES_LIST),
                   .examples = "Example: mount-list '{\"container\": \"web\"}'\n"
                               "         mount-list --table\n" },
        .privileges = &PRIVILEGES,
};

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        cleanup_listing struct listing listing = {};
        static struct error error;
        bool metrics;
        int r;

        r = program_begin_words(&program, &argc, &argv, &error);
        metrics = format != NULL && strcmp(format, "prometheus") == 0;
        if (r == 0 && (r = request_parse(&request, REQUEST_MOUNT_LIST, /* sources= */ NULL, argc, argv, &error)) == 0)
                r = listing_make(&listing, &request, &error);
        if (table != NULL || metrics || reply_is_for_people())
                return r < 0     ? inject_reply_complaint(program.usage.name, &request, /* failed= */ NULL, &error)
                       : metrics ? listing_metrics_say(&listing)
                                 : list_table_say(&listing);
        return r < 0 ? inject_reply_failure(&request, &error) : inject_reply_listed(&listing);
}
