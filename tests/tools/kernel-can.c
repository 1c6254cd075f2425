/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel-can FEATURE - exit 0 if the running kernel has it, 1 if not. It is asked by trying, whatever the version says.
 *
 *   remap       another id mapping for what is id-mapped already (open_tree_attr)
 *   map-tmpfs   an id-mapped mount of a tmpfs
 *   statmount   one mount of another mount namespace asked for by its id, and that namespace by its own
 *   beneath     a mount placed beneath another (MOVE_MOUNT_BENEATH)
 *   unique-ids  mount ids that are never used again (STATX_MNT_ID_UNIQUE)
 *   nfs-userns SERVER CLIENT PATH
 *               an NFS 4 filesystem that a user namespace owns, of this export, from this address of ours
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x00000200
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif
#define SYS_OPEN_TREE_ATTR 467

static int can_remap(void)
{
        return syscall(SYS_OPEN_TREE_ATTR, -1, "", AT_EMPTY_PATH, NULL, 0) < 0 && errno == ENOSYS ? 1 : 0;
}

/* Flags are looked at before descriptors. */
static int can_place_beneath(void)
{
        (void)syscall(SYS_move_mount, -1, "", -1, "",
                      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | MOVE_MOUNT_BENEATH);
        return errno == EBADF ? 0 : 1;
}

#define NS_GET_MNTNS_ID_REQUEST _IOR(0xb7, 0x5, unsigned long long)
#define SYS_STATMOUNT 457

static int can_statmount(void)
{
        unsigned long long id;
        int ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        if (ns < 0 || ioctl(ns, NS_GET_MNTNS_ID_REQUEST, &id) < 0)
                return 1;
        return syscall(SYS_STATMOUNT, NULL, NULL, 0, 0) < 0 && errno == ENOSYS ? 1 : 0;
}

static int has_unique_ids(void)
{
        struct statx stx = { .stx_mask = 0 };

        return statx(AT_FDCWD, "/", 0, STATX_MNT_ID_UNIQUE, &stx) == 0 && stx.stx_mask & STATX_MNT_ID_UNIQUE ? 0 : 1;
}

static int write_map(pid_t pid, const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd >= 0 && write(fd, "0 100000 1\n", 11) == 11 ? 0 : -1;
}

static int can_map_tmpfs(void)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
        int ready[2], result = 125;
        char byte = 0, path[64];

        if (pipe2(ready, O_CLOEXEC) < 0)
                return 125;
        pid_t pid = fork();
        if (pid == 0) {
                if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], &byte, 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        if (pid < 0 || read(ready[0], &byte, 1) != 1)
                return 125;
        snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        int user_ns = open(path, O_RDONLY | O_CLOEXEC);
        int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
        int fd = -1;
        if (user_ns >= 0 && context >= 0 && write_map(pid, "uid_map") == 0 && write_map(pid, "gid_map") == 0 &&
            fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
                fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
        if (fd >= 0) {
                attr.userns_fd = (unsigned)user_ns;
                result = mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0 ? 0 : 1;
        }
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return result;
}

#define SYS_PIDFD_GETFD 438
#define SYS_PIDFD_OPEN 434

/* The context is opened in the user namespace, which then owns what is made of it; the rest is done outside. */
static int can_own_nfs(const char *server, const char *client, const char *path)
{
        int ready[2], result = 125;
        char source[256];
        int context = -1;

        if (pipe2(ready, O_CLOEXEC) < 0)
                return 125;
        pid_t pid = fork();
        if (pid == 0) {
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                        _exit(1);
                context = fsopen("nfs4", FSOPEN_CLOEXEC);
                if (write(ready[1], &context, sizeof(context)) != sizeof(context))
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        if (pid > 0 && read(ready[0], &context, sizeof(context)) == sizeof(context) && context >= 0) {
                int pidfd = (int)syscall(SYS_PIDFD_OPEN, pid, 0);

                context = (int)syscall(SYS_PIDFD_GETFD, pidfd, context, 0);
                snprintf(source, sizeof(source), "%s:%s", server, path);
                if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "source", source, 0) == 0 &&
                    fsconfig(context, FSCONFIG_SET_STRING, "vers", "4.2", 0) == 0 &&
                    fsconfig(context, FSCONFIG_SET_STRING, "addr", server, 0) == 0 &&
                    fsconfig(context, FSCONFIG_SET_STRING, "clientaddr", client, 0) == 0)
                        result = fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0 ? 0
                                 : errno == EPERM                                           ? 1
                                                                                            : 125;
        }
        if (pid > 0) {
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
        }
        return result;
}

int main(int argc, char **argv)
{
        if (argc == 5 && strcmp(argv[1], "nfs-userns") == 0)
                return can_own_nfs(argv[2], argv[3], argv[4]);
        if (argc == 2 && strcmp(argv[1], "remap") == 0)
                return can_remap();
        if (argc == 2 && strcmp(argv[1], "map-tmpfs") == 0)
                return can_map_tmpfs();
        if (argc == 2 && strcmp(argv[1], "statmount") == 0)
                return can_statmount();
        if (argc == 2 && strcmp(argv[1], "beneath") == 0)
                return can_place_beneath();
        if (argc == 2 && strcmp(argv[1], "unique-ids") == 0)
                return has_unique_ids();
        fprintf(stderr,
                "usage: kernel-can remap|map-tmpfs|statmount|beneath|unique-ids|nfs-userns SERVER CLIENT PATH\n");
        return 125;
}
