/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs.h - the helper process that asks runtimes of containers for their versions (host/probes.h).
 */
#ifndef FLEXGRAFT_HOST_PROGRAMS_H
#define FLEXGRAFT_HOST_PROGRAMS_H

#include "base/error.h"

/* programs_begin() - start the helper that asks runtimes for their versions, before privileges_drop(). */
int programs_begin(struct error *error);

/* programs_end() - kill it and what it runs; nothing if there is no helper. */
void programs_end(void);

#endif
