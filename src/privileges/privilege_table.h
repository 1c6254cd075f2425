/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege_table.h - which capabilities each program keeps, and which system calls it may make. The only such list.
 *
 * A system call that is not in a program's row kills the program (SECCOMP_RET_KILL_PROCESS). "call/way" allows a call
 * only with certain arguments: those of the rules "call/way" in export-privileges.c.
 *
 * To allow another system call: put its name into the group of the feature that needs it, or into the program's row if
 * no other program does. If other arguments could do harm, write "call/way" and add a rule to export-privileges.c.
 * tests/bats/privileges.bats tests what each program may do.
 */
#ifndef FLEXGRAFT_PRIVILEGE_TABLE_H
#define FLEXGRAFT_PRIVILEGE_TABLE_H

#include <linux/capability.h>
#include <stddef.h>

/* All programs: memory, files of the node, a worker with a time limit, the reply. */
#define GROUP_BASE                                                                                                     \
        "read", "write", "close", "openat", "newfstatat", "fstat", "fcntl", "unlinkat", "renameat", "fchmod", "lseek", \
                "brk", "mmap", "munmap", "mremap", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "ppoll",   \
                "clone", "waitid", "pidfd_send_signal", "sched_setaffinity", "getcpu", "getrandom", "clock_gettime",   \
                "geteuid", "getpid", "getppid", "prctl", "getdents64", "close_range", "rt_sigaction",                  \
                "madvise/populate"

/* Pin a container, read its /proc, resolve paths beneath its root. */
#define GROUP_CONTAINER                                                                                                \
        "pidfd_open", "openat2", "statx", "fstatfs", "name_to_handle_at", "ioctl/namespace", "readlink", "readlinkat"

/* Create or remove a mount point in a container, with the ids of its root. */
#define GROUP_TARGET "mkdirat", "mknodat", "setfsuid", "setfsgid"

/* Enter what a record names in the index of uses (state/use_index). */
#define GROUP_INDEX "mkdirat", "linkat"

/* Place a mount in the container's mount namespace, or unmount one. */
#define GROUP_PLACE "setns/mnt", "move_mount"

/* Write down what is wanted in a container (state/wish). */
#define GROUP_WISH "fsync"
#define GROUP_UNPLACE "setns/mnt", "umount2", "fchdir", "mount_setattr", "setfsuid", "setfsgid"
#define GROUP_INJECT                                                                                                   \
        GROUP_BASE, GROUP_CONTAINER, GROUP_TARGET, GROUP_PLACE, GROUP_UNPLACE, GROUP_DETACHED, GROUP_QUESTION,         \
                GROUP_INDEX, GROUP_WISH

/* Create a detached mount, set its attributes, lock them in a private mount namespace. */
#define GROUP_DETACHED                                                                                                 \
        "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "unshare", "unshare/user", "setns/user",        \
                "socketpair", "sendmsg", "recvmsg", "setresuid", "setresgid", "setgroups", "close_range"

/* Read the partition table and the filesystem of an image, as nobody and with little memory; attach it (block/image). */
#define GROUP_IMAGE "capget", "capset", "prlimit64/memory", "ioctl/free"

/* Create an id mapping (mount/idmap), and id-mapped clones. */
#define GROUP_MAPPING "open_tree_attr"

/* Read and replace device programs of control groups (container/device_bpf). */
#define GROUP_DEVICES "bpf", "umask", "fstat"

/* Guard a device that a container may open, or release it (block/loop_guard). */
#define GROUP_GUARD "ioctl/guard", "fsync", "fstat", "flock"

/* Read the properties of a mount; ask whether a mount namespace is still there. */
#define GROUP_QUESTION "statmount", "listmount"

/* Ask the list of uses (state/uses): pin a container, and ask for a mount in it. */
#define GROUP_USES GROUP_CONTAINER, GROUP_QUESTION, GROUP_INDEX

/* Sort: the C library's qsort() reads the size of the memory. */
#define GROUP_SORT "sysinfo"

