/* SPDX-License-Identifier: Apache-2.0 */
#include "crossing.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "shared.h"

static bool is_crossing(int fd, const struct stat *stat)
{
        struct statx st;

        return shared->network && S_ISDIR(stat->st_mode) &&
               statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) == 0 &&
               (st.stx_attributes & STATX_ATTR_AUTOMOUNT) != 0;
}

/*
 * Where another filesystem of the server begins, or a referral, the kernel mounts that when it is opened as a directory;
 * O_PATH alone leads to what is below it, which cannot be read (follow_automount() in fs/namei.c). Returns fd, or the
 * other one in its place. If it cannot be mounted, its name is shown all the same.
 */
static int cross(int directory_fd, const char *name, int fd, struct stat *stat)
{
        struct stat other;
        int crossed = openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (crossed >= 0 && fstat(crossed, &other) == 0) {
                *stat = other;
                (void)close(fd); /* O_PATH: nothing to lose */
                return crossed;
        }
        if (crossed >= 0)
                (void)close(crossed); /* as above */
        return fd;
}

int crossing_open_name(int directory_fd, const char *name, bool crosses, struct stat *ret_stat)
{
        int fd = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        r = fstat(fd, ret_stat) < 0 ? -errno : is_crossing(fd, ret_stat) ? -EXDEV : 0;
        if (r == -EXDEV && crosses)
                return cross(directory_fd, name, fd, ret_stat);
        if (r == 0)
                return fd;
        (void)close(fd); /* O_PATH: nothing to lose */
        return r;
}
