/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlay_source.h - an overlay of directories of the node as the source of a mount.
 */
#ifndef FLEXGRAFT_OVERLAY_SOURCE_H
#define FLEXGRAFT_OVERLAY_SOURCE_H

#include "injection.h"

extern const struct source_kind overlay_source;

#endif
