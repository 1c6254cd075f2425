/* SPDX-License-Identifier: Apache-2.0 */
#include "base/project_quota.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LIMIT_UNIT 1024U /* QIF_DQBLKSIZE */
#define PROJECT_BITS 0x3fffffffU
#define CHOICES_MAX 64

/* Before Linux 5.14 by the device, which udev names after its number. */
static int quota(int fd, unsigned command, uint32_t project, void *data)
{
        const unsigned long call = QCMD(command, PRJQUOTA); /* a filter compares the whole register */
        char device[64];
        struct stat st;

        if (syscall(SYS_quotactl_fd, fd, call, (long)project, data) == 0)
                return 0;
        if (errno != ENOSYS)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        (void)snprintf(device, sizeof device, "/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
        return syscall(SYS_quotactl, call, device, (long)project, data) == 0 ? 0 : -errno;
}

bool project_quota_is_on(int fd)
{
        struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };

        return quota(fd, Q_XGETQSTATV, 0, &state) == 0 && (state.qs_flags & FS_QUOTA_PDQ_ACCT) != 0 &&
               (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
}

static int read_attributes(int fd, struct fsxattr *ret_attributes)
{
        return ioctl(fd, FS_IOC_FSGETXATTR, ret_attributes) < 0 ? -errno : 0;
}

int project_read(int fd, uint32_t *ret_project)
{
        struct fsxattr attributes;
        int r = read_attributes(fd, &attributes);

        *ret_project = r == 0 ? attributes.fsx_projid : PROJECT_NONE;
        return r == -ENOTTY || r == -EOPNOTSUPP ? 0 : r;
}

int project_give(int dir_fd, uint32_t project)
{
        struct fsxattr attributes;
        int r = read_attributes(dir_fd, &attributes);

        if (r < 0)
                return r;
        attributes.fsx_projid = project;
        attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
        return ioctl(dir_fd, FS_IOC_FSSETXATTR, &attributes) < 0 ? -errno : 0;
}

int project_stop(int dir_fd)
{
        struct fsxattr attributes;
        int r = read_attributes(dir_fd, &attributes);

        if (r == -ENOTTY || r == -EOPNOTSUPP || (r == 0 && (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) == 0))
                return 0;
        if (r < 0)
                return r;
        attributes.fsx_xflags &= ~(unsigned)FS_XFLAG_PROJINHERIT;
        return ioctl(dir_fd, FS_IOC_FSSETXATTR, &attributes) < 0 ? -errno : 0;
}

int project_quota_read(int fd, uint32_t project, struct project_use *ret_use)
{
        struct if_dqblk block = {};
        int r = quota(fd, Q_GETQUOTA, project, &block);

        *ret_use = (struct project_use){};
        if (r < 0)
                return r == -ENOENT ? 0 : r; /* it was never used */
        ret_use->used_bytes = block.dqb_curspace;
        ret_use->inodes = block.dqb_curinodes;
        ret_use->limit_bytes = block.dqb_bhardlimit * LIMIT_UNIT;
        ret_use->limits = block.dqb_bhardlimit != 0 || block.dqb_bsoftlimit != 0 || block.dqb_ihardlimit != 0 ||
                          block.dqb_isoftlimit != 0;
        return 0;
}

int project_quota_limit(int fd, uint32_t project, uint64_t bytes, uint64_t inodes)
{
        struct if_dqblk block = { .dqb_bhardlimit = bytes / LIMIT_UNIT,
                                  .dqb_ihardlimit = inodes,
                                  .dqb_valid = QIF_LIMITS };

        return quota(fd, Q_SETQUOTA, project, &block);
}

/* /etc/projects has "ID:DIRECTORY", /etc/projid "NAME:ID". */
static bool is_configured(uint32_t project)
{
        static const struct {
                const char *path;
                bool leads;
        } files[] = { { "/etc/projects", true }, { "/etc/projid", false } };
        bool found = false;
        char line[4096];

        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
                FILE *file = fopen(files[i].path, "re");

                while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
                        const char *colon = strchr(line, ':');
                        const char *number = files[i].leads ? line : colon;

                        if (colon != NULL && line[0] != '#')
                                found = strtoul(files[i].leads ? number : number + 1, NULL, 10) == project;
                }
                if (file != NULL)
                        (void)fclose(file); /* only read from */
        }
        return found;
}

int project_choose(int fd, uint32_t *ret_project)
{
        struct project_use use;
        uint32_t bits;
        int r;

        for (int i = 0; i < CHOICES_MAX; i++) {
                if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
                        return -EAGAIN;
                *ret_project = PROJECT_FIRST + (bits & PROJECT_BITS);
                if ((r = project_quota_read(fd, *ret_project, &use)) < 0)
                        return r;
                if (use.inodes == 0 && use.used_bytes == 0 && !use.limits && !is_configured(*ret_project))
                        return 0;
        }
        return -EAGAIN;
}
