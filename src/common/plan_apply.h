/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_apply.h - run the steps, stop at the first error, undo what was done.
 */
#ifndef FLEXGRAFT_PLAN_APPLY_H
#define FLEXGRAFT_PLAN_APPLY_H

#include <stdbool.h>

#include "error.h"
#include "injection.h"
#include "mount_record.h"
#include "plan.h"

struct outcome {
        bool already;                      /* there was nothing to do */
        const struct mount_record *record; /* lives as long as the process */
};

/*
 * plan_apply() - make it so (in a dry run, only take the steps that look, and find the mistakes), within the request's
 * timeout, in a worker that is given up on if it hangs.
 *
 * Needs:   what the program keeps (src/build/privilege_table.h).
 * Takes:   kind, what is mounted; NULL for a removal.
 * Gives:   ret_outcome, on success. On failure nothing is left behind: what was done is undone, in a second worker.
 * Errors:  the first step's that failed; ETIMEDOUT naming the step that hung.
 */
int plan_apply(const struct plan *plan, const struct source_kind *kind, struct outcome *ret_outcome,
               struct error *error);

#endif
