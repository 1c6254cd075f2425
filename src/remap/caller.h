/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller.h - on whose behalf a thread acts: the ids that a process of the container has in there are those that the
 * filesystem, or its server, is to see.
 */
#ifndef FLEXGRAFT_TRANSLATOR_CALLER_H
#define FLEXGRAFT_TRANSLATOR_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

/* caller_begin() - once per thread, first of all. Needs CAP_SETGID. */
int caller_begin(void);

/*
 * caller_become() - from now on this thread makes and opens files as that user. What another than root may not do the
 * kernel then refuses it: with another fsuid than 0 a thread has no capability over files (capabilities(7)).
 *
 * Errors: EOVERFLOW for somebody whom the container's user namespace does not know.
 */
int caller_become(uid_t uid, gid_t gid);

/* caller_umask() - of the process that asked, for what is made now. */
void caller_umask(mode_t mask);

/*
 * caller_add_groups() - its supplementary groups, too, as /proc says; until the next caller_become(). Only when
 * something was refused without them: to find them out costs more than most of what is asked for. True: try again.
 */
bool caller_add_groups(pid_t pid);

/* caller_join() - a group, until the next caller_become(): for root, who is of every group that the container knows. */
void caller_join(gid_t gid);

/* caller_forget() - the same one in its next request may have other groups. */
void caller_forget(void);

/* caller_knows() - whether both ids are somebody's in the container. */
bool caller_knows(uid_t uid, gid_t gid);

/* caller_is_dying() - whether SIGKILL waits for a process to come back from the kernel. */
bool caller_is_dying(pid_t pid);

#endif
