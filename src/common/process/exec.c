/* SPDX-License-Identifier: Apache-2.0 */
#include "process/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "process/privileges.h"
#include "process/worker.h"

#define NOT_RUN 127            /* exit status of a child whose execve failed */
#define STACK_SIZE_BYTES 65536 /* of a child until it has executed the program */

/* The output that is kept: its first bytes, GAP where something is missing, its last bytes. */
#define TAIL (COMMAND_OUTPUT_SIZE / 2) /* where the last part begins */
#define GAP " ... "
#define PART (COMMAND_OUTPUT_SIZE / 8) /* what is read at once */

static const char *const directories[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

struct child {
        const struct exec *command;
        const char *path;
        int output_fd;
        int parent;
};

/* Returns an exit status if the program cannot be executed. Else its frame stays on the stack, of which the sanitizers must not know. */
__attribute__((no_sanitize_address)) static int become(void *argument)
{
        static const char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
        const struct child *child = argument;
        const struct exec *command = child->command;
        int report_fd = command->report_fd < 0 ? child->output_fd : command->report_fd;
        struct error ignored;

        worker_dies_with_parent(child->parent);
        /* before a signal may end it: it takes memory, of which a half is not to be left to the helper, whose heap it is */
        if (!command->privileged && privileges_keep_none(&ignored) < 0)
                return NOT_RUN;
        interrupt_default();
        /* close what the caller left open */
        if (dup2(report_fd, STDOUT_FILENO) >= 0 && dup2(child->output_fd, STDERR_FILENO) >= 0 &&
            close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                (void)execve(child->path, (char *const *)command->arguments, (char *const *)environment);
        return NOT_RUN;
}

/*
 * As fork(), but the child uses this process's memory, and this process sleeps, until the child executes the program: no page
 * table is copied, and no page that either of them writes to. An execve() that hangs ends with this process, which whoever
 * gave the order kills.
 */
static pid_t start(struct child *child)
{
        static char stack[STACK_SIZE_BYTES] __attribute__((aligned(16))); /* one child at a time is on it */

        privileges_stay_undumpable(); /* a child without capabilities could be opened, and this memory with it */
        return clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, child);
}

/*
 * Of a long output the first and the last part are kept: a program that is misused says why before it prints its usage,
 * and one that fails says why after its warnings.
 */
static size_t keep(char *output, size_t length, const char *bytes, size_t count)
{
        size_t dropped = length + count >= COMMAND_OUTPUT_SIZE ? length + count - COMMAND_OUTPUT_SIZE + 1 : 0;

        if (dropped > 0) {
                (void)memmove(output + TAIL, output + TAIL + dropped, length - TAIL - dropped);
                (void)memcpy(output + TAIL - strlen(GAP), GAP, strlen(GAP));
        }
        (void)memcpy(output + length - dropped, bytes, count);
        length += count - dropped;
        output[length] = '\0';
        return length;
}

enum ending { ENDED, TOO_LATE, CALLED_OFF };

/* Read the output until it ends, the time is over, or something can be read of call_off_fd. */
static enum ending listen_to(int fd, int call_off_fd, int64_t deadline_ms, char *output)
{
        size_t length = 0;

        for (;;) {
                struct pollfd wait[] = { { .fd = fd, .events = POLLIN }, { .fd = call_off_fd, .events = POLLIN } };
                int64_t left_ms = deadline_ms - clock_now_ms();
                struct timespec timeout = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };
                char bytes[PART];
                ssize_t n;

                if (left_ms <= 0)
                        return TOO_LATE;
                n = ppoll(wait, call_off_fd > 0 ? 2 : 1, &timeout, NULL);
                if (n <= 0)
                        continue;
                if (wait[1].revents != 0)
                        return CALLED_OFF;
                n = read(fd, bytes, sizeof bytes);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return ENDED;
                length = keep(output, length, bytes, (size_t)n);
        }
}

bool exec_find(const char *name, char *ret_path)
{
        for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
                if (snprintf(ret_path, PATH_MAX, "%s/%s", directories[i], name) < PATH_MAX &&
                    access(ret_path, X_OK) == 0)
                        return true;
        return false;
}

void exec_run(const struct exec *command, struct exec_end *ret_end)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)command->timeout_seconds * 1000;
        char path[PATH_MAX] = "";
        enum ending ending;
        int output[2];
        int status = 0;
        struct child child = { .command = command, .path = path, .parent = getpid() };
        pid_t pid;

        if (command->path != NULL)
                (void)text_copy(path, sizeof path, command->path); /* as long as one can be */
        if (path[0] == '\0' && !exec_find(command->name, path)) {
                ret_end->errnum = ENOENT;
                return;
        }
        if (pipe2(output, O_CLOEXEC) < 0) {
                ret_end->errnum = errno;
                return;
        }
        child.output_fd = output[1];
        pid = start(&child);
        ret_end->errnum = pid < 0 ? errno : 0;
        (void)close(output[1]); /* the child has it */
        ending = pid < 0 ? ENDED : listen_to(output[0], command->call_off_fd, deadline_ms, ret_end->output);
        (void)close(output[0]); /* only read from */
        if (pid < 0)
                return;
        if (ending != ENDED)
                (void)kill(pid, SIGKILL); /* our child, not waited for: the pid is valid */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (ending == TOO_LATE)
                ret_end->errnum = ETIMEDOUT;
        else if (ending == CALLED_OFF || !WIFEXITED(status))
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
        if (end->errnum == ECANCELED && interrupt_check("run command", name, error) < 0) /* ^C is for both */
                return -ECANCELED;
        if (end->errnum == ECANCELED)
                return fail_because(error, ECANCELED, "run command", name, "%s was killed by a signal%s%s", name,
                                    end->output[0] != '\0' ? ": " : "", end->output);
        return end->errnum != 0 ? fail(error, end->errnum, "run command", name) : end->status;
}

int exec_own_directory(char *ret_dir)
{
        ssize_t n = readlink("/proc/self/exe", ret_dir, PATH_MAX - 1);
        char *slash;

        if (n < 0)
                return -errno;
        ret_dir[n] = '\0';
        slash = strrchr(ret_dir, '/');
        if (slash == NULL)
                return -ENOENT;
        *slash = '\0';
        return 0;
}

void exec_beside(const char *name, char **argv, struct error *error)
{
        char dir[PATH_MAX];
        char path[PATH_MAX];
        int r = exec_own_directory(dir);

        if (r < 0) {
                error_set(error, -r, "readlink", "/proc/self/exe");
                return;
        }
        if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) {
                error_set(error, ENAMETOOLONG, "execve", dir);
                return;
        }
        (void)execve(path, argv, environ);
        error_set(error, errno, "execve", path);
}
