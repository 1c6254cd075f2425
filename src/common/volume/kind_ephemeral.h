/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_ephemeral.h - a volume of a pool that is a pod's alone: made when it is mounted, gone when it is unmounted.
 *
 * Option "ephemeral": "true", with those of volume/ephemeral.h. Before it is mounted it is nothing, and has no device.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_EPHEMERAL_H
#define FLEXGRAFT_VOLUME_KIND_EPHEMERAL_H

#include "volume/call.h"

extern const struct volume_kind kind_ephemeral;

#endif
