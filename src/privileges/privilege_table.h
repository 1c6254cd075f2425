/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege_table.h - the capabilities each program keeps and the system calls it may make. Nothing else says so.
 *
 * "name/way" is a call that is allowed in that way only, by the rules of export-privileges.c.
 *
 * A system call that is not in a program's groups kills it (SECCOMP_RET_KILL_PROCESS). Calls that could do more than
 * the program needs are allowed by their arguments alone: see the rules in export-privileges.c.
 */
#ifndef FLEXGRAFT_PRIVILEGE_TABLE_H
#define FLEXGRAFT_PRIVILEGE_TABLE_H

#include <linux/capability.h>
#include <stddef.h>

/* What every program does: memory, files of the node, a supervised worker, an answer. */
#define GROUP_BASE                                                                                                     \
        "read", "write", "close", "openat", "newfstatat", "fcntl", "unlinkat", "renameat", "fchmod", "lseek", "brk",   \
                "mmap", "munmap", "mremap", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "ppoll", "clone", \
                "waitid", "pidfd_send_signal", "sched_setaffinity", "getcpu", "getrandom", "clock_gettime", "geteuid", \
                "getpid", "getppid", "prctl", "getdents64"

/* A container: pinned, looked into from outside, its paths resolved beneath its root. */
#define GROUP_CONTAINER "pidfd_open", "openat2", "statx", "fstatfs", "ioctl/namespace", "readlink", "readlinkat"

/* Make a mount point in it, or remove one, as its root. */
#define GROUP_TARGET "mkdirat", "mknodat", "setfsuid", "setfsgid"

/* Inside its mount namespace: put a mount there, or take one away. */
#define GROUP_PLACE "setns/mnt", "move_mount"
#define GROUP_UNPLACE "setns/mnt", "umount2", "fchdir", "setfsuid", "setfsgid"
#define GROUP_INJECT                                                                                                   \
        GROUP_BASE, GROUP_CONTAINER, GROUP_TARGET, GROUP_PLACE, GROUP_UNPLACE, GROUP_DETACHED, GROUP_QUESTION

/* A mount nobody sees yet: clone one, set its attributes; lock them in a private namespace of our own. */
#define GROUP_DETACHED                                                                                                 \
        "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "unshare", "setns/user", "socketpair",          \
                "sendmsg", "recvmsg", "setresuid", "setresgid", "setgroups", "close_range"

/* A mapping of our own (mount/idmap.c), and clones with it. */
#define GROUP_MAPPING "unshare/user", "open_tree_attr"

/* Device programs of control groups: looked at, added to, replaced. */
#define GROUP_DEVICES "bpf", "umask", "fstat"

/* Ask the kernel about one mount. */
#define GROUP_QUESTION "statmount"

/* A list that is put in order: qsort() of the C library asks how much memory there is. */
#define GROUP_SORT "sysinfo"

/* libblkid reads devices. */
#define GROUP_PROBE                                                                                                    \
        "ioctl/device", "access", "faccessat", "faccessat2", "stat", "lstat", "fstat", "pread64", "fadvise64",         \
                "readlink", "uname", "sysinfo", "gettimeofday", "time"

/* A line for the system log. */
#define GROUP_LOG "socket/local", "connect", "sendto"

/* The driver's records, and directories that it makes. */
#define GROUP_VOLUME                                                                                                   \
        GROUP_BASE, GROUP_LOG, "fstat", "mkdirat", "fsync", "faccessat", "statx", "clock_nanosleep", "umask", "fstatfs"

/* An image file as a block device. */
#define GROUP_LOOP "ioctl/loop", "ftruncate", "fallocate", "access", "sync_file_range"

/* A path of the node's. */
#define GROUP_NODE_PATH "openat2", "fstatfs", "readlinkat"

/* A mount on the node, and its end. */
#define GROUP_NODE_MOUNT                                                                                               \
        "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "umount2", "fchdir",    \
                "chdir"

/* Orders for the runner of commands (block/fs_tools.c). */
#define GROUP_ORDER "sendto", "recvfrom", "kill/kill"

/* Volumes made, erased, measured (src/volume-tools/). */
#define GROUP_PROVISION GROUP_VOLUME, GROUP_LOOP, GROUP_NODE_PATH, GROUP_PROBE, GROUP_ORDER, "recvmsg", "ioctl/erase"

/* What the runner does, and what mkfs, fsck and their like do; refused, not killed: other versions ask for other
 * things. */
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

/* Ask for a translator, and make its filesystem (inject/remap.c). */
#define GROUP_TRANSLATOR "recvfrom", "fstat", "kill/kill"

/* Find a server: names, and a connection (mount/nfs_server.c). */
#define GROUP_NETWORK                                                                                                  \
        "socket/network", "setgroups", "setresuid", "setresgid", "ioctl/interface", "writev", "connect", "getsockopt", \
                "setsockopt", "getsockname", "getpeername", "sendto", "recvfrom", "poll", "fstat", "uname",            \
                "gettimeofday", "capget", "capset", "socketpair", "sendmsg", "recvmsg", "close_range", "openat2"

