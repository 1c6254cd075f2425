/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - what the mounts of one call share: each container pinned once, the state with its locks, the way home.
 */
#ifndef FLEXGRAFT_INJECT_SESSION_H
#define FLEXGRAFT_INJECT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "container/container.h"
#include "process/proc.h"
#include "state/policy.h"
#include "state/state_dir.h"

#define CALL_CONTAINERS_MAX 16

struct call {
        struct container containers[CALL_CONTAINERS_MAX];
        const struct container_reference *references[CALL_CONTAINERS_MAX];
        size_t container_count;
        struct state state;
        char boot_id[PROC_BOOT_ID_SIZE];
        bool dry_run;                /* only looking: nobody waits for it, and it waits for nobody */
        const struct policy *policy; /* NULL: root asked, who may do anything */
        const char *created_root;    /* NULL; else the root directory of a container that has not entered it yet */
        int node_mnt_ns_fd;          /* -EBADF until call_remember_home() */
};

/* call_begin() - an empty one, of zeroed memory. */
void call_begin(struct call *call, bool dry_run, const struct policy *policy, const char *created_root);

/*
 * call_pin() - the container of a reference, pinned when it is first asked for. Borrowed: it lives as long as the call.
 *
 * Errors: those of container_pin(); E2BIG more containers than a call may have to do with.
 */
int call_pin(struct call *call, const struct container_reference *reference, struct container **ret_container,
             struct error *error);

/* call_open_state() - the directory of mount records; absent for a dry run that finds none (state.dir_fd < 0). */
int call_open_state(struct call *call, struct error *error);

/*
 * call_lock() - hold all of these keys, taken in ascending order, so that two calls never wait for each other; keys is
 * sorted on the way. A dry run holds nothing.
 */
int call_lock(struct call *call, uint64_t *keys, size_t count, struct error *error);

/* call_remember_home() and call_go_home() - back to the node's mount namespace after a container's was entered. */
int call_remember_home(struct call *call, struct error *error);
int call_go_home(const struct call *call, struct error *error);

void call_release(struct call *call);

#endif
