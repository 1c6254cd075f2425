/* SPDX-License-Identifier: Apache-2.0 */
/*
 * released_disks.h - disks that were volumes, and were given back as disks (retained, or recycled): flexgraft may take them
 * again by itself, where nothing on them tells that it once had them. One file beside the records of volume-create.
 */
#ifndef FLEXGRAFT_PROVISION_RELEASED_DISKS_H
#define FLEXGRAFT_PROVISION_RELEASED_DISKS_H

#include <stdbool.h>

#include "base/error.h"
#include "state/state_dir.h"

/* By their identities; "" is nobody's, and a success. It survives a power cut. */
int released_disks_add(struct state *state, const char *identity, struct error *error);
int released_disks_remove(struct state *state, const char *identity, struct error *error);
bool released_disks_has(const struct state *state, const char *identity);

#endif
