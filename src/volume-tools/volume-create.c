/* SPDX-License-Identifier: Apache-2.0 */
/* volume-create REQUEST - make a volume in a pool, or adopt a disk that is there. */
#include "privileges/volume-create.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/provision.h"
#include "provision/reply.h"

static const char help[] =
        "\n"
        "Make a volume in a pool, or adopt a disk that is there already. REQUEST is a JSON object; - reads it from\n"
        "standard input. The answer is one JSON object. The same request twice is one volume.\n"
        "\n"
        "  name           the volume's, up to 255 bytes\n"
        "  size           bytes, or with k, m, g, t; rounded up as the pool needs it\n"
        "  pool           pools.d/POOL.json; \"default\" unless a profile picks one\n"
        "  profile        of profiles.json: picks a pool, and says filesystem, mount flags, parameters\n"
        "  targetType     mount (default) or block\n"
        "  fsType         of the filesystem that it gets when it is first used\n"
        "  parameters     an object of strings; loop: preallocate (true, false); lvm: type (linear, striped, mirror,\n"
        "                 raid1, raid5, raid6, raid10, thin), stripes, mirrors, stripesize, thinpool;\n"
        "                 pmem: usage (AppDirect, FileIO)\n"
        "  eraseAfter     false: volume-delete need not overwrite what was on it\n"
        "  id             adopt this disk of the pool (volume-list shows them), with what is on it\n"
        "  match          true: adopt the smallest blank disk that is large enough; make one if there is none\n"
        "  reclaimPolicy  what volume-delete does: delete (default), retain (default of what was adopted), recycle\n"
        "  operation      an id of yours: asked again with it, it is the same operation, for a week\n"
        "\n"
        "Example: volume-create '{\"name\": \"db\", \"size\": \"10g\", \"pool\": \"fast\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = {
        .name = "volume-create", .help = help, .privileges = &PRIVILEGES, .before_drop = provision_begin
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_CREATE };
        json_t *reply;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_CREATE, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
