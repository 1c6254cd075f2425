/* SPDX-License-Identifier: Apache-2.0 */
/* mount-list REQUEST - what flexgraft put into containers, each held against the kernel. */
#include "privileges/mount-list.h"
#include "inject/helper_main.h"
#include "inject/list_table.h"
#include "inject/listing.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "process/program.h"

static const char *table;

static const struct usage_option options[] = {
        { .name = "--table",
          .help = "a table for people instead of JSON; REQUEST may then be left out",
          .ret_word = &table },
        {},
};

static const struct program program = {
        .usage = { .name = "mount-list",
                   .arguments = "[--table] REQUEST | -",
                   .about = "List what flexgraft put into containers: all of them with {}, or one's. Each mount's "
                            "\"state\" is what the "
                            "kernel says: present, covered (by another mount, or moved away), gone.",
                   .options = options,
                   .schema = HELPER_SCHEMA(REQUEST_MOUNT_LIST),
                   .examples = "Example: mount-list '{\"container\": \"web\"}'\n"
                               "         mount-list --table\n" },
        .privileges = &PRIVILEGES,
};

int main(int argc, char **argv)
{
        static char everything[] = "{}";
        char *defaults[] = { argv[0], everything, NULL };
        cleanup_request struct request request = {};
        cleanup_listing struct listing listing = {};
        static struct error error;
        int r;

        program_options(&program, &argc, &argv);
        if (table != NULL && argc == 1) {
                argv = defaults;
                argc = 2;
        }
        if ((r = program_begin(&program, argc, argv, &error)) == 0 &&
            (r = request_parse(&request, REQUEST_MOUNT_LIST, /* sources= */ NULL, argc, argv, &error)) == 0)
                r = listing_make(&listing, &request, &error);
        if (table != NULL)
                return r < 0 ? inject_reply_complaint(program.usage.name, &request, &error) : list_table_say(&listing);
        return r < 0 ? inject_reply_failure(&request, &error) : inject_reply_listed(&listing);
}
