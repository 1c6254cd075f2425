/* SPDX-License-Identifier: Apache-2.0 */
/* made.h - the directories and files that flexgraft made in a container for a mount to be placed on. */
#ifndef FLEXGRAFT_INJECT_MADE_H
#define FLEXGRAFT_INJECT_MADE_H

#include "base/error.h"
#include "container/container.h"
#include "state/mount_record.h"
#include "state/state_dir.h"

/*
 * made_unmake() - take away what was made for a record's mount, as target_unmake() does. What is left because other
 * mounts of flexgraft's are on it or below it, the record of one of those takes over: its removal takes it away.
 *
 * Takes:   state with the locks of the record and of the container's tree (mount_record_tree_key()).
 * Gives:   ret_busy: part is left, no record took it over, and another call is at work on a mount whose mount point is
 *          there. That call may remove it without a look at what is ours: try again once it has ended. It does not wait
 *          for this one, whose mount point is gone.
 */
int made_unmake(struct state *state, const struct container *container, const struct mount_record *record,
                bool *ret_busy, struct error *error);

#endif
