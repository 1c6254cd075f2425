/* SPDX-License-Identifier: Apache-2.0 */
/* volume-reconcile [REQUEST] - after a crash or a reboot: make the node and the records agree. */
#include "privileges/volume-reconcile.h"
#include "process/program.h"
#include "reconcile/reconcile.h"

static const struct program program = {
        .usage = { .name = "volume-reconcile",
                   .about =
                           "After a crash or a reboot: make the node agree with the records, and report what could not "
                           "be done.\n"
                           "Removed are: loop devices, mounts and records from before the last boot; what a killed "
                           "call had begun and never answered; records of volumes that no longer exist, and of "
                           "mounts in containers that are gone; idle loop devices of flexgraft that no record knows; "
                           "volumes of pools that were half made or half deleted, and ephemeral ones that are no "
                           "longer mounted; volumes that kubelet has forgotten: in two runs ten minutes apart no pod "
                           "and no container had them. Exchanged are mounts of pods that have a user namespace, for ones "
                           "that can be id-mapped. What others made is never touched, what is in use "
                           "is only reported.\n",
                   .schema = &reconcile_schema,
                   .examples = "Example: volume-reconcile '{\"dryRun\": true}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = reconcile_begin,
};

int main(int argc, char **argv)
{
        struct reconcile reconcile = {};
        static struct error error;

        if (program_begin_words(&program, &argc, &argv, &error) < 0 ||
            reconcile_parse(&reconcile, argc, argv, &error) < 0 || reconcile_run(&reconcile, &error) < 0)
                return reconcile_status(&reconcile, &error);
        return reconcile_status(&reconcile, NULL);
}
