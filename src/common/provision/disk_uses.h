/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_uses.h - what to ask the list of uses (state/uses.h) about a disk: its device or its image, with all that stands
 * on it.
 */
#ifndef FLEXGRAFT_PROVISION_DISK_USES_H
#define FLEXGRAFT_PROVISION_DISK_USES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "block/stack.h"
#include "state/state_dir.h"
#include "state/use_index.h"

/* disk_uses_add_device() - add a device, and what stands on it, to keys. flags: those of block_stack_find(). */
int disk_uses_add_device(char *keys, uint64_t number, unsigned flags, struct error *error);

/*
 * disk_uses_add_image() - add an image, the loop devices over it, and what stands on them. fd: as
 * loop_device_each_over() takes.
 */
int disk_uses_add_image(char *keys, int fd, struct error *error);

/*
 * ---- disks of deleted volumes (retained, or recycled) that volume-create may choose again, of pools
 * where nothing on a disk says that flexgraft made it. One file beside the records of volume-create.
 */

/* By their identities; with "" nothing happens, and that is a success. The file survives a power failure. */
int released_disks_add(struct state *state, const char *identity, struct error *error);
int released_disks_remove(struct state *state, const char *identity, struct error *error);
bool released_disks_has(const struct state *state, const char *identity);

#endif
