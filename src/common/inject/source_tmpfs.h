/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tmpfs.h - a fresh tmpfs as the source of a mount.
 *
 * The node owns its superblock: of one that the container's user namespace owned, the container's root could raise the
 * size (seen on 6.18 and 6.1). Its ids are the node's, and its root directory belongs to the container's.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_TMPFS_H
#define FLEXGRAFT_INJECT_SOURCE_TMPFS_H

#include "inject/injection.h"

extern const struct source_kind source_tmpfs;

#endif
