/* SPDX-License-Identifier: Apache-2.0 */
/* volume-delete REQUEST - give a volume back to its pool. */
#include "privileges/volume-delete.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/provision.h"
#include "provision/reply.h"

static const char help[] =
        "\n"
        "Give a volume back to its pool. REQUEST is a JSON object; - reads it from standard input. The answer is one\n"
        "JSON object. A volume that is attached is refused; one that is not there is no failure.\n"
        "\n"
        "  name           the volume's\n"
        "  reclaimPolicy  delete: the room is the pool's again, and what was on it is gone; recycle: what was on it "
        "is\n"
        "                 gone, and it stays as a disk that can be adopted; retain: it stays so with what is on it.\n"
        "                 Unless given, what volume-create was told\n"
        "  operation      an id of yours: asked again with it, it is the same operation, for a week\n"
        "\n"
        "Example: volume-delete '{\"name\": \"db\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = {
        .name = "volume-delete", .help = help, .privileges = &PRIVILEGES, .before_drop = provision_begin
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_DELETE };
        json_t *reply;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_DELETE, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
