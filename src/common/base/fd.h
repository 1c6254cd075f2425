/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - ownership of file descriptors.
 *
 * `cleanup_close int fd = -EBADF;` owns, `return fd_take(&fd);` hands over, a plain `int fd` parameter borrows.
 * Every descriptor of this project is close-on-exec, though no program of it ever executes from a container.
 */
#ifndef FLEXGRAFT_BASE_FD_H
#define FLEXGRAFT_BASE_FD_H

#include <errno.h>
#include <unistd.h>

/* fd_close() - close it if it is open, keep errno, and mark it closed. */
static inline void fd_close(int *fd)
{
        if (*fd >= 0) {
                int saved = errno;

                (void)close(*fd); /* nothing is written through these that a failed close could lose */
                errno = saved;
                *fd = -EBADF;
        }
}

static inline int fd_take(int *fd)
{
        int taken = *fd;

        *fd = -EBADF;
        return taken;
}

#define cleanup_close __attribute__((cleanup(fd_close)))

#endif
