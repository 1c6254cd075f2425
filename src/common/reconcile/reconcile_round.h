/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile_round.h - one run of volume-reconcile: what its parts share, and the parts.
 */
#ifndef FLEXGRAFT_RECONCILE_RECONCILE_ROUND_H
#define FLEXGRAFT_RECONCILE_RECONCILE_ROUND_H

#include "base/error.h"
#include "process/proc.h"
#include "reconcile/reconcile_reply.h"
#include "state/config.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

/* What all parts of one run share. */
struct reconcile_round {
        struct reconcile *reconcile;
        struct config config;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct known {
                char name[VOLUME_NAME_MAX];
                char driver[VOLUME_DRIVER_MAX];
        } * records; /* all that there were at first; owned */
        size_t count;
        bool frozen; /* a filesystem that a killed call froze could not be thawed */
};

/* reconcile_volumes() - every record of the driver, with its device and its mounts. */
int reconcile_volumes(struct reconcile_round *round, struct error *error);

/* reconcile_stages() - empty directories of volumes by name that no record names; after reconcile_volumes(). */
void reconcile_stages(struct reconcile_round *round);

/* reconcile_loops() - loop devices of flexgraft without a record. */
int reconcile_loops(struct reconcile_round *round, struct error *error);

/*
 * reconcile_mounts() - records of mounts in containers that are gone; mounts that nothing serves any more. Errors: EXDEV
 * this is another pid namespace than that of a record: here nothing can be said about the processes of the node.
 */
int reconcile_mounts(struct reconcile_round *round, struct error *error);

#endif
