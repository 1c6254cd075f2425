/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lxc.h - the first process of a container of LXC, or of Incus and LXD, which use its library.
 *
 * LXC writes no state file. Its monitor, a process of root's per container, answers on a socket; a program that may
 * connect to sockets could ask other daemons of root's for anything, so this one looks at control groups: the monitor is
 * in lxc.monitor.NAME, its title or its arguments name the container and its directory, and the container's first
 * process is the one child of the monitor's in lxc.payload.NAME. LXC appends -1, -2, ... to both names where they are
 * taken. lxc.cgroup.dir and its kin in a container's configuration hide it.
 */
#ifndef FLEXGRAFT_CONTAINER_LXC_H
#define FLEXGRAFT_CONTAINER_LXC_H

#include "base/error.h"
#include "container/state_file.h"

/* lxc_find() - the container of this name in this directory. Returns 0, with pid 0 if it does not run; or -errno. */
int lxc_find(const char *directory, const char *name, struct container_process *ret_process, struct error *error);

#endif
