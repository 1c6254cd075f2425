/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project - the project of a file, and what a project may have on its filesystem.
 *
 *   project get PATH
 *   project set PATH PROJECT
 *   project limit PATH PROJECT      bytes and inodes, "0 0" for none
 *
 * Exit status 1 when the kernel refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        struct if_dqblk block = {};
        struct fsxattr attributes;
        int r;
        int fd;

        if (argc < 3) {
                fprintf(stderr, "usage: project get|set|limit PATH [PROJECT [BYTES]]\n");
                return 125;
        }
        fd = open(argv[2], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? -1 : ioctl(fd, FS_IOC_FSGETXATTR, &attributes);
        if (r == 0 && strcmp(argv[1], "get") == 0)
                printf("%u\n", attributes.fsx_projid);
        if (r == 0 && argc == 4 && strcmp(argv[1], "set") == 0) {
                attributes.fsx_projid = (unsigned)strtoul(argv[3], NULL, 10);
                r = ioctl(fd, FS_IOC_FSSETXATTR, &attributes);
        }
        if (r == 0 && argc == 5 && strcmp(argv[1], "limit") == 0) {
                block.dqb_bhardlimit = strtoull(argv[4], NULL, 10) / 1024;
                block.dqb_valid = QIF_LIMITS;
                r = (int)syscall(SYS_quotactl_fd, fd, QCMD((unsigned)Q_SETQUOTA, PRJQUOTA), strtoul(argv[3], NULL, 10),
                                 &block);
        }
        if (r == 0 && argc == 4 && strcmp(argv[1], "limit") == 0) {
                r = (int)syscall(SYS_quotactl_fd, fd, QCMD((unsigned)Q_GETQUOTA, PRJQUOTA), strtoul(argv[3], NULL, 10),
                                 &block);
                r = r < 0 && errno == ENOENT ? 0 : r;
                if (r == 0)
                        printf("%llu %llu\n", (unsigned long long)block.dqb_bhardlimit * 1024,
                               (unsigned long long)block.dqb_ihardlimit);
        }
        if (r < 0)
                fprintf(stderr, "project: %s: %s\n", argv[2], strerror(errno));
        return r < 0;
}
