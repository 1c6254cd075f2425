/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor - the smallest programs a helper can be measured by, linked as the helpers are.
 *
 *   floor steps KIND PID SOURCE TARGET         the kernel's steps of an injection and nothing else: no record, no
 *                                              check, no lock of attributes, no worker, no answer
 *   floor locked block PID SOURCE TARGET       the same, with the lock of nosuid and nodev that a disk's mount gets
 *   floor calls bind|block PID SOURCE TARGET   the system calls that the helper makes for such a request, in its order,
 *                                              without any work of its own between them
 *
 * KIND is bind, block, container or overlay. Neither drops privileges or loads a filter; neither parses or undoes
 * anything. TARGET exists in the container; the record's directory is $FLOOR_STATE. For block: ext4; for container:
 * SOURCE is PID/PATH, and both containers have one range of ids; for overlay: SOURCE has the directories lower, upper
 * and work.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

/* As the helper does before it mounts a filesystem: whether it is one for a device, and a journal is on another. */
static void look_at_superblock(void)
{
        int fd;

        read_file(AT_FDCWD, "/proc/filesystems");
        fd = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (pread(fd, bytes, 512, 1024) == 512)
                close(fd);
}

static int make_mount(int source_fd, bool look_first)
{
        int context;

        if (strcmp(kind, "bind") == 0)
                return open_tree(source_fd, source_fd == AT_FDCWD ? source : "",
                                 AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        context = fsopen("ext4", FSOPEN_CLOEXEC);
        if (look_first)
                look_at_superblock();
        if (fsconfig(context, FSCONFIG_SET_STRING, "source", source, 0) < 0 ||
            fsconfig(context, FSCONFIG_SET_STRING, "errors", "remount-ro", 0) < 0 ||
            fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -1;
        return fsmount(context, FSMOUNT_CLOEXEC, 0);
}

static int set_attributes(int mount_fd, uint64_t set, int user_ns)
{
        struct mount_attr attr = { .attr_set = set,
                                   .propagation = MS_PRIVATE,
                                   .userns_fd = set & MOUNT_ATTR_IDMAP ? (uint64_t)user_ns : 0 };

        return mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

static int place(int mount_fd, int target, int mnt_ns)
{
        return setns(mnt_ns, CLONE_NEWNS) < 0 || move_mount(mount_fd, "", target, "",
                                                            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
                       ? 1
                       : 0;
}

static int open_proc(const char *process, const char *name, int flags)
{
        char path[64] = "/proc/";

        return open(strcat(strcat(strcat(path, process), "/"), name), flags | O_CLOEXEC);
}

/* The id on the node of a container's root, and how many ids it has. */
static unsigned long first_id(const char *process, const char *map, unsigned long *ret_count)
{
        int fd = open_proc(process, map, O_RDONLY);
        char *rest = bytes;
        unsigned long id;

        bytes[read(fd, bytes, sizeof bytes - 1)] = '\0';
        close(fd);
        (void)strtoul(rest, &rest, 10);
        id = strtoul(rest, &rest, 10);
        *ret_count = strtoul(rest, NULL, 10);
        return id;
}

static int become_user(void *user_ns)
{
        *(int *)user_ns = unshare(CLONE_NEWUSER) < 0 ? -1 : open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        return 0;
}

/* A user namespace that maps the ids of one container's on the node to those of the other's. */
static int make_mapping(const char *from)
{
        static const char *const maps[] = { "uid_map", "gid_map" };
        static char stack[16384];
        int user_ns = -1;
        char child[16];
        int process =
                clone(become_user, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_VFORK | SIGCHLD, &user_ns);

        snprintf(child, sizeof child, "%d", process);
        for (int i = 0; i < 2; i++) {
                unsigned long count;
                unsigned long theirs = first_id(from, maps[i], &count);
                unsigned long ours = first_id(pid_text, maps[i], &count);
                int length = snprintf(bytes, sizeof bytes, "%lu %lu %lu", theirs, ours, count);
                int fd = open_proc(child, maps[i], O_WRONLY);

                if (write(fd, bytes, (size_t)length) != length)
                        return -1;
                close(fd);
        }
        waitpid(process, NULL, 0);
        return user_ns;
}

/* A directory of another container: it is cloned in that container's mount namespace. */
static int clone_of_container(void)
{
        char from[16] = "";
        const char *path = strchr(source, '/');
        int root, mnt_ns, dir, user_ns;

        memcpy(from, source, (size_t)(path - source));
        user_ns = make_mapping(from);
        root = open_proc(from, "root", O_PATH);
        mnt_ns = open_proc(from, "ns/mnt", O_RDONLY);
        dir = open_beneath(root, path + 1, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        if (setns(mnt_ns, CLONE_NEWNS) < 0)
                return -1;
        dir = open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return set_attributes(dir, MOUNT_ATTR_IDMAP, user_ns) < 0 ? -1 : dir;
}

/* Clones of the layers, attached to a private namespace as Linux before 6.15 needs it, and the overlay's creator. */
static int make_overlay(int user_ns)
{
        static const char *const names[] = { "lowerdir", "upperdir", "workdir" };
        static const char *const below[] = { "", "/upper", "/work" };
        struct mount_attr private = { .propagation = MS_PRIVATE };
        unsigned long count;
        char path[512];
        int layers[2]; /* the lower one; the directory of the upper one */
        int context;

        snprintf(path, sizeof path, "%s/lower", source);
        for (int i = 0; i < 2; i++) {
                layers[i] = open_tree(AT_FDCWD, i == 0 ? path : source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
                if (set_attributes(layers[i], MOUNT_ATTR_IDMAP, user_ns) < 0)
                        return -1;
        }
        if (unshare(CLONE_NEWNS) < 0 || mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0 ||
            move_mount(layers[0], "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
            move_mount(layers[1], "", AT_FDCWD, "/sys", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return -1;
        prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP);
        setfsgid((gid_t)first_id(pid_text, "gid_map", &count));
        setfsuid((uid_t)first_id(pid_text, "uid_map", &count));
        context = fsopen("overlay", FSOPEN_CLOEXEC);
        for (int i = 0; i < 3; i++) {
                snprintf(path, sizeof path, "/proc/self/fd/%d%s", layers[i > 0], below[i]);
                if (fsconfig(context, FSCONFIG_SET_STRING, names[i], path, 0) < 0)
                        return -1;
        }
        return fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -1 : fsmount(context, FSMOUNT_CLOEXEC, 0);
}

static int lock_apart(void *mount)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)getppid();
        if (unshare(CLONE_NEWNS) < 0 || mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0 ||
            move_mount(*(int *)mount, "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH) < 0 || getppid() < 0 ||
            unshare(CLONE_NEWUSER) < 0)
                return 0;
        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)getppid();
        if (unshare(CLONE_NEWNS) == 0)
                *(int *)mount = open_tree(AT_FDCWD, "/dev", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return 0;
}

/* Lock the attributes of a disk's mount, as the helper does. */
static int lock_mount(int mount_fd)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        int locked = mount_fd;
        siginfo_t end;
        int child;

        if (stack == MAP_FAILED || getpid() < 0)
                return -1;
        child = clone(lock_apart, stack + 65536, CLONE_VM | CLONE_FILES | CLONE_VFORK | SIGCHLD, &locked);
        waitid(P_PID, (id_t)child, &end, WEXITED);
        close(mount_fd);
        return locked == mount_fd || mount_setattr(locked, "", AT_EMPTY_PATH, &private, sizeof private) < 0 ? -1
                                                                                                            : locked;
}

static int steps(bool locked)
{
        bool whole = strcmp(kind, "bind") == 0 || strcmp(kind, "block") == 0; /* mapped by the container's namespace */
        int pidfd = pidfd_open(pid, 0);
        int root = open_proc(pid_text, "root", O_PATH);
        int mnt_ns = open_proc(pid_text, "ns/mnt", O_RDONLY);
        int user_ns = strcmp(kind, "container") == 0 ? -1 : open_proc(pid_text, "ns/user", O_RDONLY);
        int target = open_beneath(root, target_path + 1, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        int mount_fd = whole ? make_mount(AT_FDCWD, false) : user_ns < 0 ? clone_of_container() : make_overlay(user_ns);

        if (pidfd < 0 || target < 0 || mount_fd < 0 ||
            set_attributes(mount_fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (whole ? MOUNT_ATTR_IDMAP : 0), user_ns) <
                    0)
                return 1;
        return place(locked ? lock_mount(mount_fd) : mount_fd, target, mnt_ns);
}

/* A directory in another, and whose it is. */
static int open_own(int dirfd, const char *path)
{
        int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat st;

        fstat(fd, &st);
        (void)geteuid();
        return fd;
}

/* Whether the container is in namespaces of its own, and whose the one of its users is. */
static void look_at_namespaces(int mnt_ns, int user_ns)
{
        int parent = ioctl(user_ns, NS_GET_PARENT);
        int self = pidfd_open(getpid(), 0);
        struct stat st;
        uid_t owner;

        ioctl(parent, NS_GET_PARENT);
        close(parent);
        ioctl(user_ns, NS_GET_OWNER_UID, &owner);
        for (unsigned i = 0; i < 2; i++) {
                int fd = ioctl(self, _IO(0xff, i == 0 ? 3 : 5), 0); /* the mount and the pid namespace, Linux 6.11 */

                fstat(fd, &st);
                close(fd);
        }
        close(self);
        fstat(mnt_ns, &st);
        ioctl(mnt_ns, _IOR(0xb7, 0x5, uint64_t), &(uint64_t){ 0 });
}

static int open_source(int mounts)
{
        int fd = open_beneath(AT_FDCWD, source, O_PATH, RESOLVE_NO_SYMLINKS);
        struct stat st;
        char path[64];
        int device;

        fstat(fd, &st);
        if (strcmp(kind, "bind") == 0) {
                look(fd);
                return fd;
        }
        device = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        ioctl(device, BLKROGET, &(int){ 0 });
        close(device);
        close(fd);
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/diskseq", major(st.st_rdev), minor(st.st_rdev));
        read_file(AT_FDCWD, path);
        fstatat(mounts, "floor.wanted", &st, AT_SYMLINK_NOFOLLOW);
        return fd;
}

/* Whether a container has the device itself: a directory of the index. */
static void look_for_users(int dir)
{
        int mounts = open_own(dir, "mounts");
        int uses = open_own(dir, "mounts");
        struct stat st;
        int users;

        (void)openat(dir, "volumes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fstatat(uses, ".complete", &st, AT_SYMLINK_NOFOLLOW);
        users = open_own(uses, "floor.none");
        while (syscall(SYS_getdents64, users, bytes, sizeof bytes) > 0)
                ;
        close(users);
        close(uses);
        close(mounts);
}

/* The record, and by what it is found: names of an empty file. */
static int write_record(int mounts)
{
        const int keys = strcmp(kind, "bind") == 0 ? 4 : 3;
        char name[64];
        int record;

        for (int i = 0; i < keys; i++) {
                snprintf(name, sizeof name, "floor.users/%d.%d", getpid(), i);
                linkat(mounts, ".lock", mounts, name, 0);
        }
        record = openat(mounts, ".floor.json.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (write(record, bytes, 560) != 560)
                return -1;
        close(record);
        renameat(mounts, ".floor.json.tmp", mounts, "floor.json");
        return fstatat(mounts, "floor.wanted", &(struct stat){}, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : -1;
}

static int state_fd;

static int worker(void *unused)
{
        char path[64];
        struct mount_attr again = { .propagation = MS_PRIVATE };
        struct statfs fs;
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        struct pollfd alive = { .events = POLLIN };
        int proc, root, mnt_ns, user_ns, mounts, lock_fd, target, source_fd, mount_fd;

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
        look_at_namespaces(mnt_ns, user_ns);
        ppoll(&alive, 1, &(struct timespec){}, NULL);
        read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
        (void)open("/etc/flexgraft/config.json", O_RDONLY | O_CLOEXEC);
        if (readlink("/proc/self", path, sizeof path) < 0)
                return 1;
        state_fd = open_own(AT_FDCWD, state_dir);
        mounts = open_own(state_fd, "mounts");
        lock_fd = openat(mounts, ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        fcntl(lock_fd, F_OFD_SETLKW, &lock);
        source_fd = open_source(mounts);
        for (int i = 0; i < 2; i++)
                (void)openat(mounts, "floor.none.json", O_RDONLY | O_CLOEXEC);
        target = open_beneath(root, target_path + 1, O_PATH,
                              RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
        fstatfs(target, &fs);
        look(target);
        if (strcmp(kind, "block") == 0)
                look_for_users(state_fd);
        mount_fd = make_mount(source_fd, true);
        if (mount_fd < 0 ||
            set_attributes(mount_fd, MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, user_ns) < 0)
                return 1;
        if (strcmp(kind, "block") == 0)
                mount_fd = lock_mount(mount_fd);
        look(mount_fd);
        fstatfs(mount_fd, &fs);
        look(mount_fd);
        if (write_record(mounts) < 0)
                return 1;
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

/* That the program was called, and how long it took, in the file of which the metrics are made. */
static void count_call(void)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 128 };
        int fd = openat(state_fd, ".call-counts.floor", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (read(fd, bytes, sizeof bytes) < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
            read(fd, bytes, 128) < 0 || lseek(fd, 0, SEEK_SET) < 0 || write(fd, bytes, 128) != 128)
                exit(1);
        close(fd);
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
        if (write(STDOUT_FILENO, bytes, 245) != 245)
                return 1;
        count_call();
        return 0;
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
        if (strcmp(argv[1], "calls") == 0)
                return calls();
        return steps(strcmp(argv[1], "locked") == 0);
}
