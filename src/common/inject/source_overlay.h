/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_overlay.h - an overlay of directories of the node as the source of a mount.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_OVERLAY_H
#define FLEXGRAFT_INJECT_SOURCE_OVERLAY_H

#include "inject/injection.h"

extern const struct source_kind source_overlay;

#endif
