/* SPDX-License-Identifier: Apache-2.0 */
/*
 * released_disks.h - disks of deleted volumes (retained, or recycled) that volume-create may choose again, of pools
 * where nothing on a disk says that flexgraft made it. One file beside the records of volume-create.
 */
#ifndef FLEXGRAFT_PROVISION_RELEASED_DISKS_H
#define FLEXGRAFT_PROVISION_RELEASED_DISKS_H

#include <stdbool.h>

#include "base/error.h"
#include "state/state_dir.h"

/* By their identities; with "" nothing happens, and that is a success. The file survives a power failure. */
int released_disks_add(struct state *state, const char *identity, struct error *error);
int released_disks_remove(struct state *state, const char *identity, struct error *error);
bool released_disks_has(const struct state *state, const char *identity);

#endif
