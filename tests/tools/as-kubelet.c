/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as-kubelet - run a driver as kubelet does: standard output and error in one pipe, read until all have closed it.
 *
 *   as-kubelet SECONDS FILE COMMAND [ARG...]
 *
 * FILE is what was read. After SECONDS the command, and all of its process group, which is this process's, gets SIGTERM, and the
 * command SIGKILL after five more: the exit status is 124 then. Else it is the command's, or 128 and the signal that it died of.
 * SIGTERM, SIGINT and SIGHUP are passed on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AFTER_TERM_MS 5000

static void die(const char *what)
{
        fprintf(stderr, "as-kubelet: %s: %s\n", what, strerror(errno));
        exit(125);
}

static volatile pid_t child;

/* As timeout(1) does. */
static void pass_on(int number)
{
        signal(number, SIG_IGN);
        kill(child, number);
        kill(0, number);
        kill(child, SIGCONT);
}

static long now_ms(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What can be read goes to the file. False: nobody has the pipe any more. */
static bool copy(int from, int to)
{
        char text[65536];
        ssize_t n = read(from, text, sizeof text);

        if (n < 0 && errno != EINTR)
                die("read");
        if (n > 0 && write(to, text, (size_t)n) != n)
                die("write");
        return n != 0;
}

int main(int argc, char **argv)
{
        int ends[2], file, status;
        bool late = false;
        long until;

        if (argc < 4) {
                fprintf(stderr, "usage: as-kubelet SECONDS FILE COMMAND [ARG...]\n");
                return 125;
        }
        until = now_ms() + atol(argv[1]) * 1000;
        file = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file < 0)
                die(argv[2]);
        setpgid(0, 0);
        if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0)
                die("fork");
        if (child == 0) {
                if (dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0)
                        _exit(125);
                execvp(argv[3], argv + 3);
                fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
                _exit(errno == ENOENT ? 127 : 126);
        }
        signal(SIGTERM, pass_on);
        signal(SIGINT, pass_on);
        signal(SIGHUP, pass_on);
        close(ends[1]);
        for (;;) {
                struct pollfd pipe = { .fd = ends[0], .events = POLLIN };
                long left = until - now_ms();

                if (poll(&pipe, 1, left > 0 ? (int)left : 0) > 0) {
                        if (!copy(ends[0], file))
                                break;
                } else if (left <= 0) {
                        if (late)
                                kill(child, SIGKILL);
                        else
                                pass_on(SIGTERM);
                        late = true;
                        until = now_ms() + AFTER_TERM_MS;
                }
        }
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        die("waitpid");
        if (late)
                return 124;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
