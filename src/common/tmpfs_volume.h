/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmpfs_volume.h - a fresh tmpfs for each pod.
 *
 * Options: size, mode, inodes.
 */
#ifndef FLEXGRAFT_TMPFS_VOLUME_H
#define FLEXGRAFT_TMPFS_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind tmpfs_volume;

#endif
