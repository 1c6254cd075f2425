/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.h - run the steps of a plan, stop at the first error, undo the steps done.
 */
#ifndef FLEXGRAFT_INJECT_APPLY_H
#define FLEXGRAFT_INJECT_APPLY_H

#include <stdbool.h>

#include "base/error.h"
#include "inject/former.h"
#include "inject/injection.h"
#include "inject/plan.h"
#include "state/mount_record.h"

struct outcome {
        const struct request *request;
        const struct source_kind *kind;    /* of the mount, as far as it is known; NULL: of a removal */
        const struct mount_record *record; /* valid until the process ends */
        const struct former *former;       /* likewise: of volumes that were replaced; NULL: none can have been */
        const char *replaced_volume;       /* with replaced: of which that mount was; "" none */
        bool already;                      /* an earlier call did it */
        bool replaced;                     /* it replaced another mount of flexgraft's */
        bool atomic;                       /* without a moment in which nothing was mounted on the target */
        bool in_use; /* of a removal: a process still has its raw device open, or uses its volume */
};

/*
 * plan_apply() - run a plan (in a dry run: only the steps that change nothing) in a worker, which is abandoned if it
 * hangs longer than the request's timeout.
 *
 * Needs:   the privileges that the program keeps (src/privileges/privilege_table.h).
 * Gives:   ret_outcome, also on failure: then the steps done are undone, in a second worker.
 * Errors:  those of the step that failed; ETIMEDOUT, naming the step that hung.
 */
int plan_apply(const struct plan *plan, struct outcome *ret_outcome, struct error *error);

/* Common to all mounts of a batch: */
struct batch {
        const struct request *request; /* of the kind REQUEST_MOUNT_BATCH */
        const struct policy *policy;   /* NULL: root asks, and may do anything */
        const char *created_root;      /* as in struct session */
};

/*
 * plan_apply_batch() - all mounts or none: every mount is prepared before any is placed, and if one cannot be placed
 * the others are unmounted. plans and ret_outcomes have one element per entry of the request, in its order.
 *
 * Gives:   ret_failed, on failure: that of the entry that failed, or NULL if it was no single entry.
 */
int plan_apply_batch(const struct plan *plans, const struct batch *batch, struct outcome *ret_outcomes,
                     const struct outcome **ret_failed, struct error *error);

#endif
