/* SPDX-License-Identifier: Apache-2.0 */
/*
 * injection.h - one mount into one container: its data, and the steps up to its source.
 */
#ifndef FLEXGRAFT_INJECT_INJECTION_H
#define FLEXGRAFT_INJECT_INJECTION_H

#include <stdbool.h>

#include "base/error.h"
#include "block/device.h"
#include "block/image.h"
#include "container/container.h"
#include "inject/request/request.h"
#include "inject/request/source.h"
#include "inject/session.h"
#include "mount/detached.h"
#include "mount/target.h"
#include "state/mount_record.h"
#include "state/wish.h"

#define INJECTION_LOCKS_MAX MOUNT_RECORD_LOCKS_MAX

struct injection {
        const struct request *request;
        const struct source_kind *kind;        /* that of the request, or another one that open() or make() found */
        struct session *session;               /* shared by all mounts of the call */
        struct container *container;           /* in session */
        struct container *from;                /* in session: the source's container; or NULL */
        int layer_fds[REQUEST_LAYERS_MAX + 2]; /* overlay: lower, then upper and work */
        size_t layer_count;
        void *volume;            /* what the kind of volumes by name (named/) keeps; or NULL */
        const char *volume_file; /* the record of that volume, whose lock is held; or NULL */
        bool alone;              /* that volume is a directory for one container, or pod, alone */
        int source_fd;
        int mount_fd;
        int old_fd; /* a clone of the replaced mount, to restore it on failure */
        struct mount_attributes attributes;
        bool directory;                      /* the source is a directory */
        uint64_t source_digest;              /* of the keys that name the source besides "source" */
        uint64_t locks[INJECTION_LOCKS_MAX]; /* keys for session_lock() */
        size_t lock_count;
        struct wish_change wish;          /* of what is wanted at the target */
        struct wish_change replaced_wish; /* of what was wanted there by another spelling of the target */
        bool mapped;                      /* make() has mapped the owners, or found that there is nothing to map */
        bool locked;            /* the mount's attributes are set, and locked as the plan's steps would do it */
        bool already;           /* an earlier call did it: the rest of the plan is skipped */
        bool unrecorded;        /* there was no record of this id, which is locked, when the target was looked at */
        bool recorded;          /* the record may have been written */
        bool placed;            /* the mount may be in the container */
        bool guard_made;        /* raw: this call made its loop devices */
        bool device_allowed;    /* raw: the control group may allow the device */
        bool replacing;         /* a mount of flexgraft's is at the target, and is replaced */
        bool atomic;            /* ... with no moment without a mount */
        unsigned made_before;   /* components of the target that an earlier call created */
        bool has_earlier;       /* the record's id is that of such a call */
        char fs_type[64];       /* for fsopen */
        struct image_part part; /* image: what of it is mounted */
        uint64_t image_key;     /* image: of its lock, which the driver takes, too */
        /* what is large comes last, and in an order in which most calls touch few pages of it */
        struct target target;
        struct block_device device;
        struct mount_record record; /* filled step by step; the source of the reply */
        struct target source;       /* with from: the source in that container */
        char upper_rest[PATH_MAX];  /* overlay: path below source_fd */
        char work_rest[PATH_MAX];
        struct mount_record earlier; /* the record of that call, if has_earlier */
        struct mount_record replaced;
};

/* injection_init() - set up an injection in zeroed memory. */
void injection_init(struct injection *injection, struct session *session, const struct request *request);

/* injection_policy() - the session's, for what others ask for; NULL: root asks. */
const struct policy *injection_policy(const struct injection *injection);

/* injection_check_policy() - whether the session's policy allows record.origin as a source. Errors: EACCES. */
int injection_check_policy(const struct injection *injection, struct error *error);

/*
 * injection_check_path() - likewise of a path that is not opened yet, whether it exists or not: who may not have it is told
 * nothing of it but what was asked for. Errors: EACCES.
 */
int injection_check_path(const struct injection *injection, const char *path, bool writes, struct error *error);

/* Steps of inject/plan.h: PIN_CONTAINER, CLAIM, OPEN. */
int injection_pin_container(struct injection *injection, struct error *error);
int injection_claim(struct injection *injection, struct error *error);
int injection_open_source(struct injection *injection, struct error *error);

/*
 * injection_check_remap() - that the kind of mount has remap, if it was asked for. For a make() that changes the kind.
 * Errors: EOPNOTSUPP.
 */
int injection_check_remap(const struct injection *injection, struct error *error);

/*
 * injection_falls_back() - whether remap-daemon serves the mount where the kernel refused to map its owners: with "ids":
 * "auto", if the request says so; or, if it says nothing, the kind of mount, or the policy of whom the mount is for. With
 * the mounts below the source never: some may be kernel filesystems (attributes_check_served()).
 */
bool injection_falls_back(const struct injection *injection);

/* injection_fail_ids() - EOPNOTSUPP: "ids" of the request is not possible for this source. */
int injection_fail_ids(const struct injection *injection, const char *reason, struct error *error);

/* injection_digest() - a hash of everything that distinguishes two requests, their resolved sources included. */
uint64_t injection_digest(const struct injection *injection);

/* injection_digest_text() - add a text to source_digest. */
void injection_digest_text(struct injection *injection, const char *text);

/*
 * What it keeps is given back in two steps: injection_let_go() - its kind's, locks among it; then injection_close() - the descriptors
 * of mounts and files. The last descriptor of an NFS mount ends that, which waits for a server that is silent:
 * injection_close_may_wait() - whether there can be such a one.
 */
void injection_let_go(struct injection *injection);
bool injection_close_may_wait(const struct injection *injection);
void injection_close(struct injection *injection);

#endif
