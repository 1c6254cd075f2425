/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nfs.h - an NFS export, reached from the container's network namespace.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_NFS_H
#define FLEXGRAFT_INJECT_SOURCE_NFS_H

#include "inject/injection.h"

extern const struct source_kind source_nfs;

#endif