/* Probe devices with libblkid. */
#define GROUP_PROBE                                                                                                    \
        "ioctl/device", "access", "faccessat", "faccessat2", "stat", "lstat", "fstat", "pread64", "fadvise64",         \
                "readlink", "uname", "sysinfo", "gettimeofday", "time"

/* Write to the system log. */
#define GROUP_LOG "socket/local", "connect", "sendto"

/* Volume records, and directories of volumes. */
#define GROUP_VOLUME                                                                                                   \
        GROUP_BASE, GROUP_LOG, GROUP_INDEX, "fstat", "fsync", "faccessat", "statx", "clock_nanosleep", "fstatfs",      \
                "name_to_handle_at"

/*
 * Read the identity of a pool, and give it one (pool/pool_identity); set the time of a sum (pool/pool_sums), and
 * ask which blocks images share, and whether a filesystem keeps to quotas of projects.
 */
#define GROUP_POOL                                                                                                     \
        "readlinkat", "symlinkat", "utimensat", "ioctl/extents", "fstatfs", "quotactl_fd/look", "quotactl/look"

/* Mount a share of an NFS server, in nobody's tree (pool/pool_nfs). */
#define GROUP_SHARE GROUP_NETWORK, "fsopen", "fsconfig", "fsmount", "name_to_handle_at"

/* Volumes that are directories: limit what a project may have, and remove a tree (base/project_quota,
 * base/tree_remove). */
#define GROUP_DIRECTORY                                                                                                \
        "openat2", "fchownat", "renameat2", "ioctl/project", "quotactl_fd/look", "quotactl/look", "quotactl_fd/limit", \
                "quotactl/limit"

/* Give an image the content of another (base/file_copy). */
#define GROUP_COPY "ioctl/share", "copy_file_range", "pread64", "pwrite64"

/* Loop devices and image files. */
#define GROUP_LOOP GROUP_POOL, "ioctl/loop", "ftruncate", "fallocate", "access", "sync_file_range"

/* Resolve a path of the node (base/node_path). */
#define GROUP_NODE_PATH "openat2", "fstatfs", "readlinkat"

/* Mount and unmount on the node. */
#define GROUP_NODE_MOUNT                                                                                               \
        "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "umount2", "fchdir",    \
                "chdir", "unshare", "close_range", "setsid", "alarm", "setitimer", "rt_sigprocmask"

/* Give orders to an exec helper (process/exec_helper). */
#define GROUP_ORDER "sendto", "recvfrom", "kill/kill"

/* Create, erase and measure volumes (src/volume-tools). */
#define GROUP_PROVISION GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg", "ioctl/erase"

/* Attach, format and stage a volume by name, and detach it (volume/by_name). */
#define GROUP_NAMED                                                                                                    \
        GROUP_USES, GROUP_GUARD, GROUP_NODE_MOUNT, GROUP_PROVISION, GROUP_DIRECTORY, "pwrite64", "fgetxattr",          \
                "fremovexattr"

/* An exec helper and the external programs that it runs (mkfs, fsck, ...). A missing call fails with ENOSYS and
 * does not kill: other versions of these programs make other calls. */
#define GROUP_TOOLS                                                                                                    \
        "access", "arch_prctl", "brk", "capget", "capset", "chdir", "clock_getres", "clock_gettime",                   \
                "clock_nanosleep", "clone/any", "clone3", "close", "close_range", "dup", "dup2", "dup3", "execve",     \
                "exit", "exit_group", "faccessat", "faccessat2", "fadvise64", "fallocate", "fcntl", "fdatasync",       \
                "flock", "fstat", "fstatfs", "fsync", "ftruncate", "futex", "getcwd", "getdents64", "getegid",         \
                "geteuid", "getgid", "getpid", "getppid", "getrandom", "getrlimit", "getrusage", "gettid",             \
                "gettimeofday", "getuid", "ioctl/any", "kill", "lseek", "lstat", "madvise", "mmap/any",                \
                "mprotect/any", "mremap", "munmap", "nanosleep", "newfstatat", "open", "openat", "pipe", "pipe2",      \
                "poll", "ppoll", "prctl/any", "pread64", "preadv", "prlimit64", "pwrite64", "pwritev", "read",         \
                "readlink", "readlinkat", "readv", "recvfrom", "restart_syscall", "rseq", "rt_sigaction",              \
                "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity", "sched_setaffinity", "sched_yield", "sendto",   \
                "set_robust_list", "set_tid_address", "setrlimit", "sigaltstack", "stat", "statfs", "statx", "sync",   \
                "sync_file_range", "sysinfo", "tgkill", "time", "umask", "uname", "unlink", "vfork", "wait4",          \
                "waitid", "write", "writev"

