/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a request -> what must hold, in order, each step with its undo. Plain data: no descriptor, no system call,
 * no privilege; printed as it is by "dryRun".
 *
 *      step                system calls                         undone by
 *      ----------------    ---------------------------------    ----------------------------------------
 *      PIN_CONTAINER       open /proc/PID/..., pidfd_open       closing
 *      CLAIM               fcntl(F_OFD_SETLKW), read            closing
 *      OPEN_SOURCE         openat2                              closing
 *      OPEN_IN_CONTAINER   openat2; mkdirat                     closing; unlinkat
 *      OPEN_LAYERS         openat2                              closing
 *      FIND_DEVICE         open, libblkid                       closing
 *      LOOK                openat2, statx                       -
 *      CHECK_SERVER        -                                    -
 *      MOUNT_EXPORT        setns, connect, fsopen, fsmount      closing: nobody saw it
 *      CLONE               open_tree                            closing: nobody saw it
 *      CREATE_SUPERBLOCK   fsopen, fsconfig, fsmount            closing: nobody saw it
 *      MAKE_NODE           unshare, mknodat, open_tree          closing: nobody saw it
 *      DRESS               mount_setattr                        closing: nobody saw it
 *      LOCK                unshare, setns, open_tree            closing: nobody saw it
 *      LOOK_AGAIN          openat2, statx                       -
 *      RECORD              write, rename                        unlink
 *      MAKE_TARGET         setfsuid, mkdirat or mknodat         unlinkat
 *      ALLOW_DEVICE        write, bpf                           the same
 *      PLACE               setns, move_mount                    umount2(MNT_DETACH)
 *      CONFIRM             openat2, statx, fstatfs              -
 *
 *      FIND_RECORD         read; open /proc/PID/...             closing
 *      UNPLACE             setns, umount2                       - (never half done)
 *      FORBID_DEVICE       setns, write, bpf                    -
 *      UNMAKE_TARGET       unlinkat                             -
 *      FORGET              unlink                               -
 */
#ifndef FLEXGRAFT_INJECT_PLAN_H
#define FLEXGRAFT_INJECT_PLAN_H

#include <stddef.h>

#include "inject/request.h"

enum step {
        STEP_PIN_CONTAINER,
        STEP_CLAIM,
        STEP_LOOK,
        STEP_OPEN_SOURCE,
        STEP_OPEN_IN_CONTAINER,
        STEP_OPEN_LAYERS,
        STEP_FIND_DEVICE,
        STEP_CHECK_SERVER,
        STEP_MOUNT_EXPORT,
        STEP_CLONE,
        STEP_CREATE_SUPERBLOCK,
        STEP_MAKE_NODE,
        STEP_DRESS,
        STEP_LOCK,
        STEP_LOOK_AGAIN,
        STEP_RECORD,
        STEP_MAKE_TARGET,
        STEP_ALLOW_DEVICE,
        STEP_PLACE,
        STEP_CONFIRM,
        STEP_FIND_RECORD,
        STEP_UNPLACE,
        STEP_FORBID_DEVICE,
        STEP_UNMAKE_TARGET,
        STEP_FORGET,
};

/* In a batch all mounts reach one phase before any enters the next: nothing is placed before everything is prepared. */
enum phase {
        PHASE_KNOW,    /* who and what it is about; after it the locks are taken */
        PHASE_PREPARE, /* what nobody sees */
        PHASE_PLACE,
        PHASE_COUNT,
};

struct plan {
        const struct request *request;
        enum step steps[16];
        size_t count;
};

/* plan_make() - the steps of a request; never fails. The plan borrows the request. */
void plan_make(struct plan *ret_plan, const struct request *request);

/*
 * plan_make_batch() - the plans of a batch's entries, in their order: one per entry, in ret_plans. A target within
 * another's is looked at only once that one is placed.
 */
void plan_make_batch(struct plan *ret_plans, const struct request *batch);

/* plan_step_phase() - the phase that a step of an injection belongs to. */
enum phase plan_step_phase(enum step step);

/* plan_step_looks() - whether a step only looks: those are all that a dry run takes. */
bool plan_step_looks(enum step step);

/* plan_step_text() - what a step ensures, in words, and how it is undone ("" where there is nothing to undo). */
const char *plan_step_text(enum step step);
const char *plan_step_undo(enum step step);

#endif
