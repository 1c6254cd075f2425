/* SPDX-License-Identifier: Apache-2.0 */
#include "process/sealed_child.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privileges/parser.h"

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/sort.h"
#include "process/privileges.h"
#include "process/worker.h"

#define KEEP_MAX 80

static int compare_fds(const void *one, const void *other, const void *context)
{
        (void)context;
        return *(const int *)one - *(const int *)other;
}

/* Close all descriptors but these. Sorts them. */
static int keep_only(int *fds, size_t count)
{
        unsigned next = 0;

        sort_few(fds, count, sizeof *fds, compare_fds, NULL);
        for (size_t i = 0; i < count; i++) {
                unsigned fd = (unsigned)fds[i];

                if (fd > next && close_range(next, fd - 1, 0) < 0)
                        return -errno;
                next = fd + 1;
        }
        return close_range(next, ~0U, 0) < 0 ? -errno : 0;
}

static void child_run(sealed_child_function *function, void *argument, const int *keep_fds, size_t keep_count,
                      int socket_fd)
{
        struct error error = {};
        int keep[KEEP_MAX + 1];
        int r;

        for (size_t i = 0; i < keep_count; i++)
                keep[i] = keep_fds[i];
        keep[keep_count] = socket_fd;
        r = keep_only(keep, keep_count + 1);
        if (r < 0)
                r = fail(&error, -r, "close_range", "descriptors");
        else
                r = function(argument, &error);
        (void)fd_pass_send(socket_fd, r, &error); /* if it fails, the parent reads an end of file */
}

int sealed_child_run(sealed_child_function *function, void *argument, const int *keep_fds, size_t keep_count,
                     struct error *error)
{
        return sealed_child_run_attended(function, NULL, argument, keep_fds, keep_count, error);
}

int sealed_child_run_attended(sealed_child_function *function, sealed_child_attendant *attendant, void *argument,
                              const int *keep_fds, size_t keep_count, struct error *error)
{
        cleanup_close int ours = -EBADF;
        cleanup_close int theirs = -EBADF;
        cleanup_close int pidfd = -EBADF;
        int parent = (int)syscall(SYS_getpid);
        int sockets[2];
        siginfo_t end;
        long pid;
        int r;

        assert(keep_count <= KEEP_MAX);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return fail(error, errno, "socketpair", "the answer of a child process");
        ours = sockets[0];
        theirs = sockets[1];

        /* The raw system call: glibc's fork() changes data of the C library, which this process, itself a worker
         * (process/worker), shares with its parent. */
        pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
        if (pid < 0)
                return fail(error, errno, "clone", "a child process in the container");
        if (pid == 0) {
                worker_dies_with_parent(parent);
                child_run(function, argument, keep_fds, keep_count, theirs);
                (void)syscall(SYS_exit_group, 0); /* without the parent's atexit handlers */
        }
        fd_close(&theirs);
        r = fd_pass_receive(ours, error);
        if (r >= 0 && attendant != NULL) {
                int attended = attendant((int)pid, argument, error);

                if (attended < 0) {
                        fd_close(&r);
                        r = attended;
                }
        }
        /* it has answered or died; killed, because the container's root may have stopped it */
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        while (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED) < 0 && errno == EINTR)
                ;
        return r;
}

/* ---- one question about data that others wrote, answered by a process without any privilege: for a program */

#define NO_ANSWER 255
#define SECONDS 10 /* until it is killed */

static _Noreturn void run(unprivileged_function *function, void *argument, int parent)
{
        struct error ignored;

        worker_dies_with_parent(parent);
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(SECONDS);
        if (close_range(0, ~0U, 0) < 0 || privileges_drop(&PRIVILEGES, &ignored) < 0)
                _exit(NO_ANSWER);
        _exit((int)(function(argument) & NO_ANSWER));
}

int unprivileged_ask(unprivileged_function *function, void *argument)
{
        int parent = getpid();
        pid_t pid = fork();
        siginfo_t end;

        if (pid == 0)
                run(function, argument, parent);
        if (pid < 0)
                return -1;
        while (waitid(P_PID, (id_t)pid, &end, WEXITED) < 0)
                if (errno != EINTR)
                        return -1;
        return end.si_code == CLD_EXITED && end.si_status != NO_ANSWER ? end.si_status : -1;
}

void *unprivileged_memory(size_t size)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}
