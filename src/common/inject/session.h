/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - what the mounts of one call share: its containers, each pinned once, the state and its locks.
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

#define SESSION_CONTAINERS_MAX 16

struct session {
        struct container containers[SESSION_CONTAINERS_MAX];
        const struct container_reference *references[SESSION_CONTAINERS_MAX];
        size_t container_count;
        struct state state;
        char boot_id[PROC_BOOT_ID_SIZE];
        bool dry_run;                /* only looking: nobody waits for it, and it waits for nobody */
        const struct policy *policy; /* NULL: root asked, who may do anything */
        const char *created_root;    /* NULL; else the root directory of a container that has not entered it yet */
        int node_mnt_ns_fd;          /* -EBADF until session_remember_home() */
};

/* session_begin() - an empty one, of zeroed memory. */
void session_begin(struct session *session, bool dry_run, const struct policy *policy, const char *created_root);

/*
 * session_pin() - the container of a reference, pinned when it is first asked for. Borrowed: it lives as long as the call.
 *
 * Errors: those of container_pin(); E2BIG more containers than a call may have to do with.
 */
int session_pin(struct session *session, const struct container_reference *reference, struct container **ret_container,
                struct error *error);

/* session_open_state() - the directory of mount records; absent for a dry run that finds none (state.dir_fd < 0). */
int session_open_state(struct session *session, struct error *error);

/*
 * session_lock() - hold all of these keys, taken in ascending order, so that two calls never wait for each other; keys is
 * sorted on the way. A dry run holds nothing.
 */
int session_lock(struct session *session, uint64_t *keys, size_t count, struct error *error);

/* session_remember_home() and session_go_home() - back to the node's mount namespace after a container's was entered. */
int session_remember_home(struct session *session, struct error *error);
int session_go_home(const struct session *session, struct error *error);

void session_release(struct session *session);

#endif
