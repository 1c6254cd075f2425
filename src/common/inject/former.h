/* SPDX-License-Identifier: Apache-2.0 */
/*
 * former.h - after the mount of a volume by name was replaced: who still has files of that volume open, and if nobody
 * has, its end.
 *
 * It comes after all else of a call, when that has released its locks: a volume's lock is taken before those of mounts,
 * and which volume it is is known only when the mount is there. A record of the former mount
 * (mount_record_write_former()) tells the next call what a killed one left undone.
 */
#ifndef FLEXGRAFT_INJECT_FORMER_H
#define FLEXGRAFT_INJECT_FORMER_H

#include "base/error.h"
#include "mount/open_files.h"
#include "state/mount_record.h"

/*
 * ---- what mount-remove does about the volume by name that a mount is of. inject does not know volumes:
 * named/releaser is the one that does.
 */

struct volume_releaser {
        /* take a volume's lock; before those of mounts. One at a time */
        int (*hold)(const char *volume, struct error *error);
        /*
         * detach the volume that is held if it has no user but the mount of this record, which is gone; in the node's
         * namespaces.
         * Returns: 0, or 1: something of which there is no record still uses it, and it stays attached
         */
        int (*let_go)(const char *mount_id, struct error *error);
        /* give the lock back; also after a failure of hold(), and one that a worker which was killed had */
        void (*drop)(void);
};

#define FORMER_PROCESSES_MAX OPEN_FILES_MAX

struct former_process {
        char volume[MOUNT_RECORD_VOLUME_MAX];
        struct open_files_process process;
};

struct former {
        size_t count;
        struct former_process processes[FORMER_PROCESSES_MAX]; /* that have files of a former volume open */
        bool more;                                             /* there may be more of them */
        char attached[MOUNT_RECORD_VOLUME_MAX]; /* a volume that stays attached, although no process was found; "" */
        char problem[256];                      /* why, where it could not be tried; "": something uses it */
};

/*
 * former_settle() - look at the former mounts of a target, and detach each volume that nothing uses any more.
 *
 * Takes: record, of a mount at the target, or one that was there: its container and target; has_gone, whether a former mount may
 *        have gone just now: what served it may take a moment to end.
 * Gives: ret_former, which says too what failed: the volume stays attached, and its record tells the next call.
 */
void former_settle(const char *state_dir, const struct mount_record *record, const struct volume_releaser *releaser,
                   bool has_gone, int64_t deadline_ms, struct former *ret_former);

#endif
