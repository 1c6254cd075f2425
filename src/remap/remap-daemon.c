/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap-daemon serve - serve a mount to a container as a FUSE filesystem, with the container's ids, where the kernel
 * cannot map the ids of the mount's filesystem.
 * remap-daemon serve-mappable - serve it to the node, as a filesystem whose mounts the kernel can id-map.
 * remap-daemon take-over - serve what another program has served until now (heir.h).
 *
 * Started by a mount helper or remap-mount (src/common/daemon/remap.c), or remap-upgrade (src/common/daemon/upgrade.c),
 * with the descriptors that daemon/keeper.h lists. Two
 * processes: the daemon answers requests; the keeper waits until the daemon dies and then starts another, which
 * continues its work. They share their descriptors and the memory of shared.h. If the keeper dies, the daemon starts
 * another. Both end when the filesystem is unmounted. Before there is a keeper, a third asks the source, which may not answer.
 */
#include "privileges/remap-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alive.h"
#include "base/clock.h"
#include "base/fd.h"
#include "descriptors.h"
#include "ending.h"
#include "heir.h"
#include "interrupts.h"
#include "mount/authority.h"
#include "session.h"
#include "shared.h"
#include "split.h"
#include "threads.h"

#define LOOK_MS 2000    /* how often the keeper checks whether the container is ending */
#define LOOKS_ENDING 60 /* so many times: a server may have much to write */
#define LOOKS_OVER 10   /* and this many when the mount is over: nothing waits for what the daemon does */
#define KILLED_MS 2000  /* until a killed daemon has ended, or an answer that it waits for is given */
#define SOON_MS 200     /* after a daemon that lived shorter, or where none can be made, wait before the next */

static const char help[] = "Usage: remap-daemon serve | serve-mappable | take-over | --help | --version\n"
                           "\n"
                           "Serve a mount with remapped owners (\"ids\": \"remap\") to a container. The mount\n"
                           "helpers, and remap-upgrade, start it with the descriptors that it needs. It ends\n"
                           "when the filesystem is unmounted.\n";

struct shared *shared;

static void be_called(const char *name)
{
        (void)prctl(PR_SET_NAME, name, 0, 0, 0); /* for ps; cannot fail */
}

static void report(char word)
{
        if (!shared->reported) {
                (void)!write(FD_REPORT, &word, 1); /* the reader may have exited */
                shared->reported = true;
                (void)dup2(FD_CONTAINER, FD_REPORT); /* the number stays in use: it is none of the daemon's files */
        }
}

static void ready(int r)
{
        if (r == 0)
                report('S');
        else
                report((char)-r);
}

static _Noreturn void keep(void);

static void make_keeper(void)
{
        const int old = shared->keeper_pidfd;
        const int pid = split(&shared->keeper_pidfd);

        if (pid == 0)
                keep();
        if (pid > 0)
                (void)close(old); /* the last keeper, which has ended */
}

/* Between two requests: the next daemon finds those that were read, and not begun. */
static void leave(void)
{
        _exit(EXIT_SUCCESS);
}

static void *watch_keeper(void *ignored)
{
        (void)ignored;
        for (;;) {
                struct pollfd keeper[] = { { .fd = shared->keeper_pidfd, .events = POLLIN },
                                           { .fd = FD_ORDER, .events = POLLIN } };

                if (poll(keeper, 2, shared->network ? 1000 : -1) <= 0)
                        interrupts_look();
                else if (keeper[0].revents != 0) {
                        threads_rest(make_keeper);
                        if (shared->keeper_pidfd == keeper[0].fd) /* there is none yet */
                                (void)poll(NULL, 0, SOON_MS);
                } else if (heir_wants_leave())
                        threads_rest(leave);
        }
        return NULL;
}

