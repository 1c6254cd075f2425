/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap-daemon serve - show a mount to a container whose user namespace the mount's own filesystem knows nothing of.
 *
 * Started by a mount helper (src/common/translator.c), with what shared.h lists as its descriptors. Two processes: the
 * daemon answers, the keeper waits for it to die and then starts another, which goes on where it was. They have their
 * descriptors in common, and what shared.h says. Should the keeper die, the daemon makes another. Both end when nothing
 * is mounted any more.
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
#define CLOSE_MS 5000   /* how long a server may take to hear that its files are closed */
#define LOOK_MS 5000    /* how often the keeper looks whether the container's end waits for us */
#define LOOKS_ENDING 24 /* and how many of these it may take to end: a server may have much to write */
#define SOON_MS 200     /* a daemon that lived shorter is not followed by another at once */

static const char help[] = "Usage: remap-daemon serve | --help | --version\n"
                           "\n"
                           "Serve a mount with translated owners (\"ids\": \"remap\") to a container. Started by the "
                           "mount helpers, with the\n"
                           "descriptors it needs; not for people. Ends when the mount is gone.\n";

struct shared *shared;

static void be_called(const char *name)
{
        (void)prctl(PR_SET_NAME, name, 0, 0, 0); /* for ps; cannot fail */
}

static void report(char word)
{
        if (fcntl(FD_REPORT, F_GETFD) >= 0 && !shared->reported) {
                (void)!write(FD_REPORT, &word, 1); /* nobody may listen any more */
                shared->reported = true;
                (void)close(FD_REPORT);
        }
}

static void ready(void)
{
        report('S');
}

/* Whether the kernel has let go of the filesystem: nobody has it mounted. */
static bool is_over(void)
{
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };

        return poll(&fuse, 1, 0) > 0 && (fuse.revents & POLLERR) != 0;
}

/* A process that has this one's descriptors, and a copy of its memory. The raw call: fork() shares nothing. */
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
        (void)close(old); /* of one that is gone */
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

/* For the copy that a keeper made of itself, with one thread: the daemon. */
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

/* Whether the container's first process is ending and cannot: those it waits for may be waiting for us. */
static bool container_is_ending(void)
{
        char text[512];
        char *next;
        char state;

        if (file_read(FD_CONTAINER, "stat", text, sizeof text) <= 0)
                return false;      /* it has ended: the mounts of its namespace go by themselves */
        next = strrchr(text, ')'); /* the end of its name */
        if (next == NULL || strlen(next) < 4)
                return false;
        state = next[2];
        next += 3;
        for (int field = 4; field < 9; field++) /* proc(5): flags is the ninth */
                (void)strtol(next, &next, 10);
        return state != 'Z' && state != 'X' && (strtoul(next, NULL, 10) & PF_EXITING) != 0;
}

/* Until the daemon has ended, or has to, since the container cannot otherwise. True: it has to. */
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
 * Everything is closed, by a process that does nothing else. The last close of a server's filesystem waits for the
 * server, and a process that is ending already waits for ever for one that is gone; one that closes can be killed.
 */
static _Noreturn void end_all(void)
{
        int pid = (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

        if (pid == 0) {
                be_called("remap-closer");
                (void)close_range(0, ~0U, 0); /* what cannot be is closed at the end */
                _exit(EXIT_SUCCESS);
        }
        if (pid > 0) {
                int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
                struct pollfd closer = { .fd = dup2(pidfd, 0), .events = POLLIN };

                (void)close_range(1, ~0U, 0); /* the other one has it still, so nothing waits here */
                if (poll(&closer, 1, CLOSE_MS) == 0)
                        (void)syscall(SYS_pidfd_send_signal, closer.fd, SIGKILL, NULL, 0);
                (void)poll(&closer, 1, CLOSE_MS);
        }
        _exit(EXIT_SUCCESS);
}

/* The keeper: with one thread, and nothing that a hostile container reaches. */
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
                (void)waitid(P_PIDFD, (id_t)shared->daemon_pidfd, &end, WEXITED); /* it may be somebody else's child */
                fd_close(&shared->daemon_pidfd);
                if (over || is_over() || !shared->served)
                        end_all(); /* the last descriptor of /dev/fuse, too */
                if (clock_now_ms() - since_ms < SOON_MS && ++shared->short_lives > 3)
                        (void)poll(NULL, 0, SOON_MS);
                else if (clock_now_ms() - since_ms >= SOON_MS)
                        shared->short_lives = 0;
        }
}

/* Whether others change the files while we look away. */
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

        /* address space: only what is touched is memory */
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
        bool started; /* as the helpers do */
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

                (void)!write(FD_REPORT, &word, 1); /* nobody may listen any more */
                return EXIT_FAILURE;
        }
        keep();
}
