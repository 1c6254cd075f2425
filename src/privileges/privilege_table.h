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
        "read", "write", "close", "openat", "newfstatat", "fcntl", "unlinkat", "renameat", "fchmod", "lseek", "brk",   \
                "mmap", "munmap", "mremap", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "ppoll", "clone", \
                "waitid", "pidfd_send_signal", "sched_setaffinity", "getcpu", "getrandom", "clock_gettime", "geteuid", \
                "getpid", "getppid", "prctl", "getdents64"

/* Pin a container, read its /proc, resolve paths beneath its root. */
#define GROUP_CONTAINER "pidfd_open", "openat2", "statx", "fstatfs", "ioctl/namespace", "readlink", "readlinkat"

/* Create or remove a mount point in a container, with the ids of its root. */
#define GROUP_TARGET "mkdirat", "mknodat", "setfsuid", "setfsgid"

/* Place a mount in the container's mount namespace, or unmount one. */
#define GROUP_PLACE "setns/mnt", "move_mount"
#define GROUP_UNPLACE "setns/mnt", "umount2", "fchdir", "setfsuid", "setfsgid"
#define GROUP_INJECT                                                                                                   \
        GROUP_BASE, GROUP_CONTAINER, GROUP_TARGET, GROUP_PLACE, GROUP_UNPLACE, GROUP_DETACHED, GROUP_QUESTION

/* Create a detached mount, set its attributes, lock them in a private mount namespace. */
#define GROUP_DETACHED                                                                                                 \
        "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "unshare", "setns/user", "socketpair",          \
                "sendmsg", "recvmsg", "setresuid", "setresgid", "setgroups", "close_range"

/* Create an id mapping (mount/idmap), and id-mapped clones. */
#define GROUP_MAPPING "unshare/user", "open_tree_attr"

/* Read and replace device programs of control groups (container/device_bpf). */
#define GROUP_DEVICES "bpf", "umask", "fstat"

/* Read the properties of a mount. */
#define GROUP_QUESTION "statmount"

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
        GROUP_BASE, GROUP_LOG, "fstat", "mkdirat", "fsync", "faccessat", "statx", "clock_nanosleep", "umask", "fstatfs"

/* Loop devices and image files. */
#define GROUP_LOOP "ioctl/loop", "ftruncate", "fallocate", "access", "sync_file_range"

/* Resolve a path of the node (base/node_path). */
#define GROUP_NODE_PATH "openat2", "fstatfs", "readlinkat"

/* Mount and unmount on the node. */
#define GROUP_NODE_MOUNT                                                                                               \
        "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "umount2", "fchdir",    \
                "chdir"

/* Give orders to an exec helper (process/exec_helper). */
#define GROUP_ORDER "sendto", "recvfrom", "kill/kill"

/* Create, erase and measure volumes (src/volume-tools). */
#define GROUP_PROVISION GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg", "ioctl/erase"

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

/* Have remap-daemon started, and create its FUSE filesystem (inject/remap). */
#define GROUP_REMAP_START "recvfrom", "fstat", "kill/kill"

/* Resolve a server's name and test a connection (mount/nfs_server). */
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
                "umask", "unshare/fs", "ioctl/backing", "name_to_handle_at", "open_by_handle_at", "futex", "mprotect", \
                "madvise", "rseq", "set_robust_list", "clone3/absent", "sched_getaffinity", "rt_sigprocmask",          \
                "rt_sigaction", "gettid", "prlimit64", "getrlimit", "setrlimit", "pidfd_open", "poll", "sysinfo",      \
                "uname", "sched_yield", "clock_nanosleep", "nanosleep", "prctl/name", "close_range", "getuid", "dup2"

/* To place any mount in a container. */
#define CAPABILITIES_INJECT                                                                                            \
        CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID, CAP_KILL

/* The kernel accesses the layers of an overlay with the credentials of the process that mounted it. */
#define CAPABILITIES_OVERLAY CAP_CHOWN, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP, CAP_MKNOD

/* To access files as any user, including the node's root; CAP_SYS_ADMIN: to register files for FUSE passthrough. */
#define CAPABILITIES_REMAP                                                                                             \
        CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_SETUID, CAP_SETGID, CAP_SYS_ADMIN

struct privilege_row {
        const char *program;
        int capabilities[16];          /* -1 ends the list */
        const char *system_calls[160]; /* NULL ends the list */
};

