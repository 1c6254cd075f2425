/* SPDX-License-Identifier: Apache-2.0 */
#include "process/exec_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/interrupt.h"
#include "process/worker.h"

static _Noreturn void run(const struct exec_helper *helper, int fd, int parent)
{
        struct error ignored;
        int null_fd;

        worker_dies_with_parent(parent);
        interrupt_ignore();
        /* in particular the parent's sockets of other helpers, which would not see the parent exit */
        if ((fd > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0) < 0) ||
            close_range((unsigned)fd + 1, ~0U, 0) < 0)
                _exit(1);
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
            dup2(null_fd, STDERR_FILENO) < 0 || chdir("/") < 0 ||
            privileges_drop_for_tools(helper->privileges, &ignored) < 0)
                _exit(1);
        helper->serve(fd);
        _exit(0);
}

int exec_helper_begin(struct exec_helper *helper, struct error *error)
{
        int parent = getpid();
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return fail(error, errno, "socketpair", helper->name);
        helper->pid = fork();
        if (helper->pid == 0)
                run(helper, pair[1], parent);
        (void)close(pair[1]); /* the helper has it */
        helper->fd = pair[0];
        if (helper->pid < 0) {
                int errnum = errno;

                fd_close(&helper->fd);
                helper->pid = 0;
                return fail(error, errnum, "fork", helper->name);
        }
        return 0;
}

void exec_helper_end(struct exec_helper *helper)
{
        siginfo_t end;

        fd_close(&helper->fd);
        if (helper->pid == 0)
                return;
        (void)kill(helper->pid, SIGKILL); /* it has nothing to clean up; its child dies with it */
        while (waitid(P_PID, (id_t)helper->pid, &end, WEXITED) < 0 && errno == EINTR)
                ;
        helper->pid = 0;
}

bool exec_helper_end_ordered(struct exec_helper *helper)
{
        if (!helper->ordered || helper->pid == 0)
                return false;
        exec_helper_end(helper);
        return true;
}
