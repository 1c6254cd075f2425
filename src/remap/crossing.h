/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crossing.h - names on a server where another filesystem begins, that it exports below the first, or a referral.
 */
#ifndef FLEXGRAFT_REMAP_CROSSING_H
#define FLEXGRAFT_REMAP_CROSSING_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * crossing_open_name() - a file of any kind in a directory, with O_PATH. crosses: another filesystem of a server that begins
 * there is mounted, and opened.
 *
 * Returns: a descriptor, owned by the caller.
 * Errors:  negative errno of open(2), fstat(2); -EXDEV without crosses: another filesystem begins there.
 */
int crossing_open_name(int directory_fd, const char *name, bool crosses, struct stat *ret_stat);

#endif
