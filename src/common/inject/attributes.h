/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes.h - attributes, propagation and owners of a mount that nobody sees yet.
 */
#ifndef FLEXGRAFT_INJECT_ATTRIBUTES_H
#define FLEXGRAFT_INJECT_ATTRIBUTES_H

#include "base/error.h"
#include "inject/injection.h"

/* The steps DRESS and LOCK of inject/plan.h. */
int attributes_set(struct injection *injection, struct error *error);
int attributes_lock(struct injection *injection, struct error *error);

/*
 * attributes_remap() - the detached mount made so far is shown through a translator, whose FUSE mount takes its
 * place (inject/remap.h); says so in the record. It is not dressed yet.
 */
int attributes_remap(struct injection *injection, struct error *error);

#endif
