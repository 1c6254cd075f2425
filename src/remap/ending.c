/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"
#include "mount/dead_server.h"
#include "shared.h"
#include "split.h"

#define CLOSE_MS 5000               /* how long closing files on a server may take */
#define USERS_BASE ((off_t)1 << 62) /* state/state_dir.c says what lies where */

/*
 * Whether other mounts with ids "remap" have this filesystem: two containers of a pod may share it, and one must not end
 * what the other waits for. Each holds a lock for reading on a byte of the state's lock file, beyond all keys of locks.
 */
static bool lock_filesystem(short type)
{
        struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
        struct statx st;

        /* what the kernel knows by itself: a dead server is not asked */
        if (statx(FD_ROOT, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0)
                return false;
        lock.l_start = USERS_BASE + (off_t)makedev(st.stx_dev_major, st.stx_dev_minor);
        return fcntl(FD_LOCK, F_OFD_SETLK, &lock) == 0;
}

void ending_begin(void)
{
        struct statfs fs;

        shared->nfs =
                fstatfs(FD_ROOT, &fs) == 0 && (unsigned long)fs.f_type == NFS_SUPER_MAGIC && lock_filesystem(F_RDLCK);
}

/* A daemon that begins meanwhile does not close it. */
static void keep_descriptor(int fd)
{
        if (fd >= 0 && (uint32_t)fd < DESCRIPTORS_MAX)
                shared->uses[fd] = USE_ENDING;
}

/* Last: who closes a descriptor last waits for the server, and the keeper must not. */
static _Noreturn void close_all(pid_t keeper)
{
        (void)prctl(PR_SET_NAME, "remap-closer", 0, 0, 0); /* for ps; cannot fail */
        while (!__atomic_load_n(&shared->keeper_closed, __ATOMIC_ACQUIRE) && getppid() == keeper)
                (void)poll(NULL, 0, 1);
        (void)close_range(0, ~0U, 0); /* the rest is closed at exit */
        _exit(EXIT_SUCCESS);
}

/* Until the process that closes everything has ended, or the keeper has without one. */
static void force_until_closed(struct dead_server *server, pid_t keeper)
{
        while (shared->closer_pidfd >= 0 || getppid() == keeper) {
                struct pollfd closer = { .fd = shared->closer_pidfd, .events = POLLIN };

                if (poll(&closer, 1, DEAD_SERVER_TICK_MS) > 0)
                        return;
                (void)dead_server_look(server); /* the descriptors use the mount until the end */
        }
}

/* It shares the keeper's descriptors: a copy of them would be another user of each open file, and have to close it. */
static _Noreturn void force(void)
{
        const pid_t keeper = getppid();
        struct dead_server server = {};

        (void)prctl(PR_SET_NAME, "remap-forcer", 0, 0, 0); /* as above */
        while (!lock_filesystem(F_WRLCK)) {                /* another mount has it, or is just ending */
                if (getppid() != keeper)
                        _exit(EXIT_SUCCESS);
                (void)poll(NULL, 0, DEAD_SERVER_TICK_MS);
        }
        if (dead_server_begin(FD_ROOT, "", &server) == 0) {
                keep_descriptor(fileno(server.statistics));
                force_until_closed(&server, keeper);
        }
        if (server.statistics != NULL)
                descriptor_use(fileno(server.statistics), USE_NONE); /* it is closed */
        dead_server_end(&server);
        if (shared->closer_pidfd >= 0 && getppid() != keeper) /* all is closed, and the keeper has left the rest */
                (void)close(FD_ROOT);
        _exit(EXIT_SUCCESS);
}

/* Whether that process, whose end nothing waits for, still runs. */
static bool runs(int pidfd)
{
        struct pollfd process = { .fd = pidfd, .events = POLLIN };

        return pidfd >= 0 && poll(&process, 1, 0) == 0;
}

bool ending_forces(void)
{
        return runs(shared->force_pidfd);
}

/* The last one has ended, as it does where the mount may not be forced: nothing is left of it but its number. */
static void end_forcer(void)
{
        siginfo_t end;

        if (shared->force_pidfd < 0)
                return;
        /* fails for an earlier keeper's child */
        (void)waitid(P_PIDFD, (id_t)shared->force_pidfd, &end, WEXITED | WNOHANG);
        descriptor_end(shared->force_pidfd);
        shared->force_pidfd = -1;
}

void ending_force(void)
{
        if (!shared->nfs || ending_forces())
                return;
        end_forcer();
        if (split(&shared->force_pidfd) == 0)
                force();
        keep_descriptor(shared->force_pidfd);
}

/* Without waiting: the closer has them, too. Left is what the forcer needs, and nothing that is open on a server. */
static void close_ours(void)
{
        unsigned first = 0;

        for (unsigned fd = 0; fd < DESCRIPTORS_MAX; fd++)
                if (fd == FD_ROOT || fd == FD_LOCK || shared->uses[fd] == USE_ENDING) {
                        if (fd > first)
                                (void)close_range(first, fd - 1, 0);
                        first = fd + 1;
                }
        (void)close_range(first, ~0U, 0);
}

/* A process that closes everything that this one has, after this one. Returns a pidfd, kept open. */
static int begin_closer(void)
{
        const pid_t keeper = getpid();
        int pidfd;
        int pid;

        shared->keeper_closed = false;
        pid = (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0)
                close_all(keeper);
        pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
        keep_descriptor(pidfd);
        return pidfd;
}

/* After CLOSE_MS it is killed, and what it waits for is not done. */
static void end_closer(int pidfd)
{
        struct pollfd closer = { .fd = pidfd, .events = POLLIN };

        if (poll(&closer, 1, CLOSE_MS) == 0) {
                (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
                (void)poll(&closer, 1, CLOSE_MS);
        }
}

/*
 * No forcer needs them: the process that closes them has them together with the keeper, which closes none. A flush of a FUSE
 * filesystem's file cannot be killed: it is left to wait alone.
 */
static _Noreturn void close_apart(void)
{
        const int pid = split(&shared->closer_pidfd);

        if (pid == 0) {
                (void)prctl(PR_SET_NAME, "remap-closer", 0, 0, 0); /* as above */
                keep_descriptor(shared->closer_pidfd);
                close_ours();
                (void)close(FD_ROOT);
                _exit(EXIT_SUCCESS);
        }
        if (pid > 0)
                end_closer(shared->closer_pidfd);
        (void)close(FD_LOCK); /* of no file's */
        _exit(pid < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

_Noreturn void ending_close(void)
{
        int closer;

        if (!shared->nfs)
                close_apart();
        closer = begin_closer();
        if (closer < 0)
                _exit(EXIT_FAILURE);
        close_ours();
        __atomic_store_n(&shared->keeper_closed, true, __ATOMIC_RELEASE);
        shared->closer_pidfd = closer;
        if (poll(&(struct pollfd){ .fd = closer, .events = POLLIN }, 1, CLOSE_MS) == 0)
                ending_force();
        if (runs(shared->force_pidfd)) /* it has the rest, too, and goes on alone */
                _exit(EXIT_SUCCESS);
        end_closer(closer);
        /* the end of the mount, with the last descriptor of it, may wait for the server as well */
        closer = begin_closer();
        if (closer >= 0) {
                (void)close(FD_ROOT);
                __atomic_store_n(&shared->keeper_closed, true, __ATOMIC_RELEASE);
                end_closer(closer);
        }
        _exit(EXIT_SUCCESS);
}

void ending_leave(void)
{
        if (shared->nfs)
                return;
        (void)close(FD_LOCK); /* as above */
        _exit(EXIT_SUCCESS);
}
