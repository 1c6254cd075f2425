/* SPDX-License-Identifier: Apache-2.0 */
/*
 * injection.h - one mount into one container: its data, and the steps up to the detached mount.
 */
#ifndef FLEXGRAFT_INJECT_INJECTION_H
#define FLEXGRAFT_INJECT_INJECTION_H

#include <stdbool.h>

#include "base/error.h"
#include "block/device.h"
#include "container/container.h"
#include "inject/request.h"
#include "inject/session.h"
#include "inject/source.h"
#include "mount/detached.h"
#include "mount/target.h"
#include "state/mount_record.h"

#define INJECTION_LOCKS_MAX 2

struct injection {
        const struct request *request;
        const struct source_kind *kind;
        struct session *session;     /* shared by all mounts of the call */
        struct container *container; /* in session */
        struct container *from;      /* in session: the source's container; or NULL */
        struct target target;
        struct target source; /* with from: the source in that container */
        struct block_device device;
        int layer_fds[REQUEST_LAYERS_MAX + 2]; /* overlay: lower, then upper and work */
        size_t layer_count;
        char upper_rest[PATH_MAX]; /* overlay: path below source_fd */
        char work_rest[PATH_MAX];
        int source_fd;
        int mount_fd;
        int old_fd; /* a clone of the replaced mount, to restore it on failure */
        struct mount_attributes attributes;
        bool directory;                      /* the source is a directory */
        uint64_t source_digest;              /* of the keys that name the source besides "source" */
        uint64_t locks[INJECTION_LOCKS_MAX]; /* keys for session_lock() */
        size_t lock_count;
        bool already;                /* an earlier call did it: the rest of the plan is skipped */
        bool recorded;               /* the record may have been written */
        bool placed;                 /* the mount may be in the container */
        bool device_allowed;         /* raw: the control group may allow the device */
        bool replacing;              /* a mount of flexgraft's is at the target, and is replaced */
        bool atomic;                 /* ... with no moment without a mount */
        unsigned made_before;        /* components of the target that an earlier call created */
        char fs_type[64];            /* for fsopen */
        struct mount_record earlier; /* the record of that call, if made_before > 0 */
        struct mount_record replaced;
        struct mount_record record; /* filled step by step; the source of the reply */
};

/* injection_begin() - set up an injection in zeroed memory. */
void injection_begin(struct injection *injection, struct session *session, const struct request *request);

/* injection_check_policy() - whether the session's policy allows record.origin as a source. Errors: EACCES. */
int injection_check_policy(const struct injection *injection, struct error *error);

/* Steps of inject/step.h: PIN_CONTAINER; CLAIM; the kind's open_step and make_step. */
int injection_pin_container(struct injection *injection, struct error *error);
int injection_claim(struct injection *injection, struct error *error);
int injection_open_source(struct injection *injection, struct error *error);
int injection_make_mount(struct injection *injection, struct error *error);

/* injection_fail_ids() - EOPNOTSUPP: "ids" of the request is not possible for this source. */
int injection_fail_ids(const struct injection *injection, const char *reason, struct error *error);

/* injection_digest() - a hash of everything that distinguishes two requests, their resolved sources included. */
uint64_t injection_digest(const struct injection *injection);

/* injection_digest_text() - add a text to source_digest. */
void injection_digest_text(struct injection *injection, const char *text);

void injection_release(struct injection *injection);

#endif
