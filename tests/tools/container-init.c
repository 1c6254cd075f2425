/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container-init - a plain container: namespaces, a root directory, and a first process that waits.
 *
 *   container-init [--base N | --map 'IN OUT COUNT,...' | --userns-of PID | --no-userns] [--host-pid]
 *                  [--propagation private|slave|shared] [--created FIFO] ROOTFS
 *
 * Makes mount, UTS, IPC, network and cgroup namespaces, a pid namespace unless --host-pid, and a user namespace mapping
 * 0 -> N (65536 ids, default 100000) unless --no-userns; --map says every range of the map itself, --userns-of takes
 * the user namespace of another process. Mounts proc, sys, dev (null zero full random urandom tty fuse) and tmp in
 * ROOTFS (a device node in ROOTFS/.devices comes before the node's own), pivots into it, and prints the pid of the
 * container's first process when all that is done. ROOTFS needs the directories proc, sys, dev, tmp.
 *
 * --created: prints the pid already when everything is mounted but the container's root is still the node's, where OCI
 * runtimes run the hooks createRuntime and prestart; goes on when something is written to FIFO.
 *
 * Stays in the foreground as the parent of that process and ends with it (exit status 0), so a dead container's
 * pid is free at once. Dies with its own parent, and the container with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
        unsigned base;
        bool userns, pidns;
        unsigned long propagation;
        const char *rootfs, *created;
        char *map;
        pid_t userns_of;
} opt = { .base = 100000, .userns = true, .pidns = true, .propagation = MS_PRIVATE };

static void die(const char *format, ...)
{
        int saved = errno;
        va_list ap;

        va_start(ap, format);
        fprintf(stderr, "container-init: ");
        vfprintf(stderr, format, ap);
        fprintf(stderr, ": %s\n", strerror(saved));
        va_end(ap);
        exit(125);
}

static void write_file(pid_t pid, const char *name, const char *text)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                die("%s", path);
        close(fd);
}

static void mount_or_die(const char *source, const char *target, const char *type, unsigned long flags,
                         const char *data)
{
        if (mount(source, target, type, flags, data) < 0)
                die("mount %s", target);
}

static void bind_device(const char *name)
{
        char source[64], target[64];

        /* The node's own may be for its root alone; a container that is to have FUSE gets one for everybody. */
        snprintf(source, sizeof(source), ".devices/%s", name);
        if (access(source, F_OK) < 0)
                snprintf(source, sizeof(source), "/dev/%s", name);
        snprintf(target, sizeof(target), "dev/%s", name);
        int fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        if (fd < 0)
                die("%s", target);
        close(fd);
        mount_or_die(source, target, NULL, MS_BIND, NULL);
}

/* The container's first process: it has nothing to do but to reap. argv: --pause, the number of the fd to report to. */
static int pause_forever(int report_fd)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        if (write(report_fd, "r", 1) != 1)
                return 125;
        close(report_fd);
        for (;;) {
                int sig = sigwaitinfo(&set, NULL);
                if (sig == SIGTERM)
                        return 0;
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
        }
}

