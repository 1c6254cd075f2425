/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the source of any sort of mount, for the programs that take them all.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_H
#define FLEXGRAFT_INJECT_SOURCE_H

#include "inject/injection.h"

/* source_of() - the sort of source that a request is about. */
const struct source_kind *source_of(const struct request *request);

#endif
