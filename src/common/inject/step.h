/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - the steps of a plan: the system calls of each, and how it is undone.
 *
 *      step                system calls                         undone by
 *      ----------------    ---------------------------------    ----------------------------------------
 *      PIN_CONTAINER       open /proc/PID/..., pidfd_open       closing
 *      CLAIM               fcntl(F_OFD_SETLKW), read            closing
 *      OPEN_SOURCE         openat2                              closing
 *      OPEN_IN_CONTAINER   openat2; mkdirat                     closing; unlinkat
 *      OPEN_LAYERS         openat2                              closing
 *      FIND_DEVICE         open, libblkid                       closing
 *      FIND_VOLUME         fcntl(F_OFD_SETLKW), read            closing
 *      FIND_IMAGE          openat2, libblkid                    closing
 *      LOOK                openat2, statx                       -
 *      CHECK_SERVER        -                                    -
 *      MOUNT_EXPORT        setns, connect, fsopen, fsmount      closing
 *      CLONE               open_tree; unshare, move_mount       closing
 *      STAGE_VOLUME        ioctl, fsmount, open_tree            umount2, ioctl
 *      CREATE_SUPERBLOCK   ioctl; fsopen, fsconfig, fsmount     closing
 *      MAKE_NODE           unshare, mknodat, open_tree          closing
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
        STEP_FIND_VOLUME,
        STEP_STAGE_VOLUME,
        STEP_FIND_IMAGE,
        STEP_CHECK_SERVER,
        STEP_MOUNT_EXPORT,
        STEP_CLONE,
        STEP_CREATE_SUPERBLOCK,
        STEP_MAKE_NODE,
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

/* step_phase() - the phase that a step of an injection belongs to. */
enum phase step_phase(enum step step);

/* step_looks() - whether a step changes nothing: a dry run takes only those. */
bool step_looks(enum step step);

/* step_text() and step_undo() - a step in words, and how it is undone; "" where there is nothing to undo. */
const char *step_text(enum step step);
const char *step_undo(enum step step);

#endif
