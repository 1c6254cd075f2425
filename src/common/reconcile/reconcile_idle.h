/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile_idle.h - volumes that kubelet has forgotten, as when it was killed between unmount and unmountdevice.
 */
#ifndef FLEXGRAFT_RECONCILE_RECONCILE_IDLE_H
#define FLEXGRAFT_RECONCILE_RECONCILE_IDLE_H

#include <stdbool.h>

#include "reconcile/reconcile_round.h"
#include "volume/call.h"

/*
 * reconcile_is_forgotten() - whether an attached volume has been without a pod, and without any use but its stage, in two runs that
 * were config.kubelet.unstageAfter seconds apart; if it is staged, kubelet ran in both. What is forgotten but cannot be taken away
 * is reported. Should kubelet want it again, it begins with attach.
 */
bool reconcile_is_forgotten(struct reconcile_round *round, struct volume_call *call);

/* reconcile_check_list() - that no container and no other volume has it (state/uses.h). Errors: EBUSY, naming one. */
int reconcile_check_list(const struct volume_call *call, struct error *error);

#endif
