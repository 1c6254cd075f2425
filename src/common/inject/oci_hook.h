/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_hook.h - an OCI hook: the container's state, and the mounts that its annotations ask for.
 */
#ifndef FLEXGRAFT_INJECT_OCI_HOOK_H
#define FLEXGRAFT_INJECT_OCI_HOOK_H

#include <limits.h>
#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "inject/apply.h"
#include "inject/request/request.h"
#include "state/wish.h"

/*
 * The event, from the hook's argument: the state's "status" differs between runtimes (crun "created", runc "creating").
 */
enum oci_hook_event {
        HOOK_BEFORE,  /* createRuntime, prestart: before the container's process has entered its root directory */
        HOOK_RUNNING, /* poststart */
        HOOK_ENDED,   /* poststop */
};

struct oci_hook {
        enum oci_hook_event event;
        json_t *state; /* owned: the JSON object that the strings below point into */
        const char *id;
        pid_t pid; /* 0 at poststop */
        const char *bundle;
        bool asked;                            /* it has an annotation io.flexgraft.mounts */
        char identity[CONTAINER_IDENTITY_MAX]; /* container/identity.h; "" it has none */
        struct wish_record wanted;             /* owned: what is wanted in it ("persist"); its mounts: NULL nothing */
        char root[PATH_MAX];                   /* HOOK_BEFORE: the path of its root directory in its mount namespace */
};

/* oci_hook_event() - the event of a word of the OCI specification; false for an unsupported one. */
bool oci_hook_event(const char *word, enum oci_hook_event *ret_event);

/* What the hook of a device is called for, besides its event (provision/cdi.h); NULL: the annotations. */
struct oci_hook_volume {
        const char *name;
        const char *target;
        bool raw; /* its device itself */
};

/*
 * oci_hook_read() - the container's state from standard input. A volume stands in the place of all annotations. Errors:
 * OPERATION_PARSE.
 */
int oci_hook_read(struct oci_hook *ret_hook, enum oci_hook_event event, const struct oci_hook_volume *volume,
                  struct error *error);

/* oci_hook_concerns() - whether there is anything to do for the container. */
bool oci_hook_concerns(const struct oci_hook *hook);

/*
 * oci_hook_request() - what is wanted in the container, and the batch that the annotations io.flexgraft.mounts and io.flexgraft.mounts.NAME ask for, in the
 * order of their names; each has one mount or an array of them, but not on a target where something else is wanted. The
 * request borrows from the hook. ret_asked: how many of its entries the annotations ask for.
 *
 * Errors: OPERATION_PARSE, naming the annotation.
 */
int oci_hook_request(struct oci_hook *hook, struct request *ret_request, size_t *ret_asked, struct error *error);

/*
 * oci_hook_mount() - all mounts that are wanted in the container, and that the annotations ask for; or none. The policy
 * is for those of the annotations: what is wanted, root asked for.
 *
 * Gives:   ret_request, also on failure; it borrows from the hook. ret_failed, on failure: that of its entry that
 *          failed, or NULL.
 * Errors:  those of oci_hook_request() and plan_apply_batch(); EACCES policy.json does not allow it.
 */
int oci_hook_mount(struct oci_hook *hook, struct request *ret_request, const struct outcome **ret_failed,
                   struct error *error);

/*
 * oci_hook_forget() - remove the records of a container that has ended, but not those of a new one with the same id;
 * detach its volumes by name that nobody else uses.
 */
int oci_hook_forget(const struct oci_hook *hook, const struct volume_releaser *releaser, struct error *error);

/* oci_hook_log() - why it failed, in the log: crun shows the hook's standard error to nobody. */
void oci_hook_log(const struct oci_hook *hook, const struct error *error);

void oci_hook_release(struct oci_hook *hook);
#define cleanup_oci_hook __attribute__((cleanup(oci_hook_release)))

#endif
