/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_container.h - a file or directory of another container as the source of a mount, its owners translated.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_CONTAINER_H
#define FLEXGRAFT_INJECT_SOURCE_CONTAINER_H

#include "inject/injection.h"

extern const struct source_kind source_container;

#endif
