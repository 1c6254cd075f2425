/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project_quota.h - how much the files of one project may have on a filesystem (quotactl(2), FS_IOC_FSSETXATTR).
 *
 * A directory with a project's id gives it to what is made below it (FS_XFLAG_PROJINHERIT), so that one limit holds for
 * the tree. Only a process of the initial user namespace can change an id (fileattr_set_prepare() in the kernel's
 * fs/ioctl.c), and there whoever owns a file can: between processes of the node it is accounting, and no wall.
 *
 * Descriptors are open for reading, of anything on the filesystem. Functions return 0 or negative errno.
 * Needs: CAP_SYS_ADMIN for usage and limits; to own a file, or CAP_FOWNER, for its id.
 */
#ifndef FLEXGRAFT_BASE_PROJECT_QUOTA_H
#define FLEXGRAFT_BASE_PROJECT_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#define PROJECT_NONE 0U /* of files that were given none */
/* of 2^30 ids that project_choose() takes; others begin to count at 1, or as kubelet at 2^20 */
#define PROJECT_FIRST 0x40000000U

/* project_quota_is_on() - whether the filesystem keeps to limits of projects. */
bool project_quota_is_on(int fd);

/* project_read() - the project of a file or directory; PROJECT_NONE where the filesystem has none. */
int project_read(int fd, uint32_t *ret_project);

/* project_give() - that a directory, and what is made in it, belongs to a project. */
int project_give(int dir_fd, uint32_t project);

/* project_stop() - that what is made in a directory, or moved there, has not its project. */
int project_stop(int dir_fd);

struct project_use {
        uint64_t used_bytes;
        uint64_t inodes;
        uint64_t limit_bytes; /* 0: none */
        bool limits;          /* whether it has any limit */
};

int project_quota_read(int fd, uint32_t project, struct project_use *ret_use);

/* project_quota_limit() - set a project's limits, of bytes (multiples of 1024) and of inodes; 0: none. */
int project_quota_limit(int fd, uint32_t project, uint64_t bytes, uint64_t inodes);

/*
 * project_choose() - a project that nothing on the filesystem has: no file, no limit; and that is not in /etc/projects
 * or /etc/projid. It is taken from a large range at random, so that it costs the same however many there are. With a lock
 * until it has been given. Errors: EAGAIN.
 */
int project_choose(int fd, uint32_t *ret_project);

#endif