/* Have remap-daemon started, and create its FUSE filesystem (daemon/remap). */
#define GROUP_REMAP_START "recvfrom", "fstat", "kill/kill"

/* Resolve a server's name and test a connection (network/nfs_server). */
#define GROUP_NETWORK                                                                                                  \
        "socket/network", "setgroups", "setresuid", "setresgid", "ioctl/interface", "writev", "connect", "getsockopt", \
                "setsockopt", "getsockname", "getpeername", "sendto", "recvfrom", "poll", "fstat", "uname",            \
                "gettimeofday", "capget", "capset", "socketpair", "sendmsg", "recvmsg", "close_range", "openat2"

/* remap-daemon and its keeper: file operations for the processes of a container. */
#define GROUP_REMAP                                                                                                    \
        GROUP_BASE, "writev", "pwritev2", "statx", "mknodat", "mkdirat", "symlinkat", "linkat", "renameat2",           \
                "readlinkat", "readlink", "fchmodat", "fchownat", "utimensat", "truncate", "ftruncate", "fstat",       \
                "statfs", "fstatfs", "setxattr", "getxattr", "listxattr", "removexattr", "pread64", "pwrite64", "dup", \
                "fsync", "fdatasync", "fallocate", "copy_file_range", "flock", "setfsuid", "setfsgid", "setgroups",    \
                "umask", "unshare/fs", "ioctl/backing", "ioctl/flags", "name_to_handle_at", "open_by_handle_at",       \
                "futex", "mprotect", "madvise", "rseq", "set_robust_list", "clone3/absent", "sched_getaffinity",       \
                "rt_sigprocmask", "rt_sigaction", "gettid", "prlimit64", "getrlimit", "setrlimit", "pidfd_open",       \
                "poll", "sysinfo", "uname", "sched_yield", "clock_nanosleep", "nanosleep", "prctl/name",               \
                "close_range", "getuid", "dup2", "unshare", "mount_setattr", "move_mount", "umount2", "fgetxattr",     \
                "alarm", "setitimer"

/* To place any mount in a container. */
#define CAPABILITIES_INJECT                                                                                            \
        CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID, CAP_KILL

/* The kernel accesses the layers of an overlay with its maker's credentials (docs/KERNEL.md#overlay). */
#define CAPABILITIES_OVERLAY CAP_CHOWN, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP, CAP_MKNOD

/*
 * To access files as any user, including the node's root; CAP_SYS_ADMIN: to register files for FUSE passthrough;
 * CAP_SYS_PTRACE: to see in which user namespace a process is that asks a server (src/remap/caller_ids.h), given up at
 * once where none is asked; CAP_SETFCAP: file capabilities that the container's root sets, whose right to that the
 * kernel has checked.
 */
#define CAPABILITIES_REMAP                                                                                             \
        CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_SETUID, CAP_SETGID, CAP_SYS_ADMIN,           \
                CAP_SYS_PTRACE, CAP_SETFCAP

struct privilege_row {
        const char *program;
        int capabilities[16];          /* -1 ends the list */
        const char *system_calls[256]; /* NULL ends the list */
};

