/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - what a program printed, as a struct outcome.
 */
#ifndef FLEXGRAFT_CSI_OUTCOME_H
#define FLEXGRAFT_CSI_OUTCOME_H

#include <stddef.h>

#include "call.h"

/*
 * outcome_read() - of what it printed (bytes, length). status: its exit status; words: about what happened to it, where
 * it printed no JSON. The caller frees it by outcome_end(); words are borrowed.
 */
void outcome_read(const char *bytes, size_t length, int status, const char *words, struct outcome *ret_outcome);

void outcome_end(struct outcome *outcome);

#endif
