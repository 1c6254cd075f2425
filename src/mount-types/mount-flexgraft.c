/* SPDX-License-Identifier: Apache-2.0 */
/* mount.flexgraft VOLUME TARGET [OPTION...] - what mount(8) runs for "mount -t flexgraft": a volume by its name, on this node. */
#include <libmount/libmount.h>

#include "arguments.h"
#include "outcome.h"
#include "privileges/mount-flexgraft.h"
#include "process/program.h"
#include "utab.h"

#define NAME "mount.flexgraft"

static struct arguments arguments;

static int begin(int argc, char **argv, struct error *error)
{
        int r = arguments_read_mount(&arguments, /* own= */ true, argc, argv, error);

        if (r < 0 || arguments.remount || (r = utab_begin(error)) < 0)
                return r;
        return node_mount_begin(arguments.source, argc, argv, error);
}

static const struct program program = {
        .usage = { .name = NAME,
                   .arguments = "VOLUME DIRECTORY [-fnsvrw] [-o OPTIONS]",
                   .about = "Mount a volume of volume-create, by its name, on a directory of this node: mount(8) runs "
                            "this program for \"mount -t flexgraft VOLUME DIRECTORY\", and fstab(5) and systemd do by "
                            "that. The volume is attached, and gets a filesystem if it is blank. umount(8) detaches it "
                            "after its last use.\n"
                            "OPTIONS are those of every mount (ro, noatime, nosuid, ...), x-*, and:",
                   .examples = "  subdir=PATH           mount a directory of the volume in place of its root\n"
                               "  create=SIZE           make the volume if there is none\n"
                               "  pool=NAME             where it is made\n"
                               "  profile=NAME          what for\n"
                               "  fstype=TYPE           of a blank volume: ext4, xfs or btrfs\n"
                               "  idmap=ID:SHOWN:COUNT  show owners ID and on of the volume as SHOWN and on\n"
                               "  owner=UID:GID         give the mounted directory this owner\n"
                               "  remount               change the attributes of the mount that is there\n"
                               "\n"
                               "Example:\n"
                               "  mount -t flexgraft db /mnt/db -o noatime\n\n",
                   .exit_status = OUTCOME_STATUS },
        .privileges = &PRIVILEGES,
        .takes_options = true,
        .before_drop = begin,
};

/* Returns the exit status. */
static int mount_it(struct error *error)
{
        const char *root = arguments.mount.subdir != NULL ? arguments.mount.subdir : "";
        const bool writes = !arguments.fake && !arguments.no_table;
        struct error ignored; /* the first failure is the one to tell */
        char path[PATH_MAX];
        int r = writes && arguments_root(root, path)
                        ? utab_prepare(arguments.source, arguments.target, path, arguments.user, error)
                        : 0;

        if (r < 0)
                return outcome_failure(NAME, &arguments, error);
        r = node_mount(&arguments.mount, arguments.fake, error);
        if (r < 0) {
                if (writes)
                        (void)utab_forget(arguments.target, &ignored);
                return outcome_failure(NAME, &arguments, error);
        }
        if (writes && utab_settle(arguments.source, arguments.target, arguments.user, error) < 0) {
                outcome_say(NAME, arguments.target, "mounted, but %s.", error_why(error));
                return MNT_EX_FILEIO;
        }
        if (r > 0)
                return outcome_mounted_already(NAME, &arguments);
        if (arguments.verbose)
                outcome_say(NAME, "", "%s mounted on %s.", arguments.source, arguments.target);
        return MNT_EX_SUCCESS;
}

/* Returns the exit status. */
static int remount_it(struct error *error)
{
        if (node_remount(&arguments.mount, arguments.fake, error) < 0)
                return outcome_failure(NAME, &arguments, error);
        if (arguments.verbose)
                outcome_say(NAME, "", "%s remounted on %s.", arguments.source, arguments.target);
        return MNT_EX_SUCCESS;
}

/* Returns the exit status. */
static int act(struct error *error)
{
        return arguments.remount ? remount_it(error) : mount_it(error);
}

int main(int argc, char **argv)
{
        return outcome_of(&program, &arguments, argc, argv, act);
}
