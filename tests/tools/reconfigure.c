/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconfigure - change an option of a mounted filesystem by fspick and fsconfig, where mount(2) would not do.
 *
 *   reconfigure PATH [NAME VALUE]
 *
 * Without an option nothing changes, but the kernel forgets the names in that filesystem that nothing uses.
 * Exit status 1 when the kernel refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refused(const char *what)
{
        fprintf(stderr, "reconfigure: %s: %s\n", what, strerror(errno));
        return 1;
}

int main(int argc, char **argv)
{
        if (argc != 2 && argc != 4) {
                fprintf(stderr, "usage: reconfigure PATH [NAME VALUE]\n");
                return 125;
        }
        int fs = (int)syscall(SYS_fspick, AT_FDCWD, argv[1], FSPICK_CLOEXEC);
        if (fs < 0)
                return refused("fspick");
        if (argc == 4 && syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, argv[2], argv[3], 0) < 0)
                return refused("fsconfig");
        if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
                return refused("fsconfig reconfigure");
        return 0;
}
