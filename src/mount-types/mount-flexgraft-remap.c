/* SPDX-License-Identifier: Apache-2.0 */
/* mount.flexgraft-remap SOURCE TARGET [OPTION...] - what mount(8) runs for "mount -t flexgraft-remap": remap-mount by that name. */
#include <libmount/libmount.h>

#include "arguments.h"
#include "daemon/remap.h"
#include "inject/mappable.h"
#include "outcome.h"
#include "privileges/mount-flexgraft-remap.h"
#include "process/program.h"

#define NAME "mount.flexgraft-remap"

static struct arguments arguments;

static int begin(int argc, char **argv, struct error *error)
{
        int r = arguments_read_mount(&arguments, /* own= */ false, argc, argv, error);

        if (r < 0 || (r = arguments_check_plain(&arguments, error)) < 0)
                return r;
        return remap_begin_mappable(argc, argv, error);
}

static const struct program program = {
        .usage = { .name = NAME,
                   .arguments = "SOURCE DIRECTORY [-fnsvrw] [-o OPTIONS]",
                   .about = "Mount a directory of this node, or an export of an NFS server (nfs:HOST:/PATH), on a "
                            "directory as a filesystem that container runtimes can id-map: mount(8) runs this program "
                            "for \"mount -t flexgraft-remap SOURCE DIRECTORY\". It does what remap-mount does. OPTIONS "
                            "are ro, rw, nodev, x-* and, of an export, those of nfs(5).",
                   .exit_status = OUTCOME_STATUS },
        .privileges = &PRIVILEGES,
        .takes_options = true,
        .before_drop = begin,
};

int main(int argc, char **argv)
{
        static struct error error;
        bool already;

        if (program_begin(&program, argc, argv, &error) < 0)
                return outcome_failure(NAME, &arguments, &error);
        if (arguments.fake)
                return MNT_EX_SUCCESS;
        if (mappable_mount_words(arguments.source, arguments.target, arguments.read_only, &arguments.options, &already,
                                 &error) < 0)
                return outcome_failure(NAME, &arguments, &error);
        if (already)
                return outcome_mounted_already(NAME, &arguments);
        if (arguments.verbose)
                outcome_say(NAME, "", "%s mounted on %s.", arguments.source, arguments.target);
        return MNT_EX_SUCCESS;
}
