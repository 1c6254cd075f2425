/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - shared by all mounts of one call: its containers, each pinned once, the state directory and its locks.
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
        size_t container_count;
        struct state state;
        struct state wishes;         /* what is wanted in containers (state/wish) */
        bool dry_run;                /* it changes nothing, so it takes no locks */
        const struct policy *policy; /* NULL: root asks, and may do anything */
        const char *created_root;    /* the root directory of a container that has not entered it yet; or NULL */
        int node_mnt_ns_fd;          /* -EBADF until session_save_namespace() */
        char boot_id[PROC_BOOT_ID_SIZE];
        const struct container_reference *references[SESSION_CONTAINERS_MAX];
        struct container containers[SESSION_CONTAINERS_MAX];
        char state_dir[PATH_MAX];
};

/* session_init() - set up a session in zeroed memory. */
void session_init(struct session *session, bool dry_run, const struct policy *policy, const char *created_root);

/*
 * session_pin() - the container of a reference, pinned once. Borrowed: the session owns it.
 *
 * Errors: those of container_pin(); E2BIG more than SESSION_CONTAINERS_MAX containers.
 */
int session_pin(struct session *session, const struct container_reference *reference, struct container **ret_container,
                struct error *error);

/* session_open_state() - open the directory of mount records. A dry run does not create it: state.dir_fd may be < 0. */
int session_open_state(struct session *session, struct error *error);

/*
 * session_lock() - take the locks of all these keys, in ascending order, so that two calls cannot deadlock; sorts keys.
 * A dry run takes none.
 */
int session_lock(struct session *session, uint64_t *keys, size_t count, struct error *error);

/* session_save_namespace() - keep the node's mount namespace, to return to it after entering a container's. */
int session_save_namespace(struct session *session, struct error *error);
int session_restore_namespace(const struct session *session, struct error *error);

void session_release(struct session *session);

#endif
