/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h - volumes by name, for mount-remove. */
#ifndef FLEXGRAFT_NAMED_KEEPER_H
#define FLEXGRAFT_NAMED_KEEPER_H

#include "inject/former.h"

extern const struct volume_keeper named_keeper;

/*
 * named_keeper_begin() - start the helpers that detaching a volume may need (volume/exec_helpers.h); before
 * privileges_drop().
 */
int named_keeper_begin(int argc, char **argv, struct error *error);

#endif
