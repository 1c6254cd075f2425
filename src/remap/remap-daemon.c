/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap-daemon serve - serve a mount to a container as a FUSE filesystem, with the container's ids, where the kernel
 * cannot map the ids of the mount's filesystem.
 * remap-daemon serve-mappable - serve it to the node, as a filesystem whose mounts the kernel can id-map.
 *
 * Started by a mount helper or remap-mount (src/common/daemon/remap.c), with the descriptors that shared.h lists. Two
 * processes: the daemon answers requests; the keeper waits until the daemon dies and then starts another, which
 * continues its work. They share their descriptors and the memory of shared.h. If the keeper dies, the daemon starts
 * another. Both end when the filesystem is unmounted.
 */
#include "privileges/remap-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "ending.h"
#include "interrupts.h"
#include "mount/authority.h"
#include "session.h"
#include "shared.h"

#define PF_EXITING 4UL  /* of the kernel's sched.h */
#define LOOK_MS 2000    /* how often the keeper checks whether the container is ending */
#define LOOKS_ENDING 60 /* so many times: a server may have much to write */
#define SOON_MS 200     /* after a daemon that lived shorter, wait before the next */

static const char help[] = "Usage: remap-daemon serve | serve-mappable | --help | --version\n"
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

static void ready(int r)
{
        if (r == 0)
                report('S');
        else
                report((char)-r);
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

/* A process's state and flags. False: it has ended, and the kernel unmounts what is in its namespace. */
static bool read_state(int dir_fd, const char *path, char *ret_state, unsigned long *ret_flags)
{
        char text[512];
        char *next;

        if (file_read(dir_fd, path, text, sizeof text) <= 0)
                return false;
        next = strrchr(text, ')'); /* the end of its name */
        if (next == NULL || strlen(next) < 4)
                return false;
        *ret_state = next[2];
        next += 3;
        for (int field = 4; field < 9; field++) /* proc(5): flags is the ninth */
                (void)strtol(next, &next, 10);
        *ret_flags = strtoul(next, NULL, 10);
        return true;
}

/* Whether the container's first process is exiting and cannot, because processes in it may wait for answers. */
static bool container_is_ending(void)
{
        unsigned long flags;
        char state;

        return read_state(FD_CONTAINER, "stat", &state, &flags) && state != 'Z' && state != 'X' &&
               (flags & PF_EXITING) != 0;
}

/*
 * Whether the daemon was killed, but one of its threads waits in the kernel for an answer that only the next daemon
 * gives: for a page that is being read. Its first thread, which only waits for others, has ended then.
 */
static bool daemon_is_stuck(void)
{
        char path[32];
        unsigned long flags;
        char state;

        (void)snprintf(path, sizeof path, "/proc/%d/stat", shared->daemon_pid);
        return read_state(AT_FDCWD, path, &state, &flags) && state == 'Z';
}

/* Wait until the daemon has ended. True: it must be killed, so that the container can end. */
static bool wait_for_daemon(void)
{
        struct pollfd daemon = { .fd = shared->daemon_pidfd, .events = POLLIN };
        int looks = 0;

        while (poll(&daemon, 1, LOOK_MS) <= 0) {
                bool ending = container_is_ending();

                looks = ending ? looks + 1 : 0;
                if (ending || is_over())
                        ending_force();
                if (looks > LOOKS_ENDING)
                        return true;
                if (!is_over() && daemon_is_stuck())
                        return false;
        }
        return false;
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
                        shared->daemon_pid = pid;
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
                /* fails if it is not this keeper's child */
                (void)waitid(P_PIDFD, (id_t)shared->daemon_pidfd, &end, WEXITED | (is_over() ? 0 : WNOHANG));
                fd_close(&shared->daemon_pidfd);
                if (over || is_over() || !shared->served)
                        ending_close(); /* including the last descriptor of /dev/fuse */
                if (clock_now_ms() - since_ms < SOON_MS && ++shared->short_lives > 3)
                        (void)poll(NULL, 0, SOON_MS);
                else if (clock_now_ms() - since_ms >= SOON_MS)
                        shared->short_lives = 0;
        }
}

/* CAP_SYS_PTRACE is for caller_ids.h alone. Returns 0 or negative errno. */
static int give_up_looking(void)
{
        struct __user_cap_header_struct self = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
        const uint32_t others = ~(uint32_t)CAP_TO_MASK(CAP_SYS_PTRACE);

        if (syscall(SYS_capget, &self, sets) < 0)
                return -errno;
        _Static_assert(CAP_TO_INDEX(CAP_SYS_PTRACE) == 0, "the word below");
        sets[0].effective &= others;
        sets[0].permitted &= others;
        sets[0].inheritable &= others;
        return syscall(SYS_capset, &self, sets) < 0 ? -errno : 0;
}

static int begin(bool mappable)
{
        static struct remap_settings settings;
        struct rlimit limit;
        int authority;
        int r;

        /* address space: memory is used only where it is written */
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (shared == MAP_FAILED)
                return -errno;
        shared->daemon_pidfd = shared->keeper_pidfd = -1;
        authority = authority_of(FD_ROOT); /* an error is taken for a server that does not answer */
        shared->network = authority == AUTHORITY_OTHERS || authority < 0;
        shared->mappable = mappable;
        shared->checked = mappable && authority == AUTHORITY_KERNEL;
        if (!mappable && (r = give_up_looking()) < 0)
                return r;
        ending_begin();
        /* not the maps of FD_CONTAINER: it may have nested a user namespace in the container's */
        if (read(FD_SETTINGS, &settings, sizeof settings) != (ssize_t)sizeof settings)
                return -EPROTO;
        (void)close(FD_SETTINGS); /* its one message was read */
        shared->users = settings.maps.users;
        shared->groups = settings.maps.groups;
        shared->alone = settings.cache == REMAP_CACHE_ALWAYS;
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
        bool mappable;
        bool started; /* by a helper, with its descriptors */
        int r;

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return puts("remap-daemon (flexgraft) " VERSION) < 0;
        if (argc == 2 && strcmp(argv[1], "--help") == 0)
                return fputs(help, stdout) < 0;
        mappable = argc == 2 && strcmp(argv[1], "serve-mappable") == 0;
        started = argc == 2 && (mappable || strcmp(argv[1], "serve") == 0);
        for (int fd = FD_FUSE; started && fd < FD_OWN; fd++)
                started = fcntl(fd, F_GETFD) >= 0;
        if (!started) {
                (void)fputs(help, stderr);
                return 2;
        }
        r = privileges_drop_to_act(&PRIVILEGES, &error);
        if (r == 0)
                r = begin(mappable);
        if (r < 0) {
                char word = (char)-r;

                (void)!write(FD_REPORT, &word, 1); /* the reader may have exited */
                return EXIT_FAILURE;
        }
        keep();
}
