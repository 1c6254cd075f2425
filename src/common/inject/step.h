/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - the steps of plans: what each calls, and how it is undone.
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
#ifndef FLEXGRAFT_INJECT_STEP_H
#define FLEXGRAFT_INJECT_STEP_H

#include <stdbool.h>

enum step {
        STEP_NONE,
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

/* step_phase() - the phase that a step of an injection belongs to. */
enum phase step_phase(enum step step);

/* step_looks() - whether a step only looks: those are all that a dry run takes. */
bool step_looks(enum step step);

/* step_text() - what a step ensures, in words, and how it is undone ("" where there is nothing to undo). */
const char *step_text(enum step step);
const char *step_undo(enum step step);

#endif
