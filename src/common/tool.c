/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privileges/tools.h"

#include "fd.h"
#include "privileges.h"
#include "runner.h"
#include "text.h"
#include "worker.h"

#define ARGUMENTS_MAX 8
#define NOT_RUN 127 /* the exit status of a child that could not become the command */

/*
 * Each is asked for no more than that it work without asking. -m 0 as kubelet's own mounter has it: no blocks set aside
 * for root on a volume. Nothing is forced: what mkfs itself takes for a filesystem it leaves alone.
 */
static const struct {
        const char *name;
        const char *arguments[ARGUMENTS_MAX]; /* before the device or directory */
        const char *keep_blocks[2];           /* how it is told not to discard */
        bool privileged; /* grows a mounted filesystem; or sets the block size of a device (mkfs.xfs) */
} tools[TOOLS] = {
        [TOOL_MKFS_EXT4] = { "mkfs.ext4", { "-q", "-m", "0" }, { "-E", "nodiscard" }, false },
        [TOOL_MKFS_XFS] = { "mkfs.xfs", { "-q" }, { "-K" }, true },
        [TOOL_MKFS_BTRFS] = { "mkfs.btrfs", { "-q" }, { "-K" }, false },
        [TOOL_E2FSCK] = { "e2fsck", { "-p" }, {}, false },
        [TOOL_RESIZE2FS] = { "resize2fs", {}, {}, true },
        [TOOL_XFS_GROWFS] = { "xfs_growfs", {}, {}, true },
        [TOOL_BTRFS_GROW] = { "btrfs", { "filesystem", "resize", "max" }, {}, true },
};

static const char *const directories[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

struct order {
        enum tool tool;
        unsigned timeout_seconds;
        bool keep_blocks;
        char argument[PATH_MAX];
};

struct answer {
        int errnum; /* 0: it ran, and ended with */
        int status;
        char output[TOOL_OUTPUT_SIZE];
};

/* ---- in the runner */

static void become(const char *path, const struct order *order, int output_fd, int parent)
{
        static const char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
        const char *arguments[ARGUMENTS_MAX + 4] = { tools[order->tool].name };
        struct error ignored;
        int count = 1;

        for (int i = 0; tools[order->tool].arguments[i] != NULL; i++)
                arguments[count++] = tools[order->tool].arguments[i];
        for (int i = 0; order->keep_blocks && i < 2 && tools[order->tool].keep_blocks[i] != NULL; i++)
                arguments[count++] = tools[order->tool].keep_blocks[i];
        arguments[count] = order->argument;
        worker_dies_with_parent(parent);
        if (!tools[order->tool].privileged && privileges_keep_none(&ignored) < 0)
                _exit(NOT_RUN);
        if (dup2(output_fd, STDOUT_FILENO) >= 0 && dup2(output_fd, STDERR_FILENO) >= 0)
                (void)execve(path, (char *const *)arguments, (char *const *)environment);
        _exit(NOT_RUN);
}

/* What it says, until it is done or out of time; only the end is kept. */
static bool listen_to(int fd, int64_t deadline_ms, char *output)
{
        size_t length = 0;

        for (;;) {
                struct pollfd wait = { .fd = fd, .events = POLLIN };
                int64_t left_ms = deadline_ms - worker_now_ms();
                struct timespec timeout = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };
                char bytes[TOOL_OUTPUT_SIZE / 2];
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
                if (length + (size_t)n >= TOOL_OUTPUT_SIZE) {
                        size_t dropped = length + (size_t)n - TOOL_OUTPUT_SIZE + 1;

                        (void)memmove(output, output + dropped, length - dropped);
                        length -= dropped;
                }
                (void)memcpy(output + length, bytes, (size_t)n);
                length += (size_t)n;
                output[length] = '\0';
        }
}

