/* SPDX-License-Identifier: Apache-2.0 */
/* host-check [REQUEST] - what this node can and cannot do for flexgraft, and what to do about it. */
#include "privileges/host-check.h"
#include "base/reply.h"
#include "host/check.h"
#include "process/program.h"

static const char *table;

static const struct usage_option options[] = {
        { .name = "--table", .help = "a table for people instead of JSON", .ret_word = &table },
        {},
};

static const struct program program = {
        .usage = { .name = "host-check",
                   .about = "Tell what this node can and cannot do for flexgraft, row by row, and what to do about "
                            "what is missing: kernel calls, namespaces, filesystems, id-mapped mounts, devices, "
                            "programs. What can be tried without a trace is tried; nothing is changed or loaded.\n"
                            "A row is required if a pool, a profile or policy.json needs it, or every program does.\n",
                   .options = options,
                   .schema = &host_schema,
                   .examples = "Example: host-check '{\"kinds\": [\"nfs\", \"lvm\"]}'\n"
                               "         host-check --table\n",
                   .exit_status = "Exit status: 0 nothing required is missing, 1 something is, 2 the request cannot be "
                                  "understood. Without root, what only root can try is unknown." },
        .privileges = &PRIVILEGES,
        .before_drop = host_begin,
        .rootless = true,
};

int main(int argc, char **argv)
{
        struct host_request request = {};
        json_t *reply;
        static struct error error;

        if (program_begin_words(&program, &argc, &argv, &error) < 0 || host_parse(argc, argv, &request, &error) < 0 ||
            host_check(&request, &PRIVILEGES, &reply, &error) < 0)
                return host_say_failure(&error, table != NULL);
        return host_say(reply, table != NULL || reply_is_for_people());
}
