/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap-daemon serve - serve a mount to a container as a FUSE filesystem, with the container's ids, where the kernel
 * cannot map the ids of the mount's filesystem.
 *
 * Started by a mount helper (src/common/inject/remap.c), with the descriptors that shared.h lists. Two processes: the
 * daemon answers requests; the keeper waits until the daemon dies and then starts another, which continues its work.
 * They share their descriptors and the memory of shared.h. If the keeper dies, the daemon starts another. Both end when
 * the filesystem is unmounted.
 */
#include "privileges/remap-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "interrupts.h"
#include "session.h"
#include "shared.h"

#define PF_EXITING 4UL  /* of the kernel's sched.h */
#define CLOSE_MS 5000   /* how long closing files on a server may take */
#define LOOK_MS 5000    /* how often the keeper checks whether the container is ending */
#define LOOKS_ENDING 24 /* so many times: a server may have much to write */
#define SOON_MS 200     /* after a daemon that lived shorter, wait before the next */

static const char help[] = "Usage: remap-daemon serve | --help | --version\n"
                           "\n"
                           "Serve a mount with remapped owners (\"ids\": \"remap\") to a container. The mount\n"
                           "helpers start it, with the descriptors that it needs. It ends when the\n"
                           "filesystem is unmounted.\n";

struct shared *shared;

static void be_called(const char *name)
{
        (void)prctl(PR_SET_NAME, name, 0, 0, 0); /* for ps; cannot fail */
}

static void report(char word)
{
        if (fcntl(FD_REPORT, F_GETFD) >= 0 && !shared->reported) {
                (void)!write(FD_REPORT, &word, 1); /* the reader may have exited */
                shared->reported = true;
                (void)close(FD_REPORT);
        }
}

static void ready(void)
{
        report('S');
}

/* Whether the filesystem is unmounted everywhere. */
static bool is_over(void)
{
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };

        return poll(&fuse, 1, 0) > 0 && (fuse.revents & POLLERR) != 0;
}

/* A child that shares the descriptors and has a copy of the memory, which fork() cannot do. */
static int split(int *ret_pidfd)
{
        return (int)syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, NULL, ret_pidfd, NULL, NULL);
}

static _Noreturn void keep(void);

static void make_keeper(void)
{
        int old = shared->keeper_pidfd;
        if (split(&shared->keeper_pidfd) == 0)
                keep();
        (void)close(old); /* the last keeper, which has ended */
}

static void *watch_keeper(void *ignored)
{
        (void)ignored;
        for (;;) {
                struct pollfd keeper = { .fd = shared->keeper_pidfd, .events = POLLIN };

                if (poll(&keeper, 1, shared->network ? 1000 : -1) > 0)
                        session_rest(make_keeper);
                else
                        interrupts_look();
        }
        return NULL;
}

