/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upgrade.h - the mounts that remap-daemon serves, and the installed program in the place of the one that serves them: with
 * every file that is open, and every lock, and without an error to anyone (src/remap/heir.h).
 *
 * The old program starts nothing, and gives its rights to nobody: the new one is started as for a new mount, with the
 * capabilities and the filter of its own row, and gets the descriptors from the old one.
 */
#ifndef FLEXGRAFT_DAEMON_UPGRADE_H
#define FLEXGRAFT_DAEMON_UPGRADE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/keeper.h"

/* One remap-keeper. */
struct upgrade_mount {
        pid_t pid;
        pid_t container;                   /* its first process, when the mount was made; 0: it is of the node's */
        char version[KEEPER_VERSION_SIZE]; /* of the program that serves it; "": it is too old to say */
        bool current;                      /* that is the installed program's file, or a newer one of another install */
        bool less;                         /* it has fewer capabilities than the installed one needs */
        int pidfd;
};

/* Calls function() for each, until it returns other than 0, which is the result. What it gets is valid during the call. */
typedef int upgrade_function(const struct upgrade_mount *mount, void *argument, struct error *error);

/*
 * upgrade_each() - the keepers that hold a lock in the state directory.
 *
 * A process counts as one that is in this user and pid namespace, has root's ids, a filter, and a descriptor of the file of
 * locks. One that has not the capabilities that remap-daemon has is not upgraded: so nobody is believed who could gain by it.
 *
 * Needs:  CAP_SYS_PTRACE.
 * Errors: EPERM without it; EXDEV /proc is of another pid namespace; ENOENT remap-daemon is not installed.
 */
int upgrade_each(const char *state_dir, upgrade_function *function, void *argument, struct error *error);

/*
 * upgrade_mount() - the installed program serves it from now on, in the control groups of the old one, with its limits.
 *
 * Needs:  CAP_SYS_PTRACE; CAP_SYS_RESOURCE, where that may have more open files than the caller; and the helper process of remap_begin_heirs(). One at a time (state_lock()).
 * Gives:  ret_pid: of the new keeper.
 * Errors: EPROTONOSUPPORT, EBUSY, ETIMEDOUT, ESRCH, ... The old program serves the mount then as before.
 */
int upgrade_mount(const struct upgrade_mount *mount, pid_t *ret_pid, struct error *error);

#endif
