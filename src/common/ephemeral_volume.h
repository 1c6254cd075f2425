/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ephemeral_volume.h - a volume of a pool that is a pod's alone: made when it is mounted, gone when it is unmounted.
 *
 * Option "ephemeral": "true", with those of ephemeral.h. Before it is mounted it is nothing, and has no device.
 */
#ifndef FLEXGRAFT_EPHEMERAL_VOLUME_H
#define FLEXGRAFT_EPHEMERAL_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind ephemeral_volume;

#endif
