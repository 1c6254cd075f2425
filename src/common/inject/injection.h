/* SPDX-License-Identifier: Apache-2.0 */
/*
 * injection.h - the steps that put one mount into a container, and what they hold between them.
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
        struct session *session;     /* what it shares with others of the same call */
        struct container *container; /* the call's */
        struct container *from;      /* the source's, where that is one; the call's */
        struct target target;
        struct target source; /* in the container it is of, where it is of one */
        struct block_device device;
        int layer_fds[REQUEST_LAYERS_MAX + 2]; /* overlay: the lower ones, then upper and work */
        size_t layer_count;
        char upper_rest[PATH_MAX]; /* below source_fd, which both lie in */
        char work_rest[PATH_MAX];
        int source_fd;
        int mount_fd;
        int old_fd; /* a clone of what is replaced, in case it has to come back */
        struct mount_attributes attributes;
        bool directory;                      /* the source is one */
        uint64_t source_digest;              /* of what the source's own keys say, where "source" does not say it all */
        uint64_t locks[INJECTION_LOCKS_MAX]; /* the keys of the locks it needs, for session_lock() */
        size_t lock_count;
        bool already; /* an earlier call did it: the rest of the plan is void */
        bool recorded;
        bool placed;
        bool device_allowed;         /* raw: the control group may let the container have it */
        bool replacing;              /* a mount of ours is there: its record is replaced */
        bool atomic;                 /* there was no moment without a mount */
        unsigned made_before;        /* what an earlier call made of the target for us */
        char fs_type[64];            /* for fsopen */
        struct mount_record earlier; /* of that call; meaningless while made_before is 0 */
        struct mount_record replaced;
        struct mount_record record; /* filled as the steps learn it; what the reply tells */
};

/* injection_begin() - an empty one, of zeroed memory. */
void injection_begin(struct injection *injection, struct session *session, const struct request *request);

/* injection_check_policy() - whether whoever asks may have record.origin, for what they ask to do with it. */
int injection_check_policy(const struct injection *injection, struct error *error);

/* One step of inject/plan.h each: PIN_CONTAINER, CLAIM, OPEN_SOURCE and its like, CLONE and its like. */
int injection_pin_container(struct injection *injection, struct error *error);
int injection_claim(struct injection *injection, struct error *error);
int injection_open_source(struct injection *injection, struct error *error);
int injection_make_mount(struct injection *injection, struct error *error);

/* injection_fail_ids() - EOPNOTSUPP: owners of this source cannot be made right in the way that was asked for. */
int injection_fail_ids(const struct injection *injection, const char *reason, struct error *error);

/* injection_digest() - everything that makes two requests ask for different mounts, and where their sources lead. */
uint64_t injection_digest(const struct injection *injection);

/* injection_digest_text() - one more text of the request that makes its source another one. */
void injection_digest_text(struct injection *injection, const char *text);

void injection_release(struct injection *injection);

#endif
