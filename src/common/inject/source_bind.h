/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_bind.h - a file or directory of the node as the source of a mount: opened once, cloned.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_BIND_H
#define FLEXGRAFT_INJECT_SOURCE_BIND_H

#include "inject/injection.h"

extern const struct source_kind source_bind;

#endif
