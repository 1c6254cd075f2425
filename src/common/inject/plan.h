/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the steps of a request, in order, and what each step is. Plain data: no descriptor, no system call, no
 * privilege; "dryRun" prints it.
 */
#ifndef FLEXGRAFT_INJECT_PLAN_H
#define FLEXGRAFT_INJECT_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "inject/request/request.h"

/*
 * ---- the steps of a plan: the system calls of each, and how it is undone.
 *
 *      step                system calls                         undone by
 *      ----------------    ---------------------------------    ----------------------------------------
 *      PIN_CONTAINER       open /proc/PID/..., pidfd_open       closing
 *      CLAIM               fcntl(F_OFD_SETLKW), read            closing
 *      OPEN                as the kind of mount does it         closing
 *      LOOK                openat2, statx                       -
 *      MAKE                as the kind of mount does it         as its row says
 *      SET_ATTRIBUTES      mount_setattr                        closing
 *      LOCK                unshare, setns, open_tree            closing
 *      LOOK_AGAIN          openat2, statx                       -
 *      WANT                write, rename, fsync                 the same
 *      RECORD              write, rename                        unlink
 *      MAKE_TARGET         setfsuid, mkdirat or mknodat         unlinkat
 *      ALLOW_DEVICE        write, bpf                           the same
 *      PLACE               setns, move_mount                    umount2(MNT_DETACH)
 *      CONFIRM             openat2, statx, fstatfs              -
 *
 *      FIND_RECORD         read; open /proc/PID/...             closing
 *      UNWANT              write, rename, fsync                 the same
 *      UNPLACE             setns, umount2                       - (never half done)
 *      FORBID_DEVICE       setns, write, bpf                    -
 *      UNMAKE_TARGET       unlinkat                             -
 *      LET_GO              umount2, ioctl                       -
 *      FORGET              unlink                               -
 */

struct source_kind; /* inject/request/source.h */

enum step {
        STEP_PIN_CONTAINER,
        STEP_CLAIM,
        STEP_OPEN, /* the source, as its kind does */
        STEP_LOOK,
        STEP_MAKE, /* the detached mount, likewise */
        STEP_SET_ATTRIBUTES,
        STEP_LOCK,
        STEP_LOOK_AGAIN,
        STEP_WANT,
        STEP_RECORD,
        STEP_MAKE_TARGET,
        STEP_ALLOW_DEVICE,
        STEP_PLACE,
        STEP_CONFIRM,
        STEP_FIND_RECORD,
        STEP_UNWANT,
        STEP_UNPLACE,
        STEP_FORBID_DEVICE,
        STEP_UNMAKE_TARGET,
        STEP_LET_GO,
        STEP_FORGET,
};

/* All mounts of a batch complete one phase before the next begins: none is placed before all are prepared. */
enum phase {
        PHASE_PIN,     /* the containers, and what a policy says; what is locked before mounts is held after it */
        PHASE_LOOK,    /* read only; the locks of mounts are taken after it */
        PHASE_PREPARE, /* invisible to others */
        PHASE_PLACE,
        PHASE_COUNT,
};

/* step_phase() - the phase that a step of an injection, of this kind of mount, belongs to. */
enum phase step_phase(enum step step, const struct source_kind *kind);

/* step_looks() - whether a step changes nothing: a dry run takes only those. */
bool step_looks(enum step step);

/* step_asks_container() - whether a step may wait for what a container's root controls. kind: as of step_text(). */
bool step_asks_container(enum step step, const struct source_kind *kind);

/*
 * step_text() and step_undo() - a step in words, and how it is undone; "" where there is nothing to undo. kind: NULL
 * for the steps of a removal.
 */
const char *step_text(enum step step, const struct source_kind *kind);
const char *step_undo(enum step step, const struct source_kind *kind);

struct plan {
        const struct request *request;
        enum step steps[16];
        size_t count;
};

/* plan_make() - the steps of a request; never fails. The plan borrows the request. */
void plan_make(struct plan *ret_plan, const struct request *request);

/*
 * plan_make_batch() - one plan per entry of the batch, in its order. A target below another entry's target is looked up
 * only after that one is mounted.
 */
void plan_make_batch(struct plan *ret_plans, const struct request *batch);

#endif
