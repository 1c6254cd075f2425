/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.h - run the steps, stop at the first error, undo what was done.
 */
#ifndef FLEXGRAFT_INJECT_APPLY_H
#define FLEXGRAFT_INJECT_APPLY_H

#include <stdbool.h>

#include "base/error.h"
#include "inject/injection.h"
#include "inject/plan.h"
#include "state/mount_record.h"

struct outcome {
        const struct request *request;
        bool already;                      /* there was nothing to do */
        bool replaced;                     /* another mount of ours was there */
        bool atomic;                       /* and the target was never bare */
        const struct mount_record *record; /* lives as long as the process */
};

/*
 * plan_apply() - make it so (in a dry run, only take the steps that look, and find the mistakes), within the request's
 * timeout, in a worker that is given up on if it hangs.
 *
 * Needs:   what the program keeps (src/privileges/privilege_table.h).
 * Gives:   ret_outcome, on success. On failure nothing is left behind: what was done is undone, in a second worker.
 * Errors:  the first step's that failed; ETIMEDOUT naming the step that hung.
 */
int plan_apply(const struct plan *plan, struct outcome *ret_outcome, struct error *error);

/* What the mounts of a batch have in common, besides the request. */
struct batch {
        const struct request *request; /* of the kind REQUEST_MOUNT_BATCH */
        const struct policy *policy;   /* NULL: root asks */
        const char *created_root;      /* as in struct session */
};

/*
 * plan_apply_batch() - all of them or none: every mount is prepared before any is placed, and if one cannot be placed
 * those that were are taken back. plans and ret_outcomes have an element for each entry of the request, in its order.
 *
 * Gives:   ret_failed, on failure: the entry that failed, or NULL where it was none in particular.
 */
int plan_apply_batch(const struct plan *plans, const struct batch *batch, struct outcome *ret_outcomes,
                     const struct request **ret_failed, struct error *error);

#endif
