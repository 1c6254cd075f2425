/* SPDX-License-Identifier: Apache-2.0 */
#include "process/exec_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/worker.h"

static _Noreturn void run(const struct exec_helper *runner, int fd, int parent)
{
        struct error ignored;
        int null_fd;

        worker_dies_with_parent(parent);
        /* above all our parent's ends of other runners, which would not see when it is gone */
        if ((fd > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0) < 0) ||
            close_range((unsigned)fd + 1, ~0U, 0) < 0)
                _exit(1);
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
            dup2(null_fd, STDERR_FILENO) < 0 || chdir("/") < 0 ||
            privileges_drop_for_tools(runner->privileges, &ignored) < 0)
                _exit(1);
        runner->serve(fd);
        _exit(0);
}

int exec_helper_begin(struct exec_helper *runner, struct error *error)
{
        int parent = getpid();
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return fail(error, errno, "socketpair", runner->name);
        runner->pid = fork();
        if (runner->pid == 0)
                run(runner, pair[1], parent);
        (void)close(pair[1]); /* the runner's */
        runner->fd = pair[0];
        if (runner->pid < 0) {
                int errnum = errno;

                fd_close(&runner->fd);
                runner->pid = 0;
                return fail(error, errnum, "fork", runner->name);
        }
        return 0;
}

void exec_helper_end(struct exec_helper *runner)
{
        siginfo_t end;

        fd_close(&runner->fd);
        if (runner->pid == 0)
                return;
        (void)kill(runner->pid, SIGKILL); /* it holds nothing; what it waits for dies with it */
        while (waitid(P_PID, (id_t)runner->pid, &end, WEXITED) < 0 && errno == EINTR)
                ;
        runner->pid = 0;
}
