/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap_begin.h - whether a program that takes every kind of mount starts the helper process of inject/remap.h.
 */
#ifndef FLEXGRAFT_INJECT_REMAP_BEGIN_H
#define FLEXGRAFT_INJECT_REMAP_BEGIN_H

#include "base/error.h"

/* remap_begin_for_batch() - if one of its mounts may need it: by "ids", or by its kind. Standard input always may. */
int remap_begin_for_batch(int argc, char **argv, struct error *error);

/* remap_begin_by_policy() - if policy.json lets annotations ask for a kind of mount that may need it. */
int remap_begin_by_policy(int argc, char **argv, struct error *error);

#endif
