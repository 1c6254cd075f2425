/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounting.h - the detached mount: made as its kind does it, its owners as the container sees them.
 */
#ifndef FLEXGRAFT_INJECT_MOUNTING_H
#define FLEXGRAFT_INJECT_MOUNTING_H

#include "base/error.h"
#include "inject/injection.h"

/* Steps MAKE and SET_ATTRIBUTES of inject/plan.h; where the kernel cannot map owners, the second makes the mount again. */
int mounting_make(struct injection *injection, struct error *error);
int mounting_set_attributes(struct injection *injection, struct error *error);

#endif
