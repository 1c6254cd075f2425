/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h - the daemon's descriptors: what each is for, and which process in the container had it opened.
 *
 * All processes of a container use them, or of all containers that have the mount. So that none can use them up, a process
 * may have as many as are left free, and the processes of one user three times as many.
 */
#ifndef FLEXGRAFT_REMAP_DESCRIPTORS_H
#define FLEXGRAFT_REMAP_DESCRIPTORS_H

#include <stdint.h>
#include <sys/types.h>

#include "shared.h"

#define SPARE 256 /* descriptors that are not for open files */

/*
 * descriptors_find_unknown() - those that the last daemon opened and did not record, for the next to close: before it runs,
 * by the keeper, which opens files itself later. It closes none: that may wait for a server. Returns 0 or negative errno.
 */
int descriptors_find_unknown(void);

/* descriptors_begin() - close these, and count the others of the last daemon. Returns 0 or negative errno. */
int descriptors_begin(void);

/*
 * descriptors_check() - whether that process, a thread of the node, may open a file.
 *
 * Returns: 0; -EMFILE: it has its share, or its user has. The next descriptor_use() of this thread counts for it.
 */
int descriptors_check(pid_t thread, uid_t uid);

/*
 * descriptors_opener() - who that thread of the node belongs to, for whom the next descriptor_use() of this thread
 * counts. Its user: where mounts are id-mapped, that of its container.
 */
struct opener descriptors_opener(pid_t thread, uid_t uid);

/* descriptor_use() - record the purpose of a descriptor. Those without one are descriptors_find_unknown()'s. */
void descriptor_use(int fd, enum descriptor_use use);

/*
 * descriptor_position(), descriptor_set_position() - a place in an open file or directory that the next daemon may need; -1:
 * unknown.
 */
int64_t descriptor_position(int fd);
void descriptor_set_position(int fd, int64_t position);

/* descriptor_end() - close it, and record that. */
void descriptor_end(int fd);

#endif
