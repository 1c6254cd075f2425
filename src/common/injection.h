/* SPDX-License-Identifier: Apache-2.0 */
/*
 * injection.h - the steps that put one mount into a container, and what they hold between them.
 */
#ifndef FLEXGRAFT_INJECTION_H
#define FLEXGRAFT_INJECTION_H

#include <stdbool.h>

#include "block_device.h"
#include "container.h"
#include "detached_mount.h"
#include "error.h"
#include "mount_record.h"
#include "request.h"
#include "state.h"
#include "target.h"

struct injection;

/* What is mounted: how its source is found and how a detached mount of it is made. One constant per sort of mount. */
struct source_kind {
        /* find the source; fills directory, record.origin and what make() needs */
        int (*open)(struct injection *injection, struct error *error);
        /* fill mount_fd; owned: with a superblock that the container's user namespace owns */
        int (*make)(struct injection *injection, bool owned, struct error *error);
        bool ownable; /* whether make() knows how to do that */
        bool foreign; /* its content may be the container's own work: nosuid and nodev are locked always */
};

struct injection {
        const struct request *request;
        const struct source_kind *kind;
        struct container container;
        struct state state;
        struct target target;
        struct block_device device;
        int source_fd;
        int mount_fd;
        struct mount_attributes attributes;
        bool directory; /* the source is one */
        bool already;   /* an earlier call did it: the rest of the plan is void */
        bool recorded;
        bool placed;
        unsigned made_before;        /* what an earlier, killed call made of the target for us */
        char fs_type[64];            /* for fsopen */
        struct mount_record earlier; /* of that call; meaningless while made_before is 0 */
        struct mount_record record;  /* filled as the steps learn it; what the reply tells */
};

/* injection_begin() - an empty one, of zeroed memory. */
void injection_begin(struct injection *injection, const struct request *request, const struct source_kind *kind);

/* One step each, named as in plan.h. 0, or negative errno with the error filled. */
int injection_pin_container(struct injection *injection, struct error *error);
int injection_claim(struct injection *injection, struct error *error);
int injection_look(struct injection *injection, struct error *error);
int injection_open_source(struct injection *injection, struct error *error);
int injection_make_mount(struct injection *injection, struct error *error);
int injection_dress(struct injection *injection, struct error *error);
int injection_lock(struct injection *injection, struct error *error);
int injection_record(struct injection *injection, struct error *error);
int injection_make_target(struct injection *injection, struct error *error);
int injection_place(struct injection *injection, struct error *error);
int injection_confirm(struct injection *injection, struct error *error);

/* injection_undo() - take back, in reverse, whatever was done; in a worker of its own, in the node's namespaces. */
int injection_undo(struct injection *injection, struct error *error);

void injection_release(struct injection *injection);

#endif
