/* SPDX-License-Identifier: Apache-2.0 */
#include "process/exec_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "process/exec.h"
#include "process/program.h"
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

/* ---- an external program with subcommands that prints JSON reports: lvm, pmem-namespaces */

#define WORDS_MAX 48
#define TIMEOUT_SECONDS 300

struct order {
        bool reports;
        char words[16384]; /* each terminated by NUL; an empty word is last */
};

/* ---- in the exec helper */

static void carry_out(const struct exec_json *program, const struct order *order, int report_fd,
                      struct exec_end *ret_end)
{
        const char *arguments[WORDS_MAX] = { program->name };
        char path[PATH_MAX] = "";
        const struct exec command = { .name = program->name,
                                      .path = program->own ? path : NULL,
                                      .arguments = arguments,
                                      .timeout_seconds = TIMEOUT_SECONDS,
                                      .privileged = true,
                                      .report_fd = report_fd };
        const char *const *extra;
        const char *word = order->words;
        int count = 1;

        if (!text_among(word, program->known)) {
                ret_end->errnum = EINVAL;
                return;
        }
        if (program->own && !program_find_sibling(program->name, path)) {
                ret_end->errnum = ENOENT;
                return;
        }
        arguments[count++] = word;
        for (word += strlen(word) + 1; *word != '\0' && count < WORDS_MAX - 4; word += strlen(word) + 1)
                if (program->take == NULL || !program->take(word))
                        arguments[count++] = word;
        for (extra = program->extra != NULL ? program->extra() : NULL; extra != NULL && *extra != NULL;)
                arguments[count++] = *extra++;
        exec_run(&command, ret_end);
}

void exec_json_serve(int fd, const struct exec_json *program)
{
        static struct order order;
        static struct exec_end answer;

        while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
                cleanup_close int report_fd = order.reports ? memfd_create("report", MFD_CLOEXEC) : -EBADF;
                const struct error error = { .errnum = EIO };

                answer = (struct exec_end){};
                order.words[sizeof order.words - 1] = order.words[sizeof order.words - 2] = '\0';
                carry_out(program, &order, report_fd, &answer);
                if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer ||
                    (order.reports && fd_pass_send(fd, report_fd, &error) < 0))
                        break;
        }
}

/* ---- in the program */

static int put_words(const char *const *words, struct order *order, struct error *error)
{
        size_t length = 0;

        for (size_t i = 0; words[i] != NULL; i++) {
                size_t size = strlen(words[i]) + 1;

                if (i >= WORDS_MAX - 8 || size == 1 || length + size + 2 > sizeof order->words)
                        return fail(error, E2BIG, "run command", words[i]);
                (void)memcpy(order->words + length, words[i], size);
                length += size;
        }
        return 0;
}

int exec_json_run(struct exec_helper *helper, const struct exec_json *program, const char *const *words,
                  json_t **ret_report, struct error *error)
{
        static struct order order;
        static struct exec_end answer;
        cleanup_close int report_fd = -EBADF;
        ssize_t n;
        int r;

        order = (struct order){ .reports = ret_report != NULL };
        if ((r = put_words(words, &order, error)) < 0)
                return r;
        helper->ordered = true;
        if (helper->fd < 0 || send(helper->fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order)
                return fail_because(error, ENOSYS, "run command", program->name,
                                    "this program was started without a helper process to run %s", program->name);
        do
                n = recv(helper->fd, &answer, sizeof answer, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof answer)
                return fail_because(error, ECANCELED, "run command", program->name,
                                    "the helper process that runs it has exited");
        if (ret_report != NULL && (report_fd = fd_pass_receive(helper->fd, error)) < 0)
                return report_fd;
        helper->ordered = false;
        r = exec_check(program->name, &answer, TIMEOUT_SECONDS, error);
        if (r == -ENOENT) /* callers take ENOENT for a missing volume */
                return fail_because(error, ENOPKG, "run command", program->name, "%s is not installed", program->name);
        if (r < 0)
                return r;
        if (r > 0)
                return fail_because(error, EIO, "run command", program->name, "%s %s: %s", program->name, words[0],
                                    answer.output);
        if (ret_report == NULL)
                return 0;
        return lseek(report_fd, 0, SEEK_SET) == 0 &&
                               json_file_load_fd(report_fd, program->name, JSON_OBJECT, ret_report, error) == 0
                       ? 0
                       : fail_because(error, EPROTO, "run command", program->name, "its report is not JSON");
}
