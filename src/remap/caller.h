/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller.h - the credentials with which a thread accesses the source: those of the process in the container that made
 * the request, with the ids that this process has inside the container.
 */
#ifndef FLEXGRAFT_REMAP_CALLER_H
#define FLEXGRAFT_REMAP_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

#include "caller_ids.h"

/* caller_begin() - once per thread, before its first request. Needs CAP_SETGID. */
int caller_begin(void);

/*
 * caller_become() - this thread now creates and opens files as that user. With another fsuid than 0 a thread has no
 * capabilities over files (capabilities(7)), so that the kernel checks permissions as for that user.
 *
 * Errors: EOVERFLOW for an id that is not mapped in the container's user namespace.
 */
int caller_become(uid_t uid, gid_t gid);

/* caller_uid(), caller_gid() - the ids that this thread has now; caller_has_one_group() - and no supplementary groups. */
uid_t caller_uid(void);
gid_t caller_gid(void);
bool caller_has_one_group(void);

/*
 * caller_become_able() - the same, but with all capabilities of the daemon: what is created belongs to that user, and
 * permissions are not checked again. Until the next caller_become().
 */
int caller_become_able(uid_t uid, gid_t gid);

/* caller_is_able() - whether this thread is that. */
bool caller_is_able(void);

/* caller_umask() - set the umask to that of the calling process, for the file created next. */
void caller_umask(mode_t mask);

/*
 * caller_add_groups() - add the supplementary groups of the calling process, read from /proc, until the next
 * caller_become(). Only after a system call was refused without them: reading them costs more than most requests.
 * Returns true when the call should be tried again.
 */
bool caller_add_groups(pid_t pid);

/*
 * caller_take_groups() - take the supplementary groups that were found, until the next caller_become(): before a server
 * is asked, which may refuse something to a group. Returns 0 or negative errno.
 */
int caller_take_groups(const struct caller_ids *ids);

/*
 * caller_join() - add one group to these (NULL: none), until the next caller_become(). For root, which may act for every
 * mapped group.
 */
void caller_join(const struct caller_ids *ids, gid_t gid);

/* caller_forget() - drop supplementary groups: in its next request the same process may have others. */
void caller_forget(void);

/* caller_knows() - whether both ids are mapped in the container. */
bool caller_knows(uid_t uid, gid_t gid);

/* caller_process() - the process of a thread, and its user, by its real uid; 0: not known, or it has ended. */
pid_t caller_process(pid_t thread, uid_t *ret_uid);

/* caller_is_dying() - whether SIGKILL is pending for a process (which a system call can delay). */
bool caller_is_dying(pid_t pid);

#endif