/*
 * SYS_ADMIN     setns(mnt), move_mount, open_tree, mount_setattr, fsopen, umount2; statmount of another namespace
 * SYS_CHROOT    setns(mnt)
 * SYS_PTRACE    /proc/PID/root and /proc/PID/ns of a process in another user namespace; the driver asks containers
 *               whether they still use a volume
 * DAC_OVERRIDE  create a mount point in directories of the container's users
 * DAC_READ_SEARCH  read such directories, and those of pods and of a volume's source
 * KILL          kill a child that became the container's root and that the container has stopped
 * MKNOD         a device node for a raw device; whiteouts of an overlay
 * NET_ADMIN     list the device programs of a control group (required before Linux 6.7)
 * SETFCAP       a mapping to the node's root (Linux 5.12); copy file capabilities up in an overlay
 * DAC_OVERRIDE, FOWNER  remove what containers made in a volume that is a directory; CHOWN gives that its owner
 * CHOWN, FOWNER, FSETID  an overlay copies files up with their owners and modes
 * SYS_NICE, IPC_LOCK  lvm locks its memory and raises its priority while devices are suspended
 * SYS_RESOURCE  growing a mounted ext4, as volume-expand and resize2fs do; the limits of a daemon that is upgraded
 * SETUID/SETGID create files as the container's root (setfsuid); become root in its user namespace ("userns", "remap")
 */