static void carry_out(const struct order *order, struct answer *ret_answer)
{
        int64_t deadline_ms = worker_now_ms() + (int64_t)order->timeout_seconds * 1000;
        char path[64] = "";
        bool in_time;
        int output[2];
        int status = 0;
        int self = getpid();
        pid_t pid;

        for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
                (void)snprintf(path, sizeof path, "%s/%s", directories[i], tools[order->tool].name);
                if (access(path, X_OK) == 0)
                        break;
                path[0] = '\0';
        }
        if (path[0] == '\0') {
                ret_answer->errnum = ENOENT;
                return;
        }
        if (pipe2(output, O_CLOEXEC) < 0) {
                ret_answer->errnum = errno;
                return;
        }
        pid = fork();
        if (pid == 0)
                become(path, order, output[1], self);
        ret_answer->errnum = pid < 0 ? errno : 0;
        (void)close(output[1]); /* the tool's alone now */
        in_time = pid < 0 || listen_to(output[0], deadline_ms, ret_answer->output);
        (void)close(output[0]); /* only read from */
        if (pid < 0)
                return;
        if (!in_time)
                (void)kill(pid, SIGKILL); /* ours, and not waited for yet */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (!in_time)
                ret_answer->errnum = ETIMEDOUT;
        else if (!WIFEXITED(status))
                ret_answer->errnum = ECANCELED;
        else if (WEXITSTATUS(status) == NOT_RUN)
                ret_answer->errnum = ENOEXEC;
        else
                ret_answer->status = WEXITSTATUS(status);
}

static void run_orders(int fd)
{
        static struct order order; /* static, for their size */
        static struct answer answer;

        while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
                answer = (struct answer){};
                order.argument[sizeof order.argument - 1] = '\0';
                if ((unsigned)order.tool < TOOLS && order.argument[0] == '/')
                        carry_out(&order, &answer);
                else
                        answer.errnum = EINVAL;
                if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
                        break;
        }
}

/* ---- in the program */

static struct runner runner = {
        .fd = -EBADF, .name = "the runner of commands", .privileges = &PRIVILEGES, .serve = run_orders
};

int tool_begin(int argc, char **argv, struct error *error)
{
        (void)argc;
        (void)argv;
        return runner_begin(&runner, error);
}

int tool_run(enum tool tool, const char *argument, bool keep_blocks, unsigned timeout_seconds, char *ret_output,
             struct error *error)
{
        static struct order order; /* static, for their size */
        static struct answer answer;
        const char *name = tools[tool].name;
        ssize_t n;

        order = (struct order){ .tool = tool, .timeout_seconds = timeout_seconds, .keep_blocks = keep_blocks };
        if (!text_copy(order.argument, sizeof order.argument, argument))
                return fail(error, ENAMETOOLONG, name, argument);
        if (send(runner.fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order)
                return fail(error, errno, "run command", name);
        do
                n = recv(runner.fd, &answer, sizeof answer, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof answer)
                return fail_because(error, n < 0 ? errno : ECANCELED, "run command", name, "nobody is there to run it");
        answer.output[sizeof answer.output - 1] = '\0';
        for (char *byte = answer.output; (byte = strchr(byte, '\n')) != NULL;)
                *byte = byte[1] == '\0' ? '\0' : ' ';
        text_make_printable(answer.output);
        (void)text_copy(ret_output, TOOL_OUTPUT_SIZE, answer.output);
        if (answer.errnum == ENOENT)
                return fail_because(error, ENOENT, "run command", name, "%s is not installed", name);
        if (answer.errnum == ETIMEDOUT)
                return fail_because(error, ETIMEDOUT, "run command", name, "%s was killed after %u seconds", name,
                                    timeout_seconds);
        if (answer.errnum == ECANCELED)
                return fail_because(error, ECANCELED, "run command", name, "%s died of a signal: %s", name, ret_output);
        return answer.errnum != 0 ? fail(error, answer.errnum, "run command", name) : answer.status;
}

void tool_end(void)
{
        runner_end(&runner);
}
