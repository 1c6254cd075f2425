/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap_begin.h - when mount-batch and mount-hook start the helper process of inject/remap.h.
 */
#ifndef FLEXGRAFT_INJECT_REMAP_BEGIN_H
#define FLEXGRAFT_INJECT_REMAP_BEGIN_H

#include "base/error.h"

/*
 * remap_begin_for_batch() - start it if an entry may need it, by "ids" or by its kind, or if the request is on standard
 * input.
 */
int remap_begin_for_batch(int argc, char **argv, struct error *error);

/* remap_begin_by_policy() - start it if policy.json lets annotations ask for a kind of mount that may need it. */
int remap_begin_by_policy(int argc, char **argv, struct error *error);

#endif
