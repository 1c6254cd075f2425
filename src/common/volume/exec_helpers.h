/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_helpers.h - who a verb may need to run commands for it, started before it gives its privileges away: only where
 * the words of the call, or the volume's record, speak of it.
 */
#ifndef FLEXGRAFT_VOLUME_EXEC_HELPERS_H
#define FLEXGRAFT_VOLUME_EXEC_HELPERS_H

#include "base/error.h"

/* volume_exec_helpers_begin() - of lvm, and of persistent memory. */
int volume_exec_helpers_begin(int argc, char **argv, struct error *error);

/* volume_exec_helpers_begin_with_tools() - the same, and always who runs mkfs and its like (block/fs_tools.h). */
int volume_exec_helpers_begin_with_tools(int argc, char **argv, struct error *error);

/* volume_exec_helpers_end() - they end, all of them. */
void volume_exec_helpers_end(void);

#endif
