/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.h - after a crash or a reboot: make the node agree with the records, and the records with the node.
 *
 * What the kernel shows to be there, and to be ours, is kept; what no call of this boot will ever ask for again is
 * taken away. What runs is not disturbed: a volume whose lock is held is left to whoever holds it, and what is in use
 * is only reported.
 */
#ifndef FLEXGRAFT_VOLUME_RECONCILE_H
#define FLEXGRAFT_VOLUME_RECONCILE_H

#include "base/error.h"
#include "volume/reconcile_reply.h"

/* reconcile_run() - do it all, in a worker; what fails on the way is a problem, and the rest goes on. */
int reconcile_run(struct reconcile *reconcile, struct error *error);

#endif
