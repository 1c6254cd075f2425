/* SPDX-License-Identifier: Apache-2.0 */
#include "block/freeze.h"

#include <errno.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "process/worker.h"

#define THAW_TRIES 5

/* A filesystem that stays frozen is worse than any other failure. */
static int thaw(int dir_fd)
{
        for (int i = 0; i < THAW_TRIES; i++) {
                if (ioctl(dir_fd, FITHAW, 0) == 0)
                        return 0;
                if (errno == EINVAL)
                        return EINVAL; /* it is not frozen */
        }
        return errno;
}

/* ---- in the process that thaws */

/* Until the program says so or has ended, or the time is over. Returns whether it said so. */
static bool wait_for_end(int socket_fd, unsigned seconds)
{
        const int64_t until_ms = clock_now_ms() + (int64_t)seconds * 1000;
        char order;

        for (;;) {
                struct pollfd wait = { .fd = socket_fd, .events = POLLIN };
                int64_t left_ms = until_ms - clock_now_ms();
                struct timespec timeout = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };

                if (left_ms <= 0)
                        return false;
                if (ppoll(&wait, 1, &timeout, NULL) > 0)
                        return recv(socket_fd, &order, sizeof order, 0) == 1;
        }
}

static void serve(int socket_fd)
{
        static const int ignored_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
        cleanup_close int dir_fd = -EBADF;
        struct error ignored;
        unsigned seconds;
        bool told;
        bool ended;
        int result;

        for (size_t i = 0; i < sizeof ignored_signals / sizeof ignored_signals[0]; i++)
                (void)signal(ignored_signals[i], SIG_IGN); /* what ends the program's group must not end this */
        dir_fd = fd_pass_receive(socket_fd, &ignored);
        if (dir_fd < 0 || recv(socket_fd, &seconds, sizeof seconds, 0) != (ssize_t)sizeof seconds)
                return;
        result = ioctl(dir_fd, FIFREEZE, 0) < 0 ? errno : 0;
        told = send(socket_fd, &result, sizeof result, MSG_NOSIGNAL) == (ssize_t)sizeof result;
        if (result != 0)
                return;
        ended = told && wait_for_end(socket_fd, seconds);
        result = thaw(dir_fd);
        if (ended)
                (void)send(socket_fd, &result, sizeof result, MSG_NOSIGNAL); /* without it the program thaws, too */
}

/* ---- in the program */

/* What the other process answers: an errno value, 0 success. False: it has ended. */
static bool receive(int socket_fd, int *ret_result)
{
        ssize_t n;

        do
                n = recv(socket_fd, ret_result, sizeof *ret_result, 0);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof *ret_result;
}

int freeze_begin(int dir_fd, unsigned seconds, struct freeze *ret_freeze, struct error *error)
{
        cleanup_close int ours = -EBADF;
        cleanup_close int theirs = -EBADF;
        const struct error none = {};
        int sockets[2];
        int result;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return fail(error, errno, "socketpair", "the process that thaws");
        ours = sockets[0];
        theirs = sockets[1];
        worker_leave_behind(serve, theirs);
        fd_close(&theirs);
        if (fd_pass_send(ours, dir_fd, &none) < 0 ||
            send(ours, &seconds, sizeof seconds, MSG_NOSIGNAL) != (ssize_t)sizeof seconds)
                return fail(error, errno, "freeze filesystem", "the process that thaws");
        if (!receive(ours, &result)) {
                (void)thaw(dir_fd); /* it may have frozen it before it was killed */
                return fail_because(error, ECANCELED, "freeze filesystem", "the process that thaws", "it was killed");
        }
        if (result == EBUSY)
                return fail_because(error, EBUSY, "freeze filesystem", "its mount",
                                    "it is frozen already; if no other program needs that, run fsfreeze --unfreeze");
        if (result != 0)
                return fail(error, result, "freeze filesystem", "its mount");
        *ret_freeze = (struct freeze){ .dir_fd = dir_fd, .socket_fd = fd_take(&ours) };
        return 0;
}

int freeze_end(struct freeze *freeze, struct error *error)
{
        const char order = 0;
        int result;
        bool ended;

        if (freeze->socket_fd < 0)
                return 0;
        ended = send(freeze->socket_fd, &order, sizeof order, MSG_NOSIGNAL) == (ssize_t)sizeof order &&
                receive(freeze->socket_fd, &result) && result == 0;
        fd_close(&freeze->socket_fd);
        if (ended || thaw(freeze->dir_fd) == 0) /* frozen till now, though the other process was killed, or failed */
                return 0;
        return fail_because(error, ETIMEDOUT, "freeze filesystem", "its mount",
                            "it took too long, and the filesystem was thawed before it was done");
}

void freeze_undo(int dir_fd)
{
        (void)thaw(dir_fd);
}
