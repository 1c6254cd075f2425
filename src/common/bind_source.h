/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind_source.h - a file or directory of the node as the source of a mount: opened once, cloned.
 */
#ifndef FLEXGRAFT_BIND_SOURCE_H
#define FLEXGRAFT_BIND_SOURCE_H

#include "injection.h"

extern const struct source_kind bind_source;

#endif