static const struct privilege_row privilege_table[] = {
        { "mount-bind", { CAPABILITIES_INJECT, -1 }, { GROUP_INJECT, GROUP_REMAP_START } },
        { "mount-block",
          { CAPABILITIES_INJECT, CAP_MKNOD, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_GUARD, GROUP_REMAP_START } },
        { "mount-image",
          { CAPABILITIES_INJECT, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_IMAGE, GROUP_GUARD, GROUP_REMAP_START } },
        { "mount-container-to-container",
          { CAPABILITIES_INJECT, CAP_SETFCAP, -1 },
          { GROUP_INJECT, GROUP_MAPPING, GROUP_REMAP_START } },
        { "mount-tmpfs", { CAPABILITIES_INJECT, -1 }, { GROUP_INJECT, GROUP_REMAP_START } },
        { "mount-nfs",
          { CAPABILITIES_INJECT, -1 },
          { GROUP_INJECT, GROUP_REMAP_START, GROUP_NETWORK, "setns/net", "unshare/uts", "sethostname" } },
        { "mount-overlay", { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, -1 }, { GROUP_INJECT, GROUP_REMAP_START } },
        { "mount-volume",
          { CAPABILITIES_INJECT, CAP_CHOWN, CAP_MKNOD, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_DEVICES, GROUP_NAMED, GROUP_REMAP_START, GROUP_SHARE } },
        { "mount-batch",
          { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_DEVICES, GROUP_NAMED, GROUP_IMAGE, GROUP_MAPPING, GROUP_SORT, GROUP_REMAP_START,
            GROUP_SHARE, "setns/net", "unshare/uts", "sethostname" } },
        { "mount-hook",
          { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_DEVICES, GROUP_NAMED, GROUP_IMAGE, GROUP_MAPPING, GROUP_SORT, GROUP_REMAP_START,
            GROUP_SHARE, "setns/net", "unshare/uts", "sethostname" } },
        { "remap-mount",
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_BASE, GROUP_DETACHED, GROUP_NODE_PATH, GROUP_NODE_MOUNT, GROUP_REMAP_START, GROUP_SHARE, "statx",
            "fstat", "kill/kill", "mkdirat", "getxattr" } },
        { "remap-upgrade",
          { CAP_SYS_PTRACE, CAP_SYS_RESOURCE, -1 },
          { GROUP_BASE, GROUP_REMAP_START, "access", "faccessat", "pidfd_open", "pidfd_getfd", "poll",
            "ioctl/namespace", "pread64", "prlimit64", "socketpair", "sendmsg", "readlink", "readlinkat", "mkdirat",
            "fstat" } },
        { "mount-flexgraft", /* mount.flexgraft, which mount(8) runs */
          { CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID, CAP_SETFCAP,
            CAP_CHOWN, -1 },
          { GROUP_NAMED, GROUP_DETACHED, GROUP_SHARE, "fsetxattr" } },
        { "umount-flexgraft", { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, -1 }, { GROUP_NAMED } },
        { "mount-flexgraft-remap", /* as remap-mount */
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_BASE, GROUP_DETACHED, GROUP_NODE_PATH, GROUP_NODE_MOUNT, GROUP_REMAP_START, GROUP_SHARE, "statx",
            "fstat", "kill/kill", "mkdirat", "getxattr" } },
        { "utab", /* the process in which they call libmount, whose calls differ from version to version */
          { -1 },
          { GROUP_TOOLS, "rename", "renameat", "renameat2", "fchown", "fchmod", "mkdir", "mkdirat", "geteuid",
            "symlink", "unlinkat", "epoll_create1", "inotify_init1", "statmount", "listmount" } },
        { "mount-remove",
          { CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID, CAP_NET_ADMIN,
            -1 },
          { GROUP_BASE, GROUP_CONTAINER, GROUP_UNPLACE, GROUP_QUESTION, GROUP_DEVICES, GROUP_USES, GROUP_GUARD,
            GROUP_WISH,
            /* the last mount of a volume detaches it */
            GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg", "pwrite64", "chdir" } },
        { "mount-list",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_BASE, GROUP_CONTAINER, GROUP_QUESTION, GROUP_SORT } },
        { "init", { -1 }, { GROUP_BASE } },
        { "parser", /* reads what others wrote, for a program that has all privileges (process/sealed_child.c) */
          { -1 },
          { "brk", "mmap", "munmap", "mremap", "getrandom", "exit", "exit_group", "rt_sigreturn" } },
        { "getvolumename", { -1 }, { GROUP_BASE, GROUP_LOG } },
        { "attach",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, -1 },
          { GROUP_VOLUME, GROUP_USES, GROUP_GUARD, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg",
            "fgetxattr" } },
        { "waitforattach",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, -1 },
          { GROUP_VOLUME, GROUP_USES, GROUP_GUARD, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg",
            "fgetxattr" } },
        { "isattached", { CAP_SYS_ADMIN, -1 }, { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE } },
        { "detach",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, -1 },
          { GROUP_VOLUME, GROUP_USES, GROUP_GUARD, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg",
            "pwrite64", "umount2", "fchdir", "chdir" } },
        { "mountdevice",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, -1 },
          { GROUP_VOLUME, GROUP_USES, GROUP_GUARD, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_NODE_MOUNT,
            GROUP_ORDER, "recvmsg", "pwrite64", "fgetxattr", "fsetxattr", "fremovexattr" } },
        { "unmountdevice",
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_NODE_MOUNT, GROUP_QUESTION } },
        { "mount",
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, -1 },
          { GROUP_NODE_MOUNT, GROUP_USES, GROUP_GUARD, GROUP_NETWORK, GROUP_PROVISION, GROUP_REMAP_START, "pwrite64",
            "getxattr", "fgetxattr", "fsetxattr", "fremovexattr" } },
        { "unmount",
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, -1 },
          { GROUP_NODE_MOUNT, GROUP_USES, GROUP_GUARD, GROUP_PROVISION } },
        { "expandvolume",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_VOLUME, GROUP_DIRECTORY, GROUP_USES, GROUP_GUARD, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE,
            GROUP_ORDER, "recvmsg" } },
        { "expandfs",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_VOLUME, GROUP_DIRECTORY, GROUP_USES, GROUP_GUARD, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE,
            GROUP_ORDER, "recvmsg" } },
        { "volume-expand",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_USES, GROUP_GUARD, GROUP_PROVISION, GROUP_DIRECTORY, "fsopen", "fsconfig", "fsmount",
            "ioctl/grow" } },
        { "volume-snapshot",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_USES, GROUP_GUARD, GROUP_PROVISION, GROUP_COPY, "fsopen", "fsconfig", "fsmount", "ioctl/freeze",
            "socketpair", "sendmsg", "close_range", "setsid", "rt_sigaction", "fgetxattr", "fsetxattr" } },
        { "volume-reconcile",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, CAP_FOWNER, -1 },
          { GROUP_NODE_MOUNT, GROUP_USES, GROUP_GUARD, GROUP_PROVISION, GROUP_DIRECTORY, "ioctl/freeze", "fsetxattr",
            "pwrite64" /* ends a restore */, "socket/stream" /* whether kubelet answers */,
            /* exchanges a mount that a pod cannot id-map */
            GROUP_REMAP_START, "socketpair", "sendmsg", "getxattr" } },
        { "volume-create",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, -1 },
          { GROUP_USES, GROUP_GUARD, GROUP_PROVISION, GROUP_DIRECTORY, GROUP_SHARE, GROUP_COPY, "fgetxattr",
            "fsetxattr", "fremovexattr" } },
        { "volume-delete",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_FOWNER, -1 },
          { GROUP_USES, GROUP_GUARD, GROUP_PROVISION, GROUP_DIRECTORY, GROUP_SHARE, "fsetxattr", "fremovexattr" } },
        { "volume-list", { CAP_SYS_PTRACE, -1 }, { GROUP_USES, GROUP_PROVISION } },
        { "volume-capacity", { -1 }, { GROUP_PROVISION } },
        { "host-check", /* tries mounts in private namespaces; the exec helpers of pools and of "versions" */
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SETUID, CAP_SETGID, CAP_NET_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_POOL, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, GROUP_DETACHED, GROUP_QUESTION,
            GROUP_MAPPING, "pidfd_open", "move_mount", "fchdir", "ioctl/namespace", "ioctl/configure", "bpf/look" } },
        /* it reads what clients send; the launcher (csi/launcher.c) starts the programs, before there is a filter */
        { "csi-driver", { -1 }, { "read",        "write",        "close",          "recvfrom",  "sendto",
                                  "sendmsg",     "accept4",      "getsockopt",     "epoll_ctl", "epoll_wait",
                                  "epoll_pwait", "ppoll",        "memfd_create",   "lseek",     "fstat",
                                  "newfstatat",  "unlinkat",     "renameat",       "brk",       "mmap",
                                  "munmap",      "mremap",       "clock_gettime",  "getrandom", "exit",
                                  "exit_group",  "rt_sigreturn", "restart_syscall" } },
        { "remap-daemon",
          { CAPABILITIES_REMAP, -1 },
          { GROUP_REMAP, "capget", "capset", "ioctl/namespace", "sendmsg", "recvmsg" } },
        /* starts remap-daemon, which inherits this filter and then drops more */
        { "remap-runner",
          { CAPABILITIES_REMAP, CAP_SETPCAP, -1 },
          { GROUP_REMAP, "ioctl/namespace", "execve",      "arch_prctl", "set_tid_address", "seccomp",   "capget",
            "capset",    "prctl/any",       "access",      "faccessat",  "faccessat2",      "recvmsg",   "sendto",
            "pipe2",     "setsid",          "dup2",        "mmap/any",   "mprotect/any",    "clone/any", "chdir",
            "sendmsg",   "socketpair",      "memfd_create" } },
        /* inherited by the external programs */
        { "tools", { CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH, -1 }, { GROUP_TOOLS } },
        { "versions", /* runtimes that say which they are (host/programs) */
          { -1 },
          { GROUP_TOOLS, "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "memfd_create" } },
        { "pmem", { CAP_DAC_OVERRIDE, CAP_SYS_ADMIN, -1 }, { GROUP_TOOLS, "memfd_create", "sendmsg" } },
        { "lvm",
          { CAP_SYS_ADMIN, CAP_MKNOD, CAP_CHOWN, CAP_FOWNER, CAP_DAC_OVERRIDE, CAP_SYS_NICE, CAP_IPC_LOCK, -1 },
          { GROUP_TOOLS,    "io_setup",   "io_submit",  "io_getevents", "io_destroy",  "mknodat",    "mknod",
            "chown",        "lchown",     "fchown",     "fchownat",     "chmod",       "fchmod",     "fchmodat",
            "symlink",      "symlinkat",  "mkdir",      "mkdirat",      "rename",      "renameat",   "link",
            "linkat",       "unlinkat",   "rmdir",      "setpriority",  "getpriority", "mlock",      "munlock",
            "mlockall",     "munlockall", "semget",     "semctl",       "semop",       "semtimedop", "socket/local",
            "connect",      "getsockopt", "setsockopt", "getsockname",  "select",      "pselect6",   "utimensat",
            "memfd_create", "sendmsg" } },
};

#endif
