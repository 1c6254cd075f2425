/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_raw.h - a block device of the node itself, as a device node of the container's own.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_RAW_H
#define FLEXGRAFT_INJECT_SOURCE_RAW_H

#include "inject/injection.h"

extern const struct source_kind source_raw;

#endif
