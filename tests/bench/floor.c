/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor - the smallest program that does an injection's system calls and nothing else: what a helper is measured by.
 *
 *   floor bind PID SOURCE TARGET     an id-mapped clone of SOURCE onto TARGET (a path in the container, which exists)
 *   floor block PID DEVICE TARGET    an id-mapped ext4 mount of DEVICE
 *
 * No record, no check, no filter, no undo, no answer. Linked as the helpers are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_link(const char *pid, const char *link, int flags)
{
        char path[64] = "/proc/";

        strcat(strcat(path, pid), link);
        return open(path, flags | O_CLOEXEC);
}

static int make_block(const char *device)
{
        int context = fsopen("ext4", FSOPEN_CLOEXEC);

        if (fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
            fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -1;
        return fsmount(context, FSMOUNT_CLOEXEC, 0);
}

int main(int argc, char **argv)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                                   .propagation = MS_PRIVATE };
        pid_t pid = 0;

        if (argc != 5)
                return 2;
        for (const char *digit = argv[2]; *digit != '\0'; digit++)
                pid = pid * 10 + *digit - '0';

        int pidfd = pidfd_open(pid, 0);
        int root = open_link(argv[2], "/root", O_PATH | O_DIRECTORY);
        int mnt_ns = open_link(argv[2], "/ns/mnt", O_RDONLY);
        int user_ns = open_link(argv[2], "/ns/user", O_RDONLY);
        int mount_fd = argv[1][1] == 'i' ? open_tree(AT_FDCWD, argv[3], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
                                         : make_block(argv[3]);

        attr.userns_fd = (uint64_t)user_ns;
        if (pidfd < 0 || mount_fd < 0 || mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return 1;
        int target = (int)syscall(SYS_openat2, root, argv[4] + 1, &how, sizeof how);
        if (target < 0 || setns(mnt_ns, CLONE_NEWNS) < 0 ||
            move_mount(mount_fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return 1;
        return 0;
}