/*
 * SYS_ADMIN     setns(mnt), move_mount, open_tree, mount_setattr, fsopen, umount2; statmount of another namespace
 * SYS_CHROOT    setns(mnt)
 * SYS_PTRACE    /proc/PID/root and /proc/PID/ns of a process in another user namespace
 * DAC_OVERRIDE  create a mount point in directories of the container's users
 * DAC_READ_SEARCH  read such directories, and those of pods and of a volume's source
 * KILL          kill a child that became the container's root and that the container has stopped
 * MKNOD         a device node for a raw device; whiteouts of an overlay
 * NET_ADMIN     list the device programs of a control group (required before Linux 6.7)
 * SETFCAP       a mapping to the node's root (Linux 5.12); copy file capabilities up in an overlay
 * CHOWN, FOWNER, FSETID  an overlay copies files up with their owners and modes
 * SYS_NICE, IPC_LOCK  lvm locks its memory and raises its priority while devices are suspended
 * SYS_RESOURCE  resize2fs grows a mounted ext4
 * SETUID/SETGID create files as the container's root (setfsuid); become root in its user namespace ("locked", "userns")
 */
static const struct privilege_row privilege_table[] = {
        { "mount-bind", { CAPABILITIES_INJECT, -1 }, { GROUP_INJECT, GROUP_REMAP_START } },
        { "mount-block",
          { CAPABILITIES_INJECT, CAP_MKNOD, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_REMAP_START } },
        { "mount-container-to-container", { CAPABILITIES_INJECT, CAP_SETFCAP, -1 }, { GROUP_INJECT, GROUP_MAPPING } },
        { "mount-tmpfs", { CAPABILITIES_INJECT, -1 }, { GROUP_INJECT } },
        { "mount-nfs",
          { CAPABILITIES_INJECT, -1 },
          { GROUP_INJECT, GROUP_REMAP_START, GROUP_NETWORK, "setns/net", "unshare/uts", "sethostname" } },
        { "mount-overlay", { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, -1 }, { GROUP_INJECT } },
        { "mount-batch",
          { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_MAPPING, GROUP_SORT, GROUP_REMAP_START, GROUP_NETWORK,
            "setns/net", "unshare/uts", "sethostname" } },
        { "mount-hook",
          { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_MAPPING, GROUP_SORT, GROUP_REMAP_START, GROUP_NETWORK,
            "setns/net", "unshare/uts", "sethostname" } },
        { "mount-remove",
          { CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID, CAP_NET_ADMIN,
            -1 },
          { GROUP_BASE, GROUP_CONTAINER, GROUP_UNPLACE, GROUP_QUESTION, GROUP_DEVICES } },
        { "mount-list",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_BASE, GROUP_CONTAINER, GROUP_QUESTION, GROUP_SORT } },
        { "init", { -1 }, { GROUP_BASE } },
        { "parser", /* reads what others wrote, for a program that has all privileges (process/unprivileged.c) */
          { -1 },
          { "brk", "mmap", "munmap", "mremap", "getrandom", "exit", "exit_group", "rt_sigreturn" } },
        { "getvolumename", { -1 }, { GROUP_BASE, GROUP_LOG, "umask" } },
        { "attach",
          { CAP_SYS_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg" } },
        { "waitforattach",
          { CAP_SYS_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg" } },
        { "isattached", { CAP_SYS_ADMIN, -1 }, { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE } },
        { "detach",
          { CAP_SYS_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg", "pwrite64" } },
        { "mountdevice",
          { CAP_SYS_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_NODE_MOUNT, GROUP_ORDER, "recvmsg",
            "pwrite64" } },
        { "unmountdevice",
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_NODE_MOUNT } },
        { "mount",
          { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_NODE_MOUNT, GROUP_NETWORK, GROUP_PROVISION, "pwrite64" } },
        { "unmount", { CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, -1 }, { GROUP_NODE_MOUNT, GROUP_PROVISION } },
        { "expandvolume",
          { CAP_SYS_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg" } },
        { "expandfs",
          { CAP_SYS_ADMIN, -1 },
          { GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg" } },
        { "volume-reconcile",
          { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_NODE_MOUNT, GROUP_CONTAINER, GROUP_QUESTION, GROUP_PROVISION } },
        { "volume-create", { -1 }, { GROUP_PROVISION } },
        { "volume-delete", { -1 }, { GROUP_PROVISION } },
        { "volume-list", { -1 }, { GROUP_PROVISION } },
        { "volume-capacity", { -1 }, { GROUP_PROVISION } },
        { "remap-daemon", { CAPABILITIES_REMAP, -1 }, { GROUP_REMAP } },
        /* starts remap-daemon, which inherits this filter and then drops more */
        { "remap-runner",
          { CAPABILITIES_REMAP, CAP_SETPCAP, -1 },
          { GROUP_REMAP, "execve", "arch_prctl", "set_tid_address", "seccomp",   "capget", "capset",
            "prctl/any", "access", "faccessat",  "faccessat2",      "recvmsg",   "sendto", "pipe2",
            "setsid",    "dup2",   "mmap/any",   "mprotect/any",    "clone/any", "chdir" } },
        /* inherited by the external programs */
        { "tools", { CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH, -1 }, { GROUP_TOOLS } },
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
