/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.h - what the driver's side does of the work of volume tools, for volumes of pools. The rest is provision's
 * (provision/provision.h).
 */
#ifndef FLEXGRAFT_VOLUME_TOOLS_H
#define FLEXGRAFT_VOLUME_TOOLS_H

#include <jansson.h>

#include "base/error.h"
#include "provision/request.h"
#include "state/config.h"

/*
 * ---- the work of volume-expand: a volume of a pool grows, with its device and its filesystem, whoever has it mounted:
 * kubelet, a container, or nobody.
 */

/*
 * volume_expand_named() - in a worker with a time limit. Needs the processes of volume_exec_helpers_begin().
 *
 * Gives:   ret_reply, the whole reply; owned by the caller.
 * Errors:  ENOENT no such volume; EINVAL it has more already; ERANGE its pool would make it larger than the limit; ENOSPC,
 *          with how far it can grow; EBUSY it is mounted read-only, or a container writes to its device; EOPNOTSUPP it
 *          cannot grow.
 */
int volume_expand_named(const struct provision_request *request, json_t **ret_reply, struct error *error);

/*
 * ---- the work of volume-snapshot: a snapshot of a volume of a pool, also while somebody writes to it, and back to one while
 * nobody has the volume.
 */

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

/* ---- health.c: whether volumes of pools are well, and how full their filesystems are, for volume-list */

/*
 * volume_health_add() - add "health", "problem", "used" and "free" to each of the "volumes" of a reply of volume-list.
 * A filesystem that does not answer within 2 seconds is "unknown", and all of them get 20 seconds.
 */
int volume_health_add(json_t *reply, struct error *error);

/*
 * volume_health_mounted() - how the volume of request->name is where it is mounted on request->path. A filesystem that
 * does not answer within 2 seconds is "unknown". Gives: ret_reply, "mounted". Errors: ENOENT nothing is mounted there;
 * ENODEV likewise, though the volume's record names the path; ENXIO likewise, and no record gives the volume a device;
 * EBUSY something else is.
 */
int volume_health_mounted(const struct provision_request *request, json_t **ret_reply, struct error *error);

/* ---- metrics.c: volumes, the directories of the node that they are mounted on, and calls, as metrics */

/*
 * volume_metrics_say() - print the reply of volume-list so, and with it what the driver's records and the counts of calls
 * say. A directory that does not answer within 2 seconds is reported so, and all of them get 20 seconds.
 *
 * Returns: the program's exit status, or negative errno with nothing printed.
 */
int volume_metrics_say(const json_t *reply, struct error *error);

#endif
