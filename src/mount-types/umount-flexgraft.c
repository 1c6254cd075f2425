/* SPDX-License-Identifier: Apache-2.0 */
/* umount.flexgraft DIRECTORY [OPTION...] - what umount(8) runs for a mount of mount.flexgraft: it detaches the volume, too. */
#include <libmount/libmount.h>

#include "arguments.h"
#include "outcome.h"
#include "privileges/umount-flexgraft.h"
#include "process/program.h"
#include "utab.h"

#define NAME "umount.flexgraft"

static struct arguments arguments;

static int begin(int argc, char **argv, struct error *error)
{
        int r = arguments_read_unmount(&arguments, argc, argv, error);

        if (r < 0 || (r = utab_begin(error)) < 0)
                return r;
        return node_unmount_begin(argc, argv, error);
}

static const struct program program = {
        .usage = { .name = NAME,
                   .arguments = "DIRECTORY [-flnrv]",
                   .about = "Unmount a volume that mount.flexgraft mounted, and detach it if nothing else uses it. "
                            "umount(8) runs this program for such a mount: \"umount DIRECTORY\".",
                   .exit_status = OUTCOME_STATUS },
        .privileges = &PRIVILEGES,
        .takes_options = true,
        .before_drop = begin,
};

/* Returns the exit status. */
static int unmount_it(struct error *error)
{
        const struct node_unmount request = { .target = arguments.target,
                                              .lazy = arguments.lazy,
                                              .force = arguments.force,
                                              .read_only = arguments.read_only };
        struct error left;
        int r = node_unmount(&request, &left, error);

        if (r < 0 && error->errnum != EINVAL)
                return outcome_failure(NAME, &arguments, error);
        if (r == 0 && left.errnum != 0)
                outcome_say(NAME, arguments.target, "unmounted, but the volume stays attached: %s", error_why(&left));
        if (r > 0)
                outcome_say(NAME, arguments.target, "target is busy; it is read-only now.");
        if (r < 0) {
                struct error ignored;
                int status = outcome_failure(NAME, &arguments, error);

                (void)utab_forget(arguments.target, &ignored); /* a call was killed before it */
                return status;
        }
        if (r == 0 && !arguments.no_table && utab_forget(arguments.target, error) < 0)
                return outcome_failure(NAME, &arguments, error);
        if (r == 0 && arguments.verbose)
                outcome_say(NAME, "", "%s unmounted.", arguments.target);
        return r > 0 ? MNT_EX_FAIL : MNT_EX_SUCCESS; /* after a success umount(8) takes the line out of utab */
}

int main(int argc, char **argv)
{
        return outcome_of(&program, &arguments, argc, argv, unmount_it);
}
