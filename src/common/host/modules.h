/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.h - what the kernel has, or could load: its filesystems and modules. Nothing is loaded.
 */
#ifndef FLEXGRAFT_HOST_MODULES_H
#define FLEXGRAFT_HOST_MODULES_H

#include <stdbool.h>

#include "host/finding.h"

/* module_find() - whether a module is loaded or built in, or is there to be loaded. Its name has underscores. */
void module_find(const char *name, struct host_finding *ret_finding);

/* kernel_lists() - whether a file of /proc has a line that ends in this name, after a blank or a tab. */
bool kernel_lists(const char *list, char before, const char *name);

/* filesystem_is_registered() - whether the kernel has a type of filesystem now, without loading a module. */
bool filesystem_is_registered(const char *type);

#endif
