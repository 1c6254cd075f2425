/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hint.h - (operation, errno) -> what a human should look at next.
 */
#ifndef FLEXGRAFT_BASE_HINT_H
#define FLEXGRAFT_BASE_HINT_H

#include "base/error.h"

/* hint_for() - one sentence, or NULL where the message says it all. */
const char *hint_for(const struct error *error);

#endif
