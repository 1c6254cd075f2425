/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_owners.h - who owns what of one container's files as another container sees them.
 */
#ifndef FLEXGRAFT_INJECT_CONTAINER_OWNERS_H
#define FLEXGRAFT_INJECT_CONTAINER_OWNERS_H

#include <stdbool.h>

#include "base/error.h"
#include "inject/injection.h"

/*
 * How owners are translated (KERNEL.md section 2). A mapping says what an id of the filesystem is shown as; which ids
 * the filesystem has is the question.
 */
enum translation {
        FROM_NODE,   /* it has the ids that the source's container has on the node: its own directories */
        FROM_INSIDE, /* it has the ids that the source's container counts itself: its own tmpfs; what we mapped for it
                      */
        FROM_MOUNT,  /* the source is id-mapped, and the kernel says how */
};

/* container_owners_open() - a user namespace that maps them so; a descriptor, or negative errno. */
int container_owners_open(const struct injection *injection, enum translation translation, struct error *error);

/*
 * container_owners_check() - whether owners come out right on a clone: of the source's root, and of the mounts below it.
 * 0, or -EXDEV. A root that the source's container knows no owner of can only be the node's: where that container owns
 * the filesystem itself, it knows everybody on it; strict, for the mounts below, that is no argument.
 */
int container_owners_check(const struct injection *injection, int clone_fd, bool strict);

#endif
