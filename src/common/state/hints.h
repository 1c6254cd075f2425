/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints.h - what to do about failures of what is remembered: policies, records, volumes' content.
 */
#ifndef FLEXGRAFT_STATE_HINTS_H
#define FLEXGRAFT_STATE_HINTS_H

#include "base/failure.h"

extern const struct hint state_hints[];

/* With those of the folders below; for failure_hint(). */
extern const struct hint *const state_all_hints[];

#endif
