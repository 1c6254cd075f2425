/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges.h - give away every privilege a program does not need, before it reads its request.
 *
 * What each program keeps is said in one place, src/build/privilege_table.h; the build turns a row of it into a
 * header privileges/PROGRAM.h that defines PRIVILEGES, the filter already compiled by libseccomp (loading a ready
 * filter costs a third of building it at run time).
 */
#ifndef FLEXGRAFT_PROCESS_PRIVILEGES_H
#define FLEXGRAFT_PROCESS_PRIVILEGES_H

#include <linux/filter.h>
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
 * Needs:   root with at least the capabilities named, and CAP_SETPCAP, which is then given away.
 * Leaves:  no_new_privs, securebits locked so that no uid is special (and so that setfsuid keeps the capabilities), a
 *          process that cannot be dumped or traced without CAP_SYS_PTRACE in the node's user namespace, and a filter
 *          under which an unlisted system call kills the process. The bounding set stays: it limits what execve may
 *          give, the filter has no execve, and emptying it is 41 system calls, a tenth of a program's time.
 * Errors:  EPERM when not root enough; ENOSYS or EINVAL from a kernel without seccomp filters.
 */
int privileges_drop(const struct privileges *privileges, struct error *error);

/*
 * privileges_drop_to_act() - the same for what acts as others (setfsuid): as anybody but root it then has no capability
 * over files, by the kernel's own rule (capabilities(7), "Effect of user ID changes").
 */
int privileges_drop_to_act(const struct privileges *privileges, struct error *error);

/*
 * privileges_drop_for_tools() - the same for a process that runs other people's programs, which inherit what is left:
 * those of the capabilities that we have, and a filter under which an unlisted call fails.
 */
int privileges_drop_for_tools(const struct privileges *privileges, struct error *error);

/* privileges_be_nobody() - the same, and nobody's ids, where we may have them: for a child that reads what others
 * wrote. */
int privileges_be_nobody(struct error *error);

/* privileges_keep_none() - no capability at all; no_new_privs keeps execve() from bringing one back. */
int privileges_keep_none(struct error *error);

/*
 * privileges_stay_undumpable() - after anything that changes ids: the kernel then sets the process's dumpable flag
 * back to fs.suid_dumpable (commit_creds() in kernel/cred.c).
 */
void privileges_stay_undumpable(void);

/*
 * privileges_file_owner() - what this process makes from now on belongs to these ids (setfsuid, setfsgid), its
 * capabilities unchanged. This is how directories are made inside a container whose superblock the node's root has no
 * id on (EOVERFLOW otherwise), without entering the container's user namespace. 0, 0 goes back. Runs in a worker.
 */
int privileges_file_owner(uid_t uid, gid_t gid, struct error *error);

#endif
