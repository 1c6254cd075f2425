/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.h - after a crash or a reboot, make the node agree with the records, and the records with the node.
 *
 * What the kernel has and a record of this boot names is kept; what no call of this boot can ask for again is removed.
 * Running work is not disturbed: a volume whose lock is held is skipped, and what is in use is only reported.
 */
#ifndef FLEXGRAFT_RECONCILE_RECONCILE_H
#define FLEXGRAFT_RECONCILE_RECONCILE_H

#include "base/error.h"
#include "reconcile/reconcile_reply.h"

/* reconcile_run() - do all of it, in a worker. What fails becomes a problem in the reply, and the rest goes on. */
int reconcile_run(struct reconcile *reconcile, struct error *error);

#endif
