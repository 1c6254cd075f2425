/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges.h - drop every privilege that a program does not need, before it reads its request.
 *
 * src/privileges/privilege_table.h lists what each program keeps. The build turns each row into a header
 * privileges/PROGRAM.h that defines PRIVILEGES, with the filter compiled by libseccomp: loading a compiled filter takes
 * a third of the time of building it in the program.
 */
#ifndef FLEXGRAFT_PROCESS_PRIVILEGES_H
#define FLEXGRAFT_PROCESS_PRIVILEGES_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct privileges {
        const int *capabilities;
        int capability_count;
        const struct sock_filter *filter;
        unsigned short filter_length;
};

/*
 * privileges_drop() - keep these capabilities and system calls and no others, for good.
 *
 * Runs in: the node's namespaces, before anything of the request is read.
 * Needs:   root with at least these capabilities, and CAP_SETPCAP, which is dropped, too.
 * Leaves:  no_new_privs, securebits locked so that no uid is special (and so that setfsuid keeps the capabilities), a
 *          process that cannot be dumped or traced without CAP_SYS_PTRACE in the node's user namespace, and a filter
 *          under which an unlisted system call kills the process. The bounding set stays: it limits what execve may
 *          give, the filter has no execve, and emptying it is 41 system calls, a tenth of a program's time.
 * Errors:  EPERM when not root enough; ENOSYS or EINVAL from a kernel without seccomp filters.
 */
int privileges_drop(const struct privileges *privileges, struct error *error);

/*
 * privileges_drop_to_available() - the same, but capabilities that the process does not have are no failure.
 * privileges_are_less() - whether it had not all of them.
 */
int privileges_drop_to_available(const struct privileges *privileges, struct error *error);
bool privileges_are_less(void);

/*
 * privileges_drop_to_act() - the same for a process that acts for other users (setfsuid). With another fsuid than 0 it
 * then has no capabilities over files (capabilities(7), "Effect of user ID changes").
 */
int privileges_drop_to_act(const struct privileges *privileges, struct error *error);

/*
 * privileges_drop_for_tools() - the same for a process that runs external programs, which inherit what is left: those
 * of these capabilities that the process has, and a filter under which an unlisted call fails with ENOSYS.
 */
int privileges_drop_for_tools(const struct privileges *privileges, struct error *error);

/* privileges_be_nobody() - no capabilities, and if possible the ids of nobody: for a child that reads untrusted data. */
int privileges_be_nobody(struct error *error);

/* privileges_keep_none() - no capabilities; because of no_new_privs, execve() cannot restore them. */
int privileges_keep_none(struct error *error);

/* privileges_give_up() - all capabilities but one stay as they are. Returns 0 or negative errno. */
int privileges_give_up(int capability);

/*
 * privileges_stay_undumpable() - call after every change of ids, at which the kernel resets the dumpable flag to
 * fs.suid_dumpable (docs/KERNEL.md#a-helper-inside-a-containers-user-namespace).
 */
void privileges_stay_undumpable(void);

/*
 * privileges_file_owner() - files that this process creates from now on belong to these ids (setfsuid, setfsgid); its
 * capabilities stay. So directories can be created on a superblock of the container on which the node's root has no id
 * (EOVERFLOW otherwise; docs/KERNEL.md#targets-in-a-container), without entering the container's user namespace. 0, 0
 * undoes it. Runs in a worker.
 */
int privileges_file_owner(uid_t uid, gid_t gid, struct error *error);

#endif
