/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - what the node has of devices (host/probes.h).
 */
#ifndef FLEXGRAFT_HOST_DEVICES_H
#define FLEXGRAFT_HOST_DEVICES_H

#include <stdbool.h>

#include "host/finding.h"

/*
 * device_mapper_is_registered() - whether the kernel has it now: without it, whoever opens its control device loads it.
 */
bool device_mapper_is_registered(void);

/* ---- what the kernel has, or could load: its filesystems and modules. Nothing is loaded */

/* module_find() - whether a module is loaded or built in, or is there to be loaded. Its name has underscores. */
void module_find(const char *name, struct host_finding *ret_finding);

/* kernel_lists() - whether a file of /proc has a line that ends in this name, after a blank or a tab. */
bool kernel_lists(const char *list, char before, const char *name);

/* filesystem_is_registered() - whether the kernel has a type of filesystem now, without loading a module. */
bool filesystem_is_registered(const char *type);

#endif
