/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.h - after a crash or a reboot, make the node agree with the records, and the records with the node.
 *
 * What the kernel has and a record of this boot names is kept; what no call of this boot can ask for again is removed.
 * Running work is not disturbed: a volume whose lock is held is skipped, and what is in use is only reported.
 */
#ifndef FLEXGRAFT_RECONCILE_RECONCILE_H
#define FLEXGRAFT_RECONCILE_RECONCILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/schema.h"
#include "process/proc.h"
#include "reconcile/kubelet.h"
#include "state/config.h"
#include "state/state_dir.h"
#include "state/volume_record.h"
#include "volume/call.h"

/* The request of volume-reconcile, and its reply: what was done, and what was left as it is. */
struct reconcile {
        bool dry_run;     /* only say what would be done */
        json_t *actions;  /* array of {"action", "subject"}; owned */
        json_t *problems; /* array of strings; owned */
};

/* What volume-reconcile takes and replies. */
extern const struct schema reconcile_schema;

/* reconcile_parse() - the request: nothing, {} or {"dryRun": true}; - reads it from standard input. */
int reconcile_parse(struct reconcile *ret_reconcile, int argc, char **argv, struct error *error);

/* reconcile_run() - do all of it, in a worker. What fails becomes a problem in the reply, and the rest goes on. */
int reconcile_run(struct reconcile *reconcile, struct error *error);

/*
 * reconcile_begin() - before privileges_drop(): the helper processes of pools, and that for remap-daemon, if a volume waits for
 * it (reconcile_mappable()).
 */
int reconcile_begin(int argc, char **argv, struct error *error);

/* reconcile_did() - an action for the reply and the log, done or, on a dry run, only meant. */
void reconcile_did(struct reconcile *reconcile, const char *action, const char *subject);

/* reconcile_problem() - something that was left as it is. */
void reconcile_problem(struct reconcile *reconcile, const char *subject, const struct error *error);

/* reconcile_status() - print what was done. error: NULL, or why nothing was. Returns the exit status. */
int reconcile_status(const struct reconcile *reconcile, const struct error *error);

/* ---- the parts of one run, each in the file of its name, and what they share */

/* What a round has read goes with the process: it is not released (reconcile_run()). */
struct reconcile_round {
        struct reconcile *reconcile;
        struct config config;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct known {
                char name[VOLUME_NAME_MAX];
                char driver[VOLUME_DRIVER_MAX];
        } * records; /* all that there were at first */
        size_t count;
        struct kubelet_pods pods; /* as they were when the first was asked for */
        json_t *mounts;           /* likewise of the node, by their devices (reconcile_idle.c) */
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

/*
 * reconcile_mappable() - of a volume of this boot: exchange mounts that the runtime of their pod cannot id-map, now that
 * kubelet has noted that it has a user namespace, and end what killed calls began of that. With the volume's lock and record.
 */
void reconcile_mappable(struct reconcile_round *round, struct volume_call *call);

/* ---- reconcile_idle.c: volumes that kubelet has forgotten, as when it was killed between unmount and unmountdevice */

/*
 * reconcile_is_forgotten() - whether an attached volume has been without a pod, and without any use but its stage, in two runs that
 * were config.kubelet.unstageAfter seconds apart; if it is staged, kubelet ran in both. What is forgotten but cannot be taken away
 * is reported. Should kubelet want it again, it begins with attach.
 */
bool reconcile_is_forgotten(struct reconcile_round *round, struct volume_call *call);

/* reconcile_check_list() - that no container and no other volume has it (state/uses.h). Errors: EBUSY, naming one. */
int reconcile_check_list(const struct volume_call *call, struct error *error);

#endif
