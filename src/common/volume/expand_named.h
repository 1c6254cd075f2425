/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand_named.h - the work of volume-expand: a volume of a pool grows, with its device and its filesystem, whoever has
 * it mounted: kubelet, a container, or nobody.
 */
#ifndef FLEXGRAFT_VOLUME_EXPAND_NAMED_H
#define FLEXGRAFT_VOLUME_EXPAND_NAMED_H

#include <jansson.h>

#include "base/error.h"
#include "provision/request.h"
#include "volume/call.h"

/*
 * volume_expand_named() - in a worker with a time limit. Needs the processes of volume_exec_helpers_begin().
 *
 * Gives:   ret_reply, the whole reply; owned by the caller.
 * Errors:  ENOENT no such volume; EINVAL it has more already; ENOSPC, with how far it can grow; EBUSY it is mounted
 *          read-only, or a container writes to its device; EOPNOTSUPP it cannot grow.
 */
int volume_expand_named(const struct provision_request *request, json_t **ret_reply, struct error *error);

/* ---- the image of a loop volume that is not attached, on a loop device for the length of this call */

/*
 * loop_held_attach() - with the volume's lock. The record in memory then names the device; none is written, since the
 * device ends with the descriptor, however this process ends.
 *
 * Returns: a descriptor of the device, owned by the caller. Errors: EBUSY the image has another loop device.
 */
int loop_held_attach(struct volume_call *call, struct error *error);

#endif
