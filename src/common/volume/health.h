/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - whether volumes of pools are well, and how full their filesystems are, for volume-list.
 */
#ifndef FLEXGRAFT_VOLUME_HEALTH_H
#define FLEXGRAFT_VOLUME_HEALTH_H

#include <jansson.h>

#include "base/error.h"
#include "provision/request.h"

/*
 * volume_health_add() - add "health", "problem", "used" and "free" to each of the "volumes" of a reply of volume-list.
 * A filesystem that does not answer within 2 seconds is "unknown", and all of them get 20 seconds.
 */
int volume_health_add(json_t *reply, struct error *error);

/*
 * volume_health_mounted() - how the volume of request->name is where it is mounted on request->path. A filesystem that
 * does not answer within 2 seconds is "unknown". Gives: ret_reply, "mounted". Errors: ENOENT nothing is mounted there;
 * ENODEV likewise, though the volume's record names the path; EBUSY something else is.
 */
int volume_health_mounted(const struct provision_request *request, json_t **ret_reply, struct error *error);

#endif
