/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_source.h - the source of any sort of mount, for the programs that take them all.
 */
#ifndef FLEXGRAFT_ANY_SOURCE_H
#define FLEXGRAFT_ANY_SOURCE_H

#include "injection.h"

/* any_source() - the sort of source that a request is about. */
const struct source_kind *any_source(const struct request *request);

#endif
