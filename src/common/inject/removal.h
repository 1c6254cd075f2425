/* SPDX-License-Identifier: Apache-2.0 */
/*
 * removal.h - the steps that take one of our mounts away again, and what they hold between them.
 */
#ifndef FLEXGRAFT_INJECT_REMOVAL_H
#define FLEXGRAFT_INJECT_REMOVAL_H

#include <stdbool.h>

#include "base/error.h"
#include "container/container.h"
#include "inject/request.h"
#include "mount/in_container.h"
#include "state/mount_record.h"
#include "state/state_dir.h"

struct removal {
        const struct request *request;
        struct state state;
        struct container container;
        bool already;       /* nothing of it was there any more */
        int node_mnt_ns_fd; /* for what is the node's again after the container was entered */
        bool reachable;     /* the container is still there */
        struct mount_record record;
        struct mount_record partner; /* the other one of a replacement that was killed half way; "" as id: none */
};

/* removal_begin() - an empty one, of zeroed memory. */
void removal_begin(struct removal *removal, const struct request *request);

/* One step each, named as in inject/plan.h. 0, or negative errno with the error filled. */
int removal_find_record(struct removal *removal, struct error *error);
int removal_unplace(struct removal *removal, struct error *error);
int removal_forbid_device(struct removal *removal, struct error *error);
int removal_unmake_target(struct removal *removal, struct error *error);
int removal_forget(struct removal *removal, struct error *error);

void removal_release(struct removal *removal);

#endif
