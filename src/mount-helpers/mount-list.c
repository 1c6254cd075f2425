/* SPDX-License-Identifier: Apache-2.0 */
/* mount-list REQUEST - what flexgraft put into containers, each held against the kernel. */
#include <string.h>

#include "inject/list_table.h"
#include "inject/listing.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "privileges/mount-list.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "List what flexgraft put into containers: all of them with {}, or one's. REQUEST is a JSON object;\n"
        "- reads it from standard input. The answer is one JSON object; each mount's \"state\" is what the\n"
        "kernel says: present, covered (by another mount, or moved away), gone.\n"
        "\n"
        "  --table         before REQUEST, which may then be left out: a table for people instead of JSON\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S}\n"
        "  timeoutSeconds  1 to 3600, default 30\n"
        "\n"
        "Example: mount-list '{\"container\": \"web\"}'\n"
        "         mount-list --table\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = {
        .name = "mount-list", .help = help, .privileges = &PRIVILEGES, .arguments = "[--table] REQUEST | -"
};

int main(int argc, char **argv)
{
        bool table = argc > 1 && strcmp(argv[1], "--table") == 0;
        static char everything[] = "{}";
        char *defaults[] = { argv[0], everything, NULL };
        cleanup_request struct request request = {};
        cleanup_listing struct listing listing = {};
        static struct error error;
        int r;

        if (table) {
                argv = argc > 2 ? argv + 1 : defaults;
                argc = argc > 2 ? argc - 1 : 2;
        }
        if ((r = program_begin(&program, argc, argv, &error)) == 0 &&
            (r = request_parse(&request, REQUEST_MOUNT_LIST, /* sources= */ NULL, argc, argv, &error)) == 0)
                r = listing_make(&listing, &request, &error);
        if (table)
                return r < 0 ? inject_reply_complaint(program.name, &request, &error) : list_table_say(&listing);
        return r < 0 ? inject_reply_failure(&request, &error) : inject_reply_listed(&listing);
}
