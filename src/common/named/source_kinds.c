/* SPDX-License-Identifier: Apache-2.0 */
/* source_kinds.c - here and not in inject/, because one of them stands above it. */
#include <stddef.h>

#include "inject/request/source.h"

#define COMMA ,
#define ROW(name) &source_##name
const struct source_kind *const source_kinds[] = { SOURCE_KINDS(ROW, COMMA), NULL };
