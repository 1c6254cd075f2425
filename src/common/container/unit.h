/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - the process that stands for a systemd service or scope, from its control group.
 *
 * systemd tells a unit's main process over its bus alone, and a program that may speak to the bus may start units. The
 * control group is enough: it is named after the unit, and no process enters it but by root's doing or by being a child.
 */
#ifndef FLEXGRAFT_CONTAINER_UNIT_H
#define FLEXGRAFT_CONTAINER_UNIT_H

#include <jansson.h>

#include "base/error.h"
#include "container/state_file.h"

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
