/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "caches.h"
#include "operation.h"

/* The value of the flags' requests, which are named as if it were a long. */
union value {
        unsigned flags;
        struct fsxattr more;
};

static size_t size_of(unsigned command)
{
        return command == FS_IOC_GETFLAGS || command == FS_IOC_SETFLAGS ? sizeof(unsigned) : sizeof(struct fsxattr);
}

/* Whether the project of a file, or whether what is made in it has the same, would be another one. */
static bool project_changes(unsigned command, const union value *value, const struct fsxattr *now)
{
        const bool inherited = (now->fsx_xflags & FS_XFLAG_PROJINHERIT) != 0;

        if (command == FS_IOC_SETFLAGS)
                return ((value->flags & FS_PROJINHERIT_FL) != 0) != inherited;
        return value->more.fsx_projid != now->fsx_projid ||
               ((value->more.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0) != inherited;
}

static int set(int fd, unsigned command, const union value *value)
{
        struct fsxattr now = {};

        if (ioctl(fd, FS_IOC_FSGETXATTR, &now) < 0)
                return -errno;
        if (project_changes(command, value, &now))
                return -EINVAL;
        return ioctl(fd, command, value) < 0 ? -errno : 0;
}

void flags_ioctl(fuse_req_t request, fuse_ino_t number, unsigned command, void *argument, struct fuse_file_info *file,
                 unsigned ioctl_flags, const void *in, size_t in_size, size_t out_size)
{
        const bool gets = command == FS_IOC_GETFLAGS || command == FS_IOC_FSGETXATTR;
        const bool sets = command == FS_IOC_SETFLAGS || command == FS_IOC_FSSETXATTR;
        struct node *node = nodes_get(number);
        union value value = {};
        int r = -ENOTTY;

        (void)ioctl_flags;
        /* an argument: an ioctl as a process made it, of which vfs_fileattr_set() has checked nothing */
        if (argument == NULL && node != NULL &&
            ((gets && out_size == size_of(command)) || (sets && in_size == size_of(command))))
                r = operation_act_as_caller(request);
        if (r == 0 && gets && ioctl((int)file->fh, command, &value) < 0)
                r = -errno;
        if (r == 0 && sets) {
                (void)memcpy(&value, in, in_size);
                r = operation_has_owner(request, node, (int)file->fh, RIGHTS_OF_OWNER);
                if (r == 0)
                        r = set((int)file->fh, command, &value);
                if (r == 0)
                        caches_drop_attributes(node); /* its change time */
        }
        if (r < 0)
                operation_reply_error(request, r);
        else
                (void)fuse_reply_ioctl(request, 0, &value, gets ? out_size : 0);
}
