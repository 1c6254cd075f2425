/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passthrough.h - files that the kernel reads and writes itself (FUSE passthrough, Linux 6.9).
 */
#ifndef FLEXGRAFT_REMAP_PASSTHROUGH_H
#define FLEXGRAFT_REMAP_PASSTHROUGH_H

#include <stdbool.h>
#include <sys/types.h>

#include "shared.h"

/* passthrough_begin() - once per daemon. */
void passthrough_begin(void);

/* passthrough_open() - register an open file of a node, as the caller. Returns the registration, 0: none. */
int passthrough_open(struct node *node, int fd);

/* passthrough_close() - one open file less: that one, which is closed next. */
void passthrough_close(struct node *node, int fd);

/*
 * passthrough_get_xattr() - fgetxattr(2) of an open file of a node. Gives: its result, which may be -1 with errno. False:
 * none is known to be open.
 */
bool passthrough_get_xattr(const struct node *node, const char *name, char *ret_value, size_t size,
                           ssize_t *ret_length);

/* passthrough_forget() - end the registration of a node that nothing uses any more. */
void passthrough_forget(struct node *node);

#endif
