/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_source.h - a block device of the node itself, as a device node of the container's own.
 */
#ifndef FLEXGRAFT_RAW_SOURCE_H
#define FLEXGRAFT_RAW_SOURCE_H

#include "injection.h"

extern const struct source_kind raw_source;

#endif
