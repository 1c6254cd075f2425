/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uses.h - the one list of uses: who on this node uses a block device, a file or a directory.
 *
 * A use is a volume that the driver attached, staged or published, or a mount or a raw device in a container; one
 * through a remap daemon is a mount as well. Records say what may be a use, the index finds them (state/use_index.h),
 * and the kernel says whether it still is one: the directory is mounted, the container runs and has the mount. What
 * cannot be found out, and what another call is doing right now, counts as a use.
 *
 * What to ask is a text of keys (use_keys_add_device(), use_keys_add_file()). A device is asked for together with what
 * stands on it (block/stack.h): a partition, a logical volume, a loop device over it. A directory that a volume is
 * mounted on (use_keys_add_directory()) is that use alone, whatever else the volume's record has.
 */
#ifndef FLEXGRAFT_STATE_USES_H
#define FLEXGRAFT_STATE_USES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/container.h"
#include "state/mount_record.h"
#include "state/use_index.h"
#include "state/volume_record.h"

enum use_kind {
        USE_ATTACHED,   /* a volume of the driver that is attached to this node */
        USE_STAGED,     /* it is mounted on kubelet's global directory */
        USE_PUBLISHED,  /* it is mounted on a pod's directory */
        USE_MOUNTED,    /* in a container: a mount of it, or of something on it */
        USE_RAW,        /* in a container: the device itself */
        USE_UNREADABLE, /* a record cannot be read: it may be any of these */
};

struct use {
        enum use_kind kind;
        char user[CONTAINER_NAME_MAX]; /* the pod's uid, as its directory has it, or the container; "" none */
        pid_t pid;                     /* of the container; 0 */
        const char *target;            /* the directory, or the target in the container; "" attached */
        uint64_t since;                /* seconds since 1970; 0 unknown */
        bool writes;
        bool raw;         /* the device itself, not a filesystem on it */
        bool removed;     /* it was taken away, but the container may have kept it: a raw device, or files of a volume
                             whose mount another has replaced */
        bool ended;       /* raw: the container is gone, and its loop device is not yet (state/uses.h) */
        bool pending;     /* the kernel does not show it, but a call holds the lock of its record */
        const char *file; /* of the record */
        const struct volume_record *volume; /* attached, staged, published; else NULL */
        const struct mount_record *mount;   /* mounted, raw; else NULL */
};

/*
 * uses_each() - call function() with every use, until it returns other than 0, which is the result. What it is given is
 * valid during the call. Of one record there may be several uses: a volume that is staged is also attached.
 *
 * The loop device of a raw device outlives its container, with what that wrote. So before a device is given on:
 * uses_release_ended() (state/uses.h).
 *
 * Runs in: the node's namespaces. Needs CAP_SYS_PTRACE to see containers of other user namespaces, and CAP_SYS_ADMIN to
 * ask for a mount in one without reading its table of mounts.
 * Errors:  those of opening and reading the state directory. Without one there are no uses.
 */
typedef int uses_function(const struct use *use, void *argument, struct error *error);
int uses_each(const char *state_dir, const char *keys, uses_function *function, void *argument, struct error *error);

/* A volume whose own uses of some kinds do not count. */
struct uses_except {
        const char *volume; /* NULL: none */
        const char *driver; /* "": of any driver */
        bool attached;      /* that it is attached does not count */
        bool mounted;       /* nor that it is staged and published */
        const char *mount;  /* nor this mount in a container, by the id of its record; NULL: none */
};

/*
 * uses_check_none() - that there is no use. Errors: EBUSY, with a message that names the pod or the container:
 * "the volume is in use by container web (/dev/disk); ...".
 *
 * Takes: operation and subject, of the error; except, or NULL.
 */
int uses_check_none(const char *state_dir, const char *keys, const struct uses_except *except, const char *operation,
                    const char *subject, struct error *error);

/* uses_describe() - "container web (raw device at /dev/disk)": for messages. USES_TEXT_SIZE bytes. */
#define USES_TEXT_SIZE 700
void uses_describe(const struct use *use, char *ret_text);

/*
 * uses_complete() - ensure that the index has all records, so that mount_record_each_of() reads those of one container
 * alone. Reads all records once; after that it is one system call. records: the state of any directory beside the index.
 */
int uses_complete(const char *state_dir, const struct state *records, struct error *error);

/*
 * uses_repair() - make the index agree with the records: it has what they name, and nothing else. Reads all records;
 * volume-reconcile does it.
 */
int uses_repair(const char *state_dir, struct error *error);

/*
 * ---- what ended containers leave behind of raw devices: the loop devices of their guards
 * (block/loop_guard), with what the container wrote and the kernel has not written to the device yet.
 */

/*
 * mount_guard_exists() - whether there is one, by the record of the mount: its own, or one of a mount that it was replacing.
 * mount_guard_release() - loop_guard_release() of each; the first that does not return 0 is the last.
 */
bool mount_guard_exists(const struct mount_record *record);
int mount_guard_release(const struct mount_record *record, struct error *error);

/*
 * uses_release_ended() - write that out, detach the loop devices, and remove their records, before a device is given
 * on. A guard that a process still has open stays, and is a use (state/uses.h); so does one whose record is locked.
 *
 * Takes:  keys, of the device, as for uses_each(); locked_id: the id of a record whose lock the caller holds, and which
 *         stays; or NULL.
 * Errors: those of uses_each().
 */
int uses_release_ended(const char *state_dir, const char *keys, const char *locked_id, struct error *error);

/*
 * uses_each_released() - uses_each(), after uses_release_ended() where that can change the answer: where there is an
 * ended use, or one that the function stops at.
 */
int uses_each_released(const char *state_dir, const char *keys, const char *locked_id, uses_function *function,
                       void *argument, struct error *error);

#endif
