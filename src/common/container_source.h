/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_source.h - a file or directory of another container as the source of a mount, its owners translated.
 */
#ifndef FLEXGRAFT_CONTAINER_SOURCE_H
#define FLEXGRAFT_CONTAINER_SOURCE_H

#include "injection.h"

extern const struct source_kind container_source;

#endif
