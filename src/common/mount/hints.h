/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints.h - what to do about failures of mounts: the kernel's calls for them, and what was found in their places.
 */
#ifndef FLEXGRAFT_MOUNT_HINTS_H
#define FLEXGRAFT_MOUNT_HINTS_H

#include "base/failure.h"

extern const struct hint mount_hints[];

#endif
