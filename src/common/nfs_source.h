/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs_source.h - an NFS export, reached from the container's network namespace.
 */
#ifndef FLEXGRAFT_NFS_SOURCE_H
#define FLEXGRAFT_NFS_SOURCE_H

#include "injection.h"

extern const struct source_kind nfs_source;

#endif
