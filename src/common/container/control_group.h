/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_group.h - the processes of a control group of the node, of version 2 or of systemd's own hierarchy of version
 * 1: for containers of which nothing but their control group is known.
 */
#ifndef FLEXGRAFT_CONTAINER_CONTROL_GROUP_H
#define FLEXGRAFT_CONTAINER_CONTROL_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/state_file.h"

/* control_group_open_root() - the hierarchy in which systemd and LXC keep their groups. A descriptor or -errno. */
int control_group_open_root(void);

/*
 * control_group_open() - a group below another: the work of those who may write to that one. Returns a descriptor or
 * negative errno.
 */
int control_group_open(int parent_fd, const char *path);

/* control_group_open_roots() - likewise, if nobody but root may make groups in it; -EPERM otherwise. */
int control_group_open_roots(int parent_fd, const char *path);

/*
 * control_group_first() - the first process of a container in this group or in those below it: the oldest one that is
 * outside of the node's mount namespace, in the uppermost groups that have such a one. A container may make groups and
 * processes below its own as it likes, but none above it and none that is older. parent: only children of this
 * process; 0: any.
 *
 * Returns: 1; 0 there is none, and ret_process->pid is that of a process in the node's mount namespace, or 0; or
 *          negative errno. Errors: E2BIG more processes or groups than are looked at.
 */
int control_group_first(int group_fd, const char *name, pid_t parent, struct container_process *ret_process,
                        struct error *error);

/* control_group_each() - call a function for each process of this group itself, until it returns not 0. */
typedef int control_group_visit(pid_t pid, void *argument, struct error *error);
int control_group_each(int group_fd, const char *name, control_group_visit *visit, void *argument, struct error *error);

#endif
