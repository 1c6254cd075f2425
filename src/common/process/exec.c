/* SPDX-License-Identifier: Apache-2.0 */
#include "process/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "process/privileges.h"
#include "process/worker.h"

#define NOT_RUN 127 /* exit status of a child whose execve failed */

static const char *const directories[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

static void become(const struct exec *command, const char *path, int output_fd, int parent)
{
        static const char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
        int report_fd = command->report_fd < 0 ? output_fd : command->report_fd;
        struct error ignored;

        worker_dies_with_parent(parent);
        if (!command->privileged && privileges_keep_none(&ignored) < 0)
                _exit(NOT_RUN);
        /* close what the caller left open */
        if (dup2(report_fd, STDOUT_FILENO) >= 0 && dup2(output_fd, STDERR_FILENO) >= 0 &&
            close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                (void)execve(path, (char *const *)command->arguments, (char *const *)environment);
        _exit(NOT_RUN);
}

/* Read the output until it ends (true) or the time is over (false). Only the last part is kept. */
static bool listen_to(int fd, int64_t deadline_ms, char *output)
{
        size_t length = 0;

        for (;;) {
                struct pollfd wait = { .fd = fd, .events = POLLIN };
                int64_t left_ms = deadline_ms - clock_now_ms();
                struct timespec timeout = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };
                char bytes[COMMAND_OUTPUT_SIZE / 2];
                ssize_t n;

                if (left_ms <= 0)
                        return false;
                n = ppoll(&wait, 1, &timeout, NULL);
                if (n <= 0)
                        continue;
                n = read(fd, bytes, sizeof bytes);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return true;
                if (length + (size_t)n >= COMMAND_OUTPUT_SIZE) {
                        size_t dropped = length + (size_t)n - COMMAND_OUTPUT_SIZE + 1;

                        (void)memmove(output, output + dropped, length - dropped);
                        length -= dropped;
                }
                (void)memcpy(output + length, bytes, (size_t)n);
                length += (size_t)n;
                output[length] = '\0';
        }
}

void exec_run(const struct exec *command, struct exec_end *ret_end)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)command->timeout_seconds * 1000;
        char path[PATH_MAX] = "";
        bool in_time;
        int output[2];
        int status = 0;
        int self = getpid();
        pid_t pid;

        if (command->path != NULL)
                (void)text_copy(path, sizeof path, command->path); /* as long as one can be */
        for (size_t i = 0; path[0] == '\0' && i < sizeof directories / sizeof directories[0]; i++) {
                (void)snprintf(path, sizeof path, "%s/%s", directories[i], command->name);
                if (access(path, X_OK) < 0)
                        path[0] = '\0';
        }
        if (path[0] == '\0') {
                ret_end->errnum = ENOENT;
                return;
        }
        if (pipe2(output, O_CLOEXEC) < 0) {
                ret_end->errnum = errno;
                return;
        }
        pid = fork();
        if (pid == 0)
                become(command, path, output[1], self);
        ret_end->errnum = pid < 0 ? errno : 0;
        (void)close(output[1]); /* the child has it */
        in_time = pid < 0 || listen_to(output[0], deadline_ms, ret_end->output);
        (void)close(output[0]); /* only read from */
        if (pid < 0)
                return;
        if (!in_time)
                (void)kill(pid, SIGKILL); /* our child, not waited for: the pid is valid */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (!in_time)
                ret_end->errnum = ETIMEDOUT;
        else if (!WIFEXITED(status))
                ret_end->errnum = ECANCELED;
        else if (WEXITSTATUS(status) == NOT_RUN)
                ret_end->errnum = ENOEXEC;
        else
                ret_end->status = WEXITSTATUS(status);
        for (char *byte = ret_end->output; (byte = strchr(byte, '\n')) != NULL;)
                *byte = byte[1] == '\0' ? '\0' : ' ';
        text_make_printable(ret_end->output);
}

int exec_check(const char *name, const struct exec_end *end, unsigned timeout_seconds, struct error *error)
{
        if (end->errnum == ENOENT)
                return fail_because(error, ENOENT, "run command", name, "%s is not installed", name);
        if (end->errnum == ETIMEDOUT)
                return fail_because(error, ETIMEDOUT, "run command", name, "%s was killed after %u seconds", name,
                                    timeout_seconds);
        if (end->errnum == ECANCELED)
                return fail_because(error, ECANCELED, "run command", name, "%s was killed by a signal: %s", name,
                                    end->output);
        return end->errnum != 0 ? fail(error, end->errnum, "run command", name) : end->status;
}
