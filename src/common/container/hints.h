/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints.h - what to do about failures of a container: how it was looked up and pinned.
 */
#ifndef FLEXGRAFT_CONTAINER_HINTS_H
#define FLEXGRAFT_CONTAINER_HINTS_H

#include "base/failure.h"

extern const struct hint container_hints[];

#endif
