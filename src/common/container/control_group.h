/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_group.h - the processes of a control group of the node, of version 2 or of systemd's own hierarchy of version
 * 1: for containers of which nothing but their control group is known.
 */
#ifndef FLEXGRAFT_CONTAINER_CONTROL_GROUP_H
#define FLEXGRAFT_CONTAINER_CONTROL_GROUP_H

#include <jansson.h>
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

/*
 * ---- the process that stands for a systemd service or scope, from its control group.
 *
 * systemd tells a unit's main process over its bus alone, and a program that may speak to the bus may start units. The
 * control group is enough: it is named after the unit, and no process enters it but by root's doing or by being a child.
 */

#define UNIT_MAX 255 /* bytes of its name */
#define UNIT_PATTERN "^[A-Za-z0-9:_\\\\@-][A-Za-z0-9:._\\\\@-]*\\.(service|scope)$"

/* unit_take() - a value of a request that is the name of a service or a scope; borrowed. */
int unit_take(const char *key, const json_t *value, const char **ret_unit, struct error *error);

/*
 * unit_find() - the oldest process of a unit of the system's that is in another mount namespace than the node
 * (control_group_first()): with "payload", the group where systemd-nspawn puts its container, in that one.
 *
 * Errors:  ENOENT no such unit runs; ESRCH it has no process; EINVAL all its processes are in the node's mount
 *          namespace.
 */
int unit_find(const char *unit, struct container_process *ret_process, struct error *error);

#endif