/* The daemon: a child of the keeper, at first with one thread. */
static _Noreturn void serve(void)
{
        pthread_t thread;
        int r;

        be_called("remap-daemon");
        r = session_begin();
        if (r == 0)
                r = -pthread_create(&thread, NULL, watch_keeper, NULL);
        if (r == 0)
                r = session_serve(ready);
        if (r < 0)
                report((char)-r);
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Whether the container's first process is exiting and cannot, because processes in it may wait for answers. */
static bool container_is_ending(void)
{
        char text[512];
        char *next;
        char state;

        if (file_read(FD_CONTAINER, "stat", text, sizeof text) <= 0)
                return false;      /* it has ended: the kernel unmounts what is in its namespace */
        next = strrchr(text, ')'); /* the end of its name */
        if (next == NULL || strlen(next) < 4)
                return false;
        state = next[2];
        next += 3;
        for (int field = 4; field < 9; field++) /* proc(5): flags is the ninth */
                (void)strtol(next, &next, 10);
        return state != 'Z' && state != 'X' && (strtoul(next, NULL, 10) & PF_EXITING) != 0;
}

/* Wait until the daemon has ended. True: it must be killed, so that the container can end. */
static bool wait_for_daemon(void)
{
        struct pollfd daemon = { .fd = shared->daemon_pidfd, .events = POLLIN };
        int looks = 0;

        while (poll(&daemon, 1, LOOK_MS) <= 0) {
                looks = container_is_ending() ? looks + 1 : 0;
                if (looks > LOOKS_ENDING)
                        return true;
        }
        return false;
}

/*
 * Close everything, in a process that does nothing else. The last close of a file on a server waits for the server. A
 * process that closes while it exits cannot be killed any more; one that calls close() can.
 */
static _Noreturn void end_all(void)
{
        int pid = (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

        if (pid == 0) {
                be_called("remap-closer");
                (void)close_range(0, ~0U, 0); /* the rest is closed at exit */
                _exit(EXIT_SUCCESS);
        }
        if (pid > 0) {
                int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
                struct pollfd closer = { .fd = dup2(pidfd, 0), .events = POLLIN };

                (void)close_range(1, ~0U, 0); /* does not wait: the child has them, too */
                if (poll(&closer, 1, CLOSE_MS) == 0)
                        (void)syscall(SYS_pidfd_send_signal, closer.fd, SIGKILL, NULL, 0);
                (void)poll(&closer, 1, CLOSE_MS);
        }
        _exit(EXIT_SUCCESS);
}

/* The keeper has one thread, and does not read what a container writes. */
static _Noreturn void keep(void)
{
        siginfo_t end;

        be_called("remap-keeper");
        for (;;) {
                int64_t since_ms = clock_now_ms();
                bool over;

                if (shared->daemon_pidfd < 0) {
                        int pid = split(&shared->daemon_pidfd);

                        if (pid == 0)
                                serve();
                        if (pid < 0) {
                                if (!shared->served)
                                        _exit(EXIT_FAILURE);
                                (void)poll(NULL, 0, SOON_MS);
                                continue;
                        }
                }
                over = wait_for_daemon();
                if (over)
                        (void)syscall(SYS_pidfd_send_signal, shared->daemon_pidfd, SIGKILL, NULL, 0);
                (void)waitid(P_PIDFD, (id_t)shared->daemon_pidfd, &end,
                             WEXITED); /* fails if it is not this keeper's child */
                fd_close(&shared->daemon_pidfd);
                if (over || is_over() || !shared->served)
                        end_all(); /* including the last descriptor of /dev/fuse */
                if (clock_now_ms() - since_ms < SOON_MS && ++shared->short_lives > 3)
                        (void)poll(NULL, 0, SOON_MS);
                else if (clock_now_ms() - since_ms >= SOON_MS)
                        shared->short_lives = 0;
        }
}

/* Whether other machines can change the files. */
static bool is_of_network(void)
{
        static const unsigned long types[] = { NFS_SUPER_MAGIC,
                                               0xff534d42 /* cifs */,
                                               0xfe534d42 /* smb2 */,
                                               0x65735546 /* fuse */,
                                               0x01021997 /* 9p */,
                                               0x00c36400 /* ceph */,
                                               0x5346414f /* afs */ };
        struct statfs fs;

        if (fstatfs(FD_ROOT, &fs) < 0)
                return true;
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if ((unsigned long)fs.f_type == types[i])
                        return true;
        return false;
}

static int begin(void)
{
        struct rlimit limit;

        /* address space: memory is used only where it is written */
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (shared == MAP_FAILED)
                return -errno;
        shared->daemon_pidfd = shared->keeper_pidfd = -1;
        shared->network = is_of_network();
        shared->users.count = id_ranges_read(FD_CONTAINER, "uid_map", shared->users.ranges);
        shared->groups.count = id_ranges_read(FD_CONTAINER, "gid_map", shared->groups.ranges);
        if (shared->users.count < 0 || shared->groups.count < 0)
                return shared->users.count < 0 ? shared->users.count : shared->groups.count;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        shared->keeper_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        return shared->keeper_pidfd < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
        struct error error;
        bool started; /* by a helper, with its descriptors */
        int r;

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return puts("remap-daemon (flexgraft) " VERSION) < 0;
        if (argc == 2 && strcmp(argv[1], "--help") == 0)
                return fputs(help, stdout) < 0;
        started = argc == 2 && strcmp(argv[1], "serve") == 0;
        for (int fd = FD_FUSE; started && fd < FD_OWN; fd++)
                started = fcntl(fd, F_GETFD) >= 0;
        if (!started) {
                (void)fputs(help, stderr);
                return 2;
        }
        r = privileges_drop_to_act(&PRIVILEGES, &error);
        if (r == 0)
                r = begin();
        if (r < 0) {
                char word = (char)-r;

                (void)!write(FD_REPORT, &word, 1); /* the reader may have exited */
                return EXIT_FAILURE;
        }
        keep();
}