static void container(int go_fd, int ready_fd)
{
        char byte, number[16];
        static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty", "fuse" };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(go_fd, &byte, 1) != 1)
                _exit(125);
        int self = open("/proc/self/exe", O_RDONLY);
        if (self < 0)
                die("/proc/self/exe");

        /* Still the node's uid 0 here, though powerless: what leads to ROOTFS may be for that one only. */
        mount_or_die(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        mount_or_die(opt.rootfs, opt.rootfs, NULL, MS_BIND | MS_REC, NULL);
        if (chdir(opt.rootfs) < 0)
                die("chdir %s", opt.rootfs);
        if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
                die("become root of the container");

        if (opt.pidns)
                mount_or_die("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        else
                mount_or_die("/proc", "proc", NULL, MS_BIND | MS_REC, NULL);
        mount_or_die("sysfs", "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        (void)mount("cgroup2", "sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        mount_or_die("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=755,size=1m");
        umask(0);
        for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
                bind_device(devices[i]);
        umask(022);
        mount_or_die("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");

        if (opt.created && (write(ready_fd, "c", 1) != 1 || read(go_fd, &byte, 1) != 1))
                _exit(125);
        if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                die("pivot_root");
        mount_or_die(NULL, "/", NULL, MS_REC | opt.propagation, NULL);
        (void)sethostname("container", 9);

        prctl(PR_SET_PDEATHSIG, SIGKILL); /* again: a change of ids takes it back */

        /* A real execve, as every container's first program has had one: it decides who may trace the process. */
        snprintf(number, sizeof(number), "%d", ready_fd);
        fcntl(ready_fd, F_SETFD, 0);
        fcntl(self, F_SETFD, FD_CLOEXEC);
        close(go_fd);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
                die("/dev/null");
        char *const argv[] = { (char *)"container-init", (char *)"--pause", number, NULL };
        char *const envp[] = { (char *)"PATH=/bin:/sbin:/usr/bin:/usr/sbin", NULL };
        syscall(SYS_execveat, self, "", argv, envp, AT_EMPTY_PATH);
        die("execveat");
}

static void usage(void)
{
        fprintf(stderr, "usage: container-init [--base N | --map 'IN OUT COUNT,...' | --userns-of PID | --no-userns] "
                        "[--host-pid] [--propagation private|slave|shared] [--created FIFO] ROOTFS\n");
        exit(125);
}

static void parse(int argc, char **argv)
{
        for (int i = 1; i < argc; i++) {
                const char *next = i + 1 < argc ? argv[i + 1] : NULL;
                if (strcmp(argv[i], "--no-userns") == 0) {
                        opt.userns = false;
                } else if (strcmp(argv[i], "--host-pid") == 0) {
                        opt.pidns = false;
                } else if (strcmp(argv[i], "--base") == 0 && next) {
                        opt.base = (unsigned)strtoul(next, NULL, 10);
                        i++;
                } else if (strcmp(argv[i], "--map") == 0 && next) {
                        opt.map = argv[++i];
                } else if (strcmp(argv[i], "--userns-of") == 0 && next) {
                        opt.userns_of = atoi(argv[++i]);
                        opt.userns = false;
                } else if (strcmp(argv[i], "--propagation") == 0 && next) {
                        opt.propagation = strcmp(next, "shared") == 0  ? MS_SHARED
                                          : strcmp(next, "slave") == 0 ? MS_SLAVE
                                                                       : MS_PRIVATE;
                        i++;
                } else if (strcmp(argv[i], "--created") == 0 && next) {
                        opt.created = next;
                        i++;
                } else if (argv[i][0] != '-' && !next) {
                        opt.rootfs = argv[i];
                } else {
                        usage();
                }
        }
        if (!opt.rootfs)
                usage();
}

/* Until somebody writes to the FIFO, or the container is gone. */
static void wait_for_start(pid_t pid, int go_fd)
{
        struct pollfd wait[] = { { .fd = open(opt.created, O_RDWR | O_CLOEXEC), .events = POLLIN },
                                 { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };

        if (wait[0].fd < 0 || wait[1].fd < 0 || poll(wait, 2, -1) < 0)
                die("%s", opt.created);
        if (wait[0].revents != 0 && write(go_fd, "", 1) != 1)
                die("write");
        close(wait[0].fd);
        close(wait[1].fd);
}

static void enter_user_ns(pid_t pid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || setns(fd, CLONE_NEWUSER) < 0)
                die("%s", path);
        close(fd);
}

int main(int argc, char **argv)
{
        int go[2], ready[2], status;
        char byte = 0, map[64];

        if (argc == 3 && strcmp(argv[1], "--pause") == 0)
                return pause_forever(atoi(argv[2]));
        parse(argc, argv);

        close_range(3, ~0U, 0); /* what the caller has open is no business of the container */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pipe2(go, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
                die("pipe2");
        if (opt.userns_of)
                enter_user_ns(opt.userns_of);
        long flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP |
                     (opt.pidns ? CLONE_NEWPID : 0) | (opt.userns ? CLONE_NEWUSER : 0);
        pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
        if (pid < 0)
                die("clone");
        if (pid == 0) {
                close(go[1]);
                close(ready[0]);
                container(go[0], ready[1]);
        }
        close(go[0]);
        close(ready[1]);
        if (opt.userns) {
                snprintf(map, sizeof(map), "0 %u 65536\n", opt.base);
                for (char *comma = opt.map; comma && (comma = strchr(comma, ','));)
                        *comma = '\n';
                write_file(pid, "uid_map", opt.map ? opt.map : map);
                write_file(pid, "gid_map", opt.map ? opt.map : map);
        }
        if (write(go[1], &byte, 1) != 1)
                die("write");
        if (read(ready[0], &byte, 1) != 1)
                return 125;
        printf("%d\n", pid);
        fflush(stdout);
        if (opt.created)
                wait_for_start(pid, go[1]);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        die("waitpid");
        return 0;
}
