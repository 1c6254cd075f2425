/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor - the smallest programs a helper can be measured by, linked as the helpers are.
 *
 *   floor steps bind|block PID SOURCE TARGET   the kernel's steps of an injection and nothing else: no record, no
 *                                              check, no worker, no answer
 *   floor calls bind|block PID SOURCE TARGET   the system calls that the helper makes for such a request, in its order,
 *                                              without any work of its own between them
 *
 * Neither drops privileges or loads a filter; neither parses or undoes anything. TARGET exists in the container; the
 * record's directory is $FLOOR_STATE. For block: ext4.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *kind, *pid_text, *source, *target_path, *state_dir;
static pid_t pid;
static char bytes[4096];

static int open_beneath(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
        struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

        return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

static void look(int fd)
{
        struct statx stx;

        statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
              STATX_TYPE | STATX_INO | STATX_MNT_ID | 0x4000, &stx);
}

static void read_file(int dirfd, const char *path)
{
        int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

        while (read(fd, bytes, sizeof bytes) > 0)
                ;
        close(fd);
}

static int make_mount(int source_fd)
{
        int context;

        if (strcmp(kind, "bind") == 0)
                return open_tree(source_fd, source_fd == AT_FDCWD ? source : "",
                                 AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        context = fsopen("ext4", FSOPEN_CLOEXEC);
        if (fsconfig(context, FSCONFIG_SET_STRING, "source", source, 0) < 0 ||
            fsconfig(context, FSCONFIG_SET_STRING, "errors", "remount-ro", 0) < 0 ||
            fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -1;
        return fsmount(context, FSMOUNT_CLOEXEC, 0);
}

static struct mount_attr attributes(int user_ns)
{
        return (struct mount_attr){ .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                                    .propagation = MS_PRIVATE,
                                    .userns_fd = (uint64_t)user_ns };
}

static int place(int mount_fd, int target, int mnt_ns)
{
        return setns(mnt_ns, CLONE_NEWNS) < 0 || move_mount(mount_fd, "", target, "",
                                                            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
                       ? 1
                       : 0;
}

static int steps(void)
{
        char path[64];
        struct mount_attr attr;
        int pidfd = pidfd_open(pid, 0);
        int root, mnt_ns, user_ns, mount_fd, target;

        root = open(strcat(strcpy(path, "/proc/"), strcat(strcpy(bytes, pid_text), "/root")), O_PATH | O_CLOEXEC);
        mnt_ns = open(strcat(strcpy(path, "/proc/"), strcat(strcpy(bytes, pid_text), "/ns/mnt")), O_RDONLY | O_CLOEXEC);
        user_ns =
                open(strcat(strcpy(path, "/proc/"), strcat(strcpy(bytes, pid_text), "/ns/user")), O_RDONLY | O_CLOEXEC);
        mount_fd = make_mount(AT_FDCWD);
        attr = attributes(user_ns);
        if (pidfd < 0 || mount_fd < 0 || mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return 1;
        target = open_beneath(root, target_path + 1, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        return target < 0 ? 1 : place(mount_fd, target, mnt_ns);
}

/* Lock the attributes of a disk's mount, as the helper does. */
static int lock_mount(int mount_fd, int user_ns)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {};
        struct iovec part = { .iov_base = bytes, .iov_len = 1 };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
        };
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        int sockets[2];
        int locked = -1;
        int pidfd = -1;
        siginfo_t end;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return -1;
        if (syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL) == 0) {
                int context;
                int stage;

                close_range(100, ~0U, 0);
                unshare(CLONE_NEWNS);
                mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private);
                context = fsopen("tmpfs", FSOPEN_CLOEXEC);
                fsconfig(context, FSCONFIG_SET_STRING, "size", "64k", 0);
                fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0);
                fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
                stage = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
                move_mount(stage, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
                fchdir(stage);
                mkdirat(AT_FDCWD, "m", 0755);
                move_mount(mount_fd, "", AT_FDCWD, "m", MOVE_MOUNT_F_EMPTY_PATH);
                prctl(PR_SET_DUMPABLE, 0);
                setns(user_ns, CLONE_NEWUSER);
                syscall(SYS_setresgid, 0, 0, 0);
                syscall(SYS_setresuid, 0, 0, 0);
                unshare(CLONE_NEWNS);
                locked = open_tree(AT_FDCWD, "m", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
                header->cmsg_level = SOL_SOCKET;
                header->cmsg_type = SCM_RIGHTS;
                header->cmsg_len = CMSG_LEN(sizeof locked);
                memcpy(CMSG_DATA(header), &locked, sizeof locked);
                sendmsg(sockets[1], &message, MSG_NOSIGNAL);
                syscall(SYS_exit_group, 0);
        }
        if (recvmsg(sockets[0], &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == NULL)
                return -1;
        memcpy(&locked, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof locked);
        waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED);
        close(mount_fd);
        return locked;
}

static int worker(void *unused)
{
        char path[64];
        struct mount_attr attr;
        struct mount_attr again = { .propagation = MS_PRIVATE };
        struct stat st;
        struct statfs fs;
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        struct pollfd alive = { .events = POLLIN };
        int proc, root, mnt_ns, user_ns, dir, mounts, lock_fd, target, source_fd, mount_fd, record;

        (void)unused;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)getppid();
        proc = open_beneath(AT_FDCWD, strcat(strcpy(path, "/proc/"), pid_text), O_PATH | O_DIRECTORY,
                            RESOLVE_NO_MAGICLINKS);
        read_file(proc, "stat");
        alive.fd = pidfd_open(pid, 0);
        root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        mnt_ns = openat(proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
        user_ns = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
        fstat(user_ns, &st);
        stat("/proc/self/ns/user", &st);
        fstat(mnt_ns, &st);
        stat("/proc/self/ns/mnt", &st);
        ioctl(mnt_ns, _IOR(0xb7, 0x5, uint64_t), &(uint64_t){ 0 });
        ppoll(&alive, 1, &(struct timespec){}, NULL);
        read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
        (void)open("/etc/flexgraft/config.json", O_RDONLY | O_CLOEXEC);
        dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fstat(dir, &st);
        mounts = openat(dir, "mounts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fstat(mounts, &st);
        close(dir);
        lock_fd = openat(mounts, ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        fcntl(lock_fd, F_OFD_SETLKW, &lock);
        if (strcmp(kind, "bind") == 0) {
                source_fd = open_beneath(AT_FDCWD, source, O_PATH, RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
                fstat(source_fd, &st);
        } else {
                source_fd = open(source, O_RDONLY | O_CLOEXEC);
                fstat(source_fd, &st);
                ioctl(source_fd, BLKROGET, &(int){ 0 });
                close(source_fd);
        }
        (void)openat(mounts, "floor.json", O_RDONLY | O_CLOEXEC);
        target = open_beneath(root, target_path + 1, O_PATH,
                              RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
        fstatfs(target, &fs);
        look(target);
        mount_fd = make_mount(source_fd);
        attr = attributes(user_ns);
        if (mount_fd < 0 || mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return 1;
        if (strcmp(kind, "block") == 0)
                mount_fd = lock_mount(mount_fd, user_ns);
        look(mount_fd);
        fstatfs(mount_fd, &fs);
        look(mount_fd);
        record = openat(mounts, ".floor.json.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (write(record, bytes, 440) != 440)
                return 1;
        close(record);
        renameat(mounts, ".floor.json.tmp", mounts, "floor.json");
        ppoll(&alive, 1, &(struct timespec){}, NULL);
        if (place(mount_fd, target, mnt_ns) != 0 ||
            mount_setattr(mount_fd, "", AT_EMPTY_PATH, &again, sizeof again) < 0)
                return 1;
        close(target);
        ppoll(&alive, 1, &(struct timespec){}, NULL);
        target = open_beneath(root, target_path + 1, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        look(target);
        fstatfs(target, &fs);
        close(target);
        return 0;
}

static int calls(void)
{
        char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        struct timespec timeout = { .tv_sec = 30 };
        struct pollfd end = { .events = POLLIN };
        cpu_set_t cpu;
        siginfo_t info;
        uint32_t seed;

        for (int fd = 0; fd < 3; fd++)
                fcntl(fd, F_GETFD);
        signal(SIGPIPE, SIG_IGN);
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0 || stack == MAP_FAILED)
                return 1;
        CPU_ZERO(&cpu);
        CPU_SET(sched_getcpu(), &cpu);
        sched_setaffinity(0, sizeof cpu, &cpu);
        (void)getpid();
        clone(worker, stack + 65536, CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD, NULL, &end.fd);
        ppoll(&end, 1, &timeout, NULL);
        if (waitid(P_PIDFD, (id_t)end.fd, &info, WEXITED) < 0 || info.si_status != 0)
                return 1;
        return write(STDOUT_FILENO, bytes, 245) == 245 ? 0 : 1;
}

int main(int argc, char **argv)
{
        if (argc != 6)
                return 2;
        kind = argv[2];
        pid_text = argv[3];
        pid = (pid_t)strtol(pid_text, NULL, 10);
        source = argv[4];
        target_path = argv[5];
        state_dir = getenv("FLOOR_STATE");
        return strcmp(argv[1], "steps") == 0 ? steps() : calls();
}
