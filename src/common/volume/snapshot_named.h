/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_named.h - the work of volume-snapshot: a snapshot of a volume of a pool, also while somebody writes to it, and
 * back to one while nobody has the volume.
 */
#ifndef FLEXGRAFT_VOLUME_SNAPSHOT_NAMED_H
#define FLEXGRAFT_VOLUME_SNAPSHOT_NAMED_H

#include <jansson.h>

#include "base/error.h"
#include "provision/request.h"
#include "state/config.h"

/*
 * volume_snapshot_named() - in a worker with a time limit. Needs the processes of volume_exec_helpers_begin(). With the
 * volume's lock no call of the driver attaches, mounts or detaches it meanwhile.
 *
 * Gives:   ret_reply, the whole reply; owned by the caller. Errors: those of provision_snapshot() and freeze_begin().
 */
int volume_snapshot_named(const struct provision_request *request, json_t **ret_reply, struct error *error);

/*
 * volume_snapshot_thaw() - for a snapshot of this volume that was begun: unless a call works on the volume, thaw what one that
 * was killed with all its processes left frozen.
 */
int volume_snapshot_thaw(const struct config *config, const char *name, struct error *error);

#endif
