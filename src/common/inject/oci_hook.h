/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_hook.h - what a container runtime tells an OCI hook, and what the container's annotations ask for.
 */
#ifndef FLEXGRAFT_INJECT_OCI_HOOK_H
#define FLEXGRAFT_INJECT_OCI_HOOK_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "inject/request.h"

/* When a hook runs, by its own argument: the state's status does not tell (crun says "created" where runc "creating").
 */
enum oci_hook_stage {
        HOOK_BEFORE,  /* createRuntime, prestart: before the container's process has entered its root directory */
        HOOK_RUNNING, /* poststart */
        HOOK_ENDED,   /* poststop */
};

struct oci_hook {
        enum oci_hook_stage stage;
        void *state; /* owned: every string below is of it */
        const char *id;
        pid_t pid; /* 0 at poststop */
        const char *bundle;
        bool asked;          /* there is an annotation of ours */
        char root[PATH_MAX]; /* before: the root directory, as the container's mount namespace has it */
};

/* oci_hook_stage() - the stage that a word of the OCI specification means; false for one that cannot be served. */
bool oci_hook_stage(const char *word, enum oci_hook_stage *ret_stage);

/*
 * oci_hook_read() - the container's state from standard input. Errors: OPERATION_PARSE.
 */
int oci_hook_read(struct oci_hook *ret_hook, enum oci_hook_stage stage, struct error *error);

/*
 * oci_hook_mount() - all mounts that the annotations io.flexgraft.mounts and io.flexgraft.mounts.NAME ask for, or none;
 * each may hold one mount or an array of them.
 *
 * Gives:   ret_request, also on failure; it borrows from the hook. ret_failed, on failure: its entry that failed, or NULL.
 * Errors:  OPERATION_PARSE, naming the annotation; EACCES what policy.json does not allow; those of plan_apply_batch().
 */
int oci_hook_mount(struct oci_hook *hook, struct request *ret_request, const struct request **ret_failed,
                   struct error *error);

/* oci_hook_forget() - remove the records of a container that has ended; those of others of the same id stay. */
int oci_hook_forget(const struct oci_hook *hook, struct error *error);

void oci_hook_release(struct oci_hook *hook);
#define cleanup_oci_hook __attribute__((cleanup(oci_hook_release)))

#endif
