/* SPDX-License-Identifier: Apache-2.0 */
/*
 * removal.h - one mount removed from a container: its data and its steps.
 */
#ifndef FLEXGRAFT_INJECT_REMOVAL_H
#define FLEXGRAFT_INJECT_REMOVAL_H

#include <stdbool.h>

#include "base/error.h"
#include "container/container.h"
#include "inject/request/request.h"
#include "mount/in_container.h"
#include "state/mount_record.h"
#include "state/state_dir.h"
#include "state/wish.h"

struct removal {
        const struct request *request;
        struct state state;
        struct container_reference named; /* the container, as the request's words are taken */
        bool unknown;                     /* no runtime knows it */
        struct container container;
        pid_t named_pid;                    /* the process id that the request may mean; 0: none */
        uint64_t named_pid_ns;              /* the pid namespace whose procfs the request names; 0: it names none */
        bool already;                       /* the mount was gone already */
        int node_mnt_ns_fd;                 /* to return to, for raw devices; or -EBADF */
        bool reachable;                     /* the container still exists */
        bool in_use;                        /* a process still has its raw device open, or uses its volume */
        bool lazily;                        /* it was unmounted lazily: processes may have files of it open */
        bool holds;                         /* request->releaser may hold a volume */
        char held[MOUNT_RECORD_VOLUME_MAX]; /* the volume whose lock is held; "" none */
        char state_dir[PATH_MAX];
        char wanted_in[CONTAINER_IDENTITY_MAX]; /* the container that it was wanted in (inject/want); "" in none */
        char wanted_at[PATH_MAX];               /* on this target */
        char wanted_id[MOUNT_RECORD_ID_MAX];
        struct state wishes;     /* where that is written */
        struct wish_change wish; /* of what is wanted there */
        struct mount_record record;
        struct mount_record partner; /* the other record of an interrupted replacement; its id is "" if there is none */
};

/* removal_init() - set up a removal in zeroed memory. */
void removal_init(struct removal *removal, const struct request *request);

/* Steps FIND_RECORD, UNPLACE, FORBID_DEVICE, UNMAKE_TARGET, LET_GO and FORGET of inject/plan.h. */
int removal_find_record(struct removal *removal, struct error *error);
int removal_unplace(struct removal *removal, struct error *error);
int removal_forbid_device(struct removal *removal, struct error *error);
int removal_unmake_target(struct removal *removal, struct error *error);
int removal_let_go(struct removal *removal, struct error *error);
int removal_forget(struct removal *removal, struct error *error);

void removal_release(struct removal *removal);

/* ---- the directories and files that flexgraft made in a container for a mount to be placed on */

/*
 * made_unmake() - take away what was made for a record's mount, as target_unmake() does. What is left because other
 * mounts of flexgraft's are on it or below it, the record of one of those takes over: its removal takes it away.
 *
 * Takes:   state with the locks of the record and of the container's tree (mount_record_tree_key()).
 * Gives:   ret_busy: part is left, no record took it over, and another call is at work on a mount whose mount point is
 *          there. That call may remove it without a look at what is ours: try again once it has ended. It does not wait
 *          for this one, whose mount point is gone.
 */
int made_unmake(struct state *state, const struct container *container, const struct mount_record *record,
                bool *ret_busy, struct error *error);

#endif
