/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_copy.h - the content of one regular file in another, by sharing its blocks or by copying what is no hole.
 */
#ifndef FLEXGRAFT_BASE_FILE_COPY_H
#define FLEXGRAFT_BASE_FILE_COPY_H

#include <stdbool.h>
#include <stdint.h>

/* file_can_share() - whether files in this directory can share blocks with an open file of the same filesystem. */
bool file_can_share(int from_fd, int dir_fd);

/* file_share() - to_fd gets the content of from_fd, at one moment, with the same blocks (FICLONE). 0 or negative errno. */
int file_share(int from_fd, int to_fd);

/*
 * file_copy() - the same by copying; to_fd has only holes. What is no data in from_fd stays a hole. name: for
 * base/progress. Errors: ECANCELED the program was interrupted.
 */
int file_copy(int from_fd, int to_fd, const char *name);

/* file_shared_bytes() - of a file, how much has blocks that other files have, too; all, if that takes long to find out. */
uint64_t file_shared_bytes(int fd, uint64_t size_bytes);

#endif
