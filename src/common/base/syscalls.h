/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscalls.h - system calls and constants that Debian 12's glibc and kernel headers lack.
 *
 * docs/KERNEL.md#versions has what they are for. Wrappers add nothing (but sys_openat2()): they return -1 with errno, and a kernel without the call answers ENOSYS.
 * Everything else the project calls (fsopen, open_tree, move_mount, mount_setattr, pidfd_open) is in glibc 2.36.
 */
#ifndef FLEXGRAFT_BASE_SYSCALLS_H
#define FLEXGRAFT_BASE_SYSCALLS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef STATX_MNT_ID_UNIQUE /* Linux 6.8: a mount id that is never used again */
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif

#ifndef NS_GET_MNTNS_ID /* Linux 6.11: the 64-bit id of a mount namespace, by ioctl on its fd */
#define NS_GET_MNTNS_ID _IOR(0xb7, 0x5, uint64_t)
#endif

#ifndef PIDFD_GET_MNT_NAMESPACE /* Linux 6.11: a namespace of a process, by ioctl on its pidfd */
#define PIDFD_GET_MNT_NAMESPACE _IO(0xff, 3)
#define PIDFD_GET_PID_NAMESPACE _IO(0xff, 5)
#define PIDFD_GET_USER_NAMESPACE _IO(0xff, 9)
#endif

#ifndef MOVE_MOUNT_BENEATH /* Linux 6.5: under the mount that is at the target, not over it */
#define MOVE_MOUNT_BENEATH 0x00000200
#endif

#ifndef SYS_open_tree_attr /* Linux 6.15: open_tree, which may give a clone another id mapping */
#define SYS_open_tree_attr 467
#endif

#ifndef SYS_statmount /* Linux 6.8 */
#define SYS_statmount 457
#endif

#ifndef SYS_listmount /* Linux 6.8 */
#define SYS_listmount 458
#endif

#ifndef LSMT_ROOT
#define LSMT_ROOT UINT64_MAX
#endif

/* The request of statmount(2) and listmount(2) in its second published form, which carries the mount namespace. */
struct mnt_id_request {
        uint32_t size;
        uint32_t spare;
        uint64_t mnt_id;
        uint64_t param;
        uint64_t mnt_ns_id;
};

/* The answer of statmount(2), as far as Linux 6.15 knows it; what is a string lies behind it, by its offset there. */
struct statmount_answer {
        uint32_t size;
        uint32_t mnt_opts;
        uint64_t mask; /* what was answered */
        uint64_t other[17];
        uint32_t uid_map_count;
        uint32_t uid_map;
        uint32_t gid_map_count;
        uint32_t gid_map;
        uint64_t spare[43];
        char strings[];
};

#define STATMOUNT_UID_MAP 0x00002000U /* Linux 6.15: the ids that an id-mapped mount maps, as in uid_map(5) */
#define STATMOUNT_GID_MAP 0x00004000U

/* The kernel answers EAGAIN, for it to be tried again, when a rename or a mount somewhere raced with ".." of such a path. */
static inline int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
        struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };
        int tries = (resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) != 0 ? 256 : 1;
        int fd;

        do
                fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
        while (fd < 0 && errno == EAGAIN && --tries > 0);
        return fd;
}

static inline int sys_statmount(const struct mnt_id_request *request, void *buffer, size_t size)
{
        return (int)syscall(SYS_statmount, request, buffer, size, 0U);
}

static inline int sys_listmount(const struct mnt_id_request *request, uint64_t *ret_ids, size_t count)
{
        return (int)syscall(SYS_listmount, request, ret_ids, count, 0U);
}

static inline int sys_open_tree_attr(int dirfd, const char *path, unsigned flags, const void *attr, size_t size)
{
        return (int)syscall(SYS_open_tree_attr, dirfd, path, flags, attr, size);
}

static inline int sys_bpf(int command, union bpf_attr *attr)
{
        return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
        return (int)syscall(SYS_pivot_root, new_root, put_old);
}

#endif
