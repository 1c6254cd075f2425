/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - the symbolic links of the working directory, which mount(8) follows before it calls a helper. */
#ifndef FLEXGRAFT_MOUNT_TYPES_LINKS_H
#define FLEXGRAFT_MOUNT_TYPES_LINKS_H

#include <limits.h>
#include <stdbool.h>

/*
 * links_find() - a link of the working directory that leads to a path, which has no links itself. One whose target does not
 * answer, on a dead server, within two seconds is none: mount(8) would have waited for it. Links are followed by workers
 * (process/worker.h), which may hang in place of the program.
 *
 * Gives:   ret_name.
 * Returns: whether there is one.
 */
bool links_find(const char *path, char ret_name[NAME_MAX + 1]);

#endif
