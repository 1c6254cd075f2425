/* SPDX-License-Identifier: Apache-2.0 */
/* mount-list REQUEST - what flexgraft put into containers, each held against the kernel. */
#include "privileges/mount-list.h"
#include "common/listing.h"
#include "common/program.h"
#include "common/status.h"

static const char help[] =
        "\n"
        "List what flexgraft put into containers: all of them with {}, or one's. REQUEST is a JSON object;\n"
        "- reads it from standard input. The answer is one JSON object; each mount's \"state\" is what the\n"
        "kernel says: present, covered (by another mount, or moved away), gone.\n"
        "\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S}\n"
        "  timeoutSeconds  1 to 3600, default 30\n"
        "\n"
        "Example: mount-list '{\"container\": \"web\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { "mount-list", help, &PRIVILEGES };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        cleanup_listing struct listing listing = {};
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_LIST, argc, argv, &error) < 0 ||
            listing_make(&listing, &request, &error) < 0)
                return status_failure(&request, &error);
        return status_listed(&listing);
}