/* The daemon: a child of the keeper, at first with one thread. */
static _Noreturn void serve(void)
{
        pthread_t thread;
        int r;

        be_called("remap-daemon");
        r = threads_begin();
        if (r == 0)
                r = session_begin(ready);
        if (r == 0)
                heir_say_serves();
        if (r == 0)
                r = -pthread_create(&thread, NULL, watch_keeper, NULL);
        if (r == 0)
                r = threads_serve();
        if (r < 0)
                report((char)-r);
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Wait until the daemon has ended. True: it must be killed, so that the container, or what serves the mount, can end. */
static bool wait_for_daemon(void)
{
        struct pollfd daemon[] = { { .fd = shared->daemon_pidfd, .events = POLLIN },
                                   { .fd = FD_ORDERS, .events = POLLIN } };
        int looks = 0;
        int looks_over = 0;
        int64_t stuck_since_ms = 0;

        for (;;) {
                int events = poll(daemon, 2, LOOK_MS);
                bool ending = false;
                bool over = false;

                if (events > 0 && daemon[0].revents != 0)
                        return false;
                if (events > 0)
                        heir_hand_over(keep);
                if (events > 0)
                        continue;
                ending = alive_container_is_ending();
                over = alive_mount_is_over();
                looks = ending ? looks + 1 : 0;
                looks_over = over && !shared->nfs ? looks_over + 1 : 0; /* NFS: see ending_force() */
                if (ending || over)
                        ending_force();
                if (looks > LOOKS_ENDING || looks_over > LOOKS_OVER)
                        return true;
                if (!over && alive_daemon_is_stuck(&stuck_since_ms))
                        return false;
        }
}

/* Whether it ends soon, after it was killed, or had nothing more to serve. */
static bool daemon_has_ended(void)
{
        return poll(&(struct pollfd){ .fd = shared->daemon_pidfd, .events = POLLIN }, 1, KILLED_MS) != 0;
}

/*
 * One that waits in the kernel for a server that does not answer, as that of a FUSE filesystem of the container's own does
 * not, cannot be killed. Nothing else waits for it then: it is left, and what it has open with it.
 */
static _Noreturn void end(void)
{
        bool ended = daemon_has_ended();

        heir_daemon_ended();
        (void)close(FD_FUSE); /* the last of it: what waits for an answer from here gets an error */
        if (!ended && !daemon_has_ended())
                ending_leave();
        ending_close();
}

/* The keeper has one thread, and does not read what a container writes. */
static _Noreturn void keep(void)
{
        siginfo_t info;

        be_called("remap-keeper");
        heir_forget();
        for (;;) {
                int64_t since_ms = clock_now_ms();
                bool over;

                if (shared->daemon_pidfd < 0) {
                        int pid = descriptors_find_unknown() < 0 ? -1 : split(&shared->daemon_pidfd);

                        if (pid == 0)
                                serve();
                        shared->daemon_pid = pid;
                        if (pid < 0) {
                                if (!shared->served)
                                        _exit(EXIT_FAILURE);
                                heir_daemon_ended();
                                (void)poll(NULL, 0, SOON_MS);
                                continue;
                        }
                }
                over = wait_for_daemon();
                if (over)
                        (void)syscall(SYS_pidfd_send_signal, shared->daemon_pidfd, SIGKILL, NULL, 0);
                if (over || alive_mount_is_over() || !shared->served)
                        end();
                /* fails if it is not this keeper's child */
                (void)waitid(P_PIDFD, (id_t)shared->daemon_pidfd, &info, WEXITED | WNOHANG);
                fd_close(&shared->daemon_pidfd);
                heir_daemon_ended();
                if (clock_now_ms() - since_ms < SOON_MS && ++shared->short_lives > 3)
                        (void)poll(NULL, 0, SOON_MS);
                else if (clock_now_ms() - since_ms >= SOON_MS)
                        shared->short_lives = 0;
        }
}

/* Linux 6.3 can demand the flag (vm.memfd_noexec), and before that there is none. */
static int create_memory(void)
{
        static const unsigned noexec = 0x0008; /* MFD_NOEXEC_SEAL */
        int fd = memfd_create("remap", MFD_CLOEXEC | noexec);

        return fd >= 0 || errno != EINVAL ? fd : memfd_create("remap", MFD_CLOEXEC);
}

/* Before privileges are dropped: the daemon needs none of these calls. */
static int begin_descriptors(bool heir)
{
        int memory = heir ? -1 : create_memory();
        int sockets[2];

        /* size: memory is used only where it is written */
        if (!heir && (memory < 0 || ftruncate(memory, sizeof *shared) < 0 || dup2(memory, FD_MEMORY) < 0))
                return -errno;
        if (memory >= 0 && memory != FD_MEMORY)
                (void)close(memory); /* it has another number now */
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return -errno;
        /* neither number is one of those that are in use, but perhaps that of one of the two */
        if (sockets[1] == FD_ORDERS && (sockets[1] = dup(sockets[1])) < 0)
                return -errno;
        if (dup2(sockets[0], FD_ORDERS) < 0 || dup2(sockets[1], FD_ORDER) < 0)
                return -errno;
        for (int i = 0; i < 2; i++)
                if (sockets[i] != FD_ORDERS && sockets[i] != FD_ORDER)
                        (void)close(sockets[i]); /* as above */
        return 0;
}

/* What has to be asked of the source, which may not answer. An error is taken for a server that does not. */
static _Noreturn void ask(void)
{
        int authority;

        be_called("remap-asker");
        authority = authority_of(FD_ROOT);
        ending_begin();
        _exit(authority < 0 ? AUTHORITY_OTHERS : authority);
}

/* The keeper itself never waits for the source. Returns its enum authority. */
static int ask_source(void)
{
        struct pollfd ends[] = { { .fd = -1, .events = POLLIN }, { .fd = FD_REPORT } };
        siginfo_t end = {};
        int pid;

        shared->force_pidfd = shared->closer_pidfd = -1;
        pid = split(&ends[0].fd);
        if (pid == 0)
                ask();
        if (pid < 0)
                return -errno;
        while (poll(ends, 2, -1) < 0 || ends[0].revents == 0)
                if ((ends[1].revents & POLLERR) != 0) { /* who started this has ended, or gave it up */
                        (void)syscall(SYS_pidfd_send_signal, ends[0].fd, SIGKILL, NULL, 0);
                        _exit(EXIT_FAILURE);
                }
        (void)waitid(P_PIDFD, (id_t)ends[0].fd, &end, WEXITED);
        (void)close(ends[0].fd); /* of a process that has ended */
        return end.si_code == CLD_EXITED ? end.si_status : -ECHILD;
}

static int begin(bool mappable)
{
        static struct remap_settings settings;
        struct rlimit limit;
        ssize_t size;
        int authority;

        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, FD_MEMORY, 0);
        if (shared == MAP_FAILED)
                return -errno;
        heir_fill_header();
        shared->daemon_pidfd = shared->keeper_pidfd = shared->heir_fd = -1;
        authority = ask_source();
        if (authority < 0)
                return authority;
        shared->network = authority == AUTHORITY_OTHERS;
        shared->mappable = mappable;
        shared->checked = mappable && authority == AUTHORITY_KERNEL;
        /* not the maps of FD_CONTAINER: it may have nested a user namespace in the container's */
        size = read(FD_SETTINGS, &settings, sizeof settings);
        if (size == (ssize_t)sizeof settings.maps) {
                shared->source_users = settings.maps.users;
                shared->source_groups = settings.maps.groups;
                if (shared->source_users.count <= 0 || shared->source_groups.count <= 0)
                        return -EPROTO;
                shared->able = authority == AUTHORITY_KERNEL;
                size = read(FD_SETTINGS, &settings, sizeof settings);
        }
        if (size != (ssize_t)sizeof settings)
                return -EPROTO;
        (void)dup2(FD_CONTAINER, FD_SETTINGS); /* its messages were read; the number stays in use */
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
        static const char *const modes[] = { "serve", "serve-mappable", "take-over", NULL };
        struct error error;
        size_t mode = 0;
        bool started; /* by a helper, with its descriptors */
        int r;

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return puts("remap-daemon (flexgraft) " VERSION) < 0;
        if (argc == 2 && strcmp(argv[1], "--help") == 0)
                return fputs(help, stdout) < 0;
        while (argc == 2 && modes[mode] != NULL && strcmp(argv[1], modes[mode]) != 0)
                mode++;
        started = argc == 2 && modes[mode] != NULL;
        for (int fd = FD_FUSE; started && fd <= FD_REPORT; fd++)
                started = fcntl(fd, F_GETFD) >= 0;
        if (!started) {
                (void)fputs(help, stderr);
                return 2;
        }
        be_called("remap-starter");     /* no keeper yet, which remap-upgrade would order to hand over */
        (void)signal(SIGXFSZ, SIG_IGN); /* a limit of the helper's caller: EFBIG, and not the daemon's end */
        r = begin_descriptors(/* heir= */ mode == 2);
        if (r == 0)
                r = privileges_drop_to_act(&PRIVILEGES, &error);
        if (r == 0)
                r = mode == 2 ? heir_take_over() : begin(/* mappable= */ mode == 1);
        if (r == 0 && (!shared->mappable || shared->checked))
                r = privileges_give_up(CAP_SYS_PTRACE); /* it is for caller_ids.h alone */
        if (r < 0) {
                char word = (char)-r;

                (void)!write(FD_REPORT, &word, 1); /* the reader may have exited */
                return EXIT_FAILURE;
        }
        keep();
}
