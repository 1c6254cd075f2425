/* SPDX-License-Identifier: Apache-2.0 */
/* volume-reconcile [REQUEST] - after a crash or a reboot: make the node and the records agree. */
#include "privileges/volume-reconcile.h"
#include "process/program.h"
#include "provision/provision.h"
#include "volume/reconcile.h"

static const char help[] =
        "\n"
        "After a crash or a reboot: make the node agree with the records, and report what could not be.\n"
        "REQUEST is a JSON object; - reads it from standard input. The answer is one JSON object.\n"
        "\n"
        "  dryRun  true: only say what would be done\n"
        "\n"
        "Taken away are: loop devices, mounts and records of before the last boot; what a call that was killed had\n"
        "begun and never answered; records of volumes that are not there any more, and of mounts in containers that "
        "are\n"
        "gone; idle loop devices of flexgraft's that no record knows; volumes of pools that were half made or half\n"
        "deleted, and ephemeral ones that are not mounted any more; what is attached and has been mounted nowhere "
        "for ten\n"
        "minutes. What others made is never touched, what is in use only reported.\n"
        "\n"
        "Example: volume-reconcile '{\"dryRun\": true}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "volume-reconcile",
                                        .help = help,
                                        .privileges = &PRIVILEGES,
                                        .arguments = "[REQUEST | -]",
                                        .before_drop = provision_begin };

int main(int argc, char **argv)
{
        struct reconcile reconcile = {};
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 || reconcile_parse(&reconcile, argc, argv, &error) < 0 ||
            reconcile_run(&reconcile, &error) < 0)
                return reconcile_status(&reconcile, &error);
        return reconcile_status(&reconcile, NULL);
}