/* What the translator does for the processes of a container, and what watches over it (src/translator/). */
#define GROUP_TRANSLATE                                                                                                \
        GROUP_BASE, "writev", "pwritev2", "statx", "mknodat", "mkdirat", "symlinkat", "linkat", "renameat2",           \
                "readlinkat", "readlink", "fchmodat", "fchownat", "utimensat", "truncate", "ftruncate", "fstat",       \
                "statfs", "fstatfs", "setxattr", "getxattr", "listxattr", "removexattr", "pread64", "pwrite64", "dup", \
                "fsync", "fdatasync", "fallocate", "copy_file_range", "flock", "setfsuid", "setfsgid", "setgroups",    \
                "umask", "unshare/fs", "ioctl/backing", "name_to_handle_at", "open_by_handle_at", "futex", "mprotect", \
                "madvise", "rseq", "set_robust_list", "clone3/absent", "sched_getaffinity", "rt_sigprocmask",          \
                "rt_sigaction", "gettid", "prlimit64", "getrlimit", "setrlimit", "pidfd_open", "poll", "sysinfo",      \
                "uname", "sched_yield", "clock_nanosleep", "nanosleep", "prctl/name", "close_range", "getuid", "dup2"

/* What putting any mount into a container takes. */
#define CAPABILITIES_INJECT                                                                                            \
        CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID, CAP_KILL

/* What whoever made an overlay must be allowed, for as long as it is used: the kernel acts on its layers as that. */
#define CAPABILITIES_OVERLAY CAP_CHOWN, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP, CAP_MKNOD

/* To act on files as anybody, the node's root included; and (SYS_ADMIN) to let the kernel pass reads and writes
 * through. */
#define CAPABILITIES_TRANSLATE                                                                                         \
        CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_SETUID, CAP_SETGID, CAP_SYS_ADMIN

struct privilege_row {
        const char *program;
        int capabilities[16];          /* ended by -1 */
        const char *system_calls[160]; /* ended by NULL */
};

/*
 * SYS_ADMIN     setns(mnt), move_mount, open_tree, mount_setattr, fsopen, umount2; statmount of another namespace
 * SYS_CHROOT    setns(mnt)
 * SYS_PTRACE    /proc/PID/root and /proc/PID/ns of a process in another user namespace
 * DAC_OVERRIDE  make a mount point in directories that belong to the container's users
 * DAC_READ_SEARCH  look into such directories, and into those of pods and of a volume's source
 * KILL          end a child that has become the container's root and that the container has stopped
 * MKNOD         a device node for a raw device; whiteouts of an overlay
 * NET_ADMIN     ask which device programs a control group has (before Linux 6.7 the kernel wants this for it)
 * SETFCAP       a mapping that shows something as the node's own root (Linux 5.12); copy file capabilities up
 * CHOWN, FOWNER, FSETID  an overlay copies files up, and keeps their owners and modes
 * SYS_NICE, IPC_LOCK  lvm keeps itself in memory, and goes first, while devices are suspended
 * SYS_RESOURCE  resize2fs grows a mounted ext4
 * SETUID/SETGID make it as the container's root (setfsuid); become root in its user namespace ("locked", "userns")
 */
static const struct privilege_row privilege_table[] = {
        { "mount-bind", { CAPABILITIES_INJECT, -1 }, { GROUP_INJECT, GROUP_TRANSLATOR } },
        { "mount-block",
          { CAPABILITIES_INJECT, CAP_MKNOD, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_TRANSLATOR } },
        { "mount-container-to-container", { CAPABILITIES_INJECT, CAP_SETFCAP, -1 }, { GROUP_INJECT, GROUP_MAPPING } },
        { "mount-tmpfs", { CAPABILITIES_INJECT, -1 }, { GROUP_INJECT } },
        { "mount-nfs",
          { CAPABILITIES_INJECT, -1 },
          { GROUP_INJECT, GROUP_TRANSLATOR, GROUP_NETWORK, "setns/net", "unshare/uts", "sethostname" } },
        { "mount-overlay", { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, -1 }, { GROUP_INJECT } },
        { "mount-batch",
          { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_MAPPING, GROUP_SORT, GROUP_TRANSLATOR, GROUP_NETWORK,
            "setns/net", "unshare/uts", "sethostname" } },
        { "mount-hook",
          { CAPABILITIES_INJECT, CAPABILITIES_OVERLAY, CAP_NET_ADMIN, -1 },
          { GROUP_INJECT, GROUP_PROBE, GROUP_DEVICES, GROUP_MAPPING, GROUP_SORT, GROUP_TRANSLATOR, GROUP_NETWORK,
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
        { "remap-daemon", { CAPABILITIES_TRANSLATE, -1 }, { GROUP_TRANSLATE } },
        { "remap-runner",
          { CAPABILITIES_TRANSLATE, CAP_SETPCAP, -1 },
          { GROUP_TRANSLATE, "execve", "arch_prctl", "set_tid_address", "seccomp",   "capget", "capset",
            "prctl/any",     "access", "faccessat",  "faccessat2",      "recvmsg",   "sendto", "pipe2",
            "setsid",        "dup2",   "mmap/any",   "mprotect/any",    "clone/any", "chdir" } }, /* inherited by
                                                                                                     remap-daemon, which
                                                                                                     gives away more */
        { "tools",
          { CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH, -1 },
          { GROUP_TOOLS } }, /* inherited by what is run */
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
