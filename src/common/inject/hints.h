/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints.h - what to do about failures of mounts in containers, whatever their kind; what only one kind has, is in its row.
 */
#ifndef FLEXGRAFT_INJECT_HINTS_H
#define FLEXGRAFT_INJECT_HINTS_H

#include "base/failure.h"

/* With those of the folders below; for failure_hint(). */
extern const struct hint *const inject_all_hints[];

#endif
