/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_tmpfs.h - a fresh tmpfs for each pod.
 *
 * Options: size, mode, inodes.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_TMPFS_H
#define FLEXGRAFT_VOLUME_KIND_TMPFS_H

#include "volume/call.h"

extern const struct volume_kind kind_tmpfs;

#endif
