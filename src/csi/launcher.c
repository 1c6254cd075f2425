/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "process/privileges.h"
#include "process/program.h"
#include "process/worker.h"
#include "state/config.h"
#include "state/state_dir.h"

/* What RPCs are made of. Nothing else is started, whatever the order says. */
static const char *const programs[] = {
        "volume-create",       "volume-expand",
        "volume-snapshot",     "volume-delete",
        "volume-list",         "volume-capacity",
        "volume-reconcile",    "host-check",
        "verbs/detach",        "verbs/mountdevice",
        "verbs/unmountdevice", "verbs/mount",
        "verbs/unmount",       NULL,
};

/* Of the service manager, and about this process alone. */
static const char *const not_inherited[] = { "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "NOTIFY_SOCKET=", NULL };

/* A program that runs. */
struct child {
        pid_t pid;
        int pidfd;
        uint32_t id;
        uint64_t alone;    /* what it has alone; 0: nothing */
        struct state lock; /* of that, which it inherited */
};

#define LOCKS "csi" /* the directory of the state directory */

static int order_fd;
static int null_fd;
static struct child children[LAUNCHER_PROGRAMS];
static size_t child_count;

/* What came with an order. */
struct received {
        char bytes[LAUNCHER_ORDER_BYTES];
        size_t length;
        int fds[2];
        char *arguments[LAUNCHER_ARGUMENTS + 1];
};

static void take_descriptors(struct msghdr *message, int *ret_fds)
{
        struct cmsghdr *header = CMSG_FIRSTHDR(message);

        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(2 * sizeof(int)))
                memcpy(ret_fds, CMSG_DATA(header), 2 * sizeof(int));
}

/* The next order; false: there will be none. */
static bool receive(struct received *order)
{
        struct iovec part = { .iov_base = order->bytes, .iov_len = sizeof order->bytes };
        char control[CMSG_SPACE(2 * sizeof(int))];
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
        };
        ssize_t length;

        order->fds[0] = order->fds[1] = -EBADF;
        while ((length = recvmsg(order_fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
                ;
        order->length = length > 0 ? (size_t)length : 0;
        if (length > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
                take_descriptors(&message, order->fds);
        return length > 0;
}

/* The texts of an order as an argv. Whether it is one, of a program that we start, in ret_path. */
static bool read_order(struct received *order, char *ret_path)
{
        struct launcher_order head;
        size_t at = sizeof head;
        size_t count = 0;

        if (order->length <= sizeof head || order->fds[0] < 0 || order->bytes[order->length - 1] != '\0')
                return false;
        memcpy(&head, order->bytes, sizeof head);
        while (at < order->length && count < LAUNCHER_ARGUMENTS) {
                order->arguments[count++] = order->bytes + at;
                at += strlen(order->bytes + at) + 1;
        }
        order->arguments[count] = NULL;
        return at == order->length && count == head.texts && text_among(order->arguments[0], programs) &&
               program_find_sibling(order->arguments[0], ret_path);
}

/*
 * Returns 0 or errno. Where there can be no locks, the program itself says what is wrong.
 *
 * The lock belongs to the open file, which the program inherits and this process keeps. A process of the program's may
 * live for a moment longer, or hang, with the file open: so this process unlocks it when the program has ended. Only when
 * it is gone itself does the last close.
 */
static int take_lock(uint64_t alone, struct state *ret_lock)
{
        static char state_dir[PATH_MAX];
        static struct error ignored;

        if (alone == 0 || config_state_dir(state_dir, &ignored) < 0 ||
            state_open(state_dir, LOCKS, /* create= */ true, ret_lock, &ignored) < 0)
                return 0;
        return !state_try_lock(ret_lock, alone) && errno == EAGAIN ? EINPROGRESS : 0;
}

/* As a program expects it, whatever this process blocks and ignores. It inherits the lock. Returns 0 or errno. */
static int start(const struct received *order, const char *path, int lock_fd, pid_t *ret_pid)
{
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        sigset_t none;
        sigset_t all;
        int r;

        (void)sigemptyset(&none); /* none of these fails for what is given here */
        (void)sigfillset(&all);
        if ((r = posix_spawnattr_init(&attributes)) != 0)
                return r;
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if ((r = posix_spawn_file_actions_init(&files)) == 0) {
                if ((r = posix_spawn_file_actions_adddup2(&files, order->fds[0], STDIN_FILENO)) == 0 &&
                    (r = posix_spawn_file_actions_adddup2(&files, order->fds[1], STDOUT_FILENO)) == 0 &&
                    (r = posix_spawn_file_actions_adddup2(&files, null_fd, STDERR_FILENO)) == 0 &&
                    (lock_fd < 0 || (r = posix_spawn_file_actions_adddup2(&files, lock_fd, WORKER_GIVEN_FD)) == 0))
                        r = posix_spawn(ret_pid, path, &files, &attributes, order->arguments, environ);
                (void)posix_spawn_file_actions_destroy(&files);
        }
        (void)posix_spawnattr_destroy(&attributes);
        return r;
}

static void say(const struct launcher_end *end)
{
        while (send(order_fd, end, sizeof *end, MSG_NOSIGNAL) < 0 && errno == EINTR)
                ;
}

static void carry_out(struct received *order)
{
        struct launcher_end end = { .status = -1 };
        struct launcher_order head = {};
        cleanup_state struct state lock = STATE_NONE;
        struct child *child = &children[child_count];
        char path[PATH_MAX];

        if (order->length >= sizeof head)
                memcpy(&head, order->bytes, sizeof head);
        end.id = head.id;
        if (!read_order(order, path))
                end.error = ENOENT;
        else if ((end.error = take_lock(head.alone, &lock)) == 0 &&
                 (end.error = start(order, path, lock.lock_fd, &child->pid)) == 0) {
                child->id = end.id;
                child->alone = lock.lock_fd >= 0 ? head.alone : 0;
                child->lock = lock;
                lock = (struct state)STATE_NONE;
                child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
                if (child->pidfd < 0)
                        abort(); /* the service starts anew; the call is repeated */
                child_count++;
        }
        fd_close(&order->fds[0]);
        fd_close(&order->fds[1]);
        if (end.error != 0)
                say(&end);
}

static void reap(struct child *child)
{
        struct launcher_end end = { .id = child->id, .status = -1 };
        siginfo_t info = {};

        while (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED) < 0 && errno == EINTR)
                ;
        if (info.si_code == CLD_EXITED)
                end.status = info.si_status;
        else
                end.signal = info.si_status;
        (void)close(child->pidfd);
        if (child->alone != 0)
                state_unlock(&child->lock, child->alone);
        state_release(&child->lock);
        *child = children[--child_count];
        say(&end);
}

static _Noreturn void serve(void)
{
        static struct received order;
        struct pollfd wait[LAUNCHER_PROGRAMS + 1];

        for (;;) {
                size_t count = child_count;

                /* orders beyond the number stay in the socket */
                wait[0] = (struct pollfd){ .fd = order_fd, .events = count < LAUNCHER_PROGRAMS ? POLLIN : 0 };
                for (size_t i = 0; i < count; i++)
                        wait[i + 1] = (struct pollfd){ .fd = children[i].pidfd, .events = POLLIN };
                if (poll(wait, count + 1, -1) < 0)
                        continue;                  /* a signal */
                for (size_t i = count; i > 0; i--) /* from the end: reap() moves the last */
                        if (wait[i].revents != 0)
                                reap(&children[i - 1]);
                if ((wait[0].revents & (POLLHUP | POLLERR)) != 0 ||
                    ((wait[0].revents & POLLIN) != 0 && !receive(&order)))
                        _exit(0);
                if ((wait[0].revents & POLLIN) != 0)
                        carry_out(&order);
        }
}

static void clean_environment(void)
{
        char **kept = environ;

        for (char **variable = environ; *variable != NULL; variable++) {
                bool drop = false;

                for (size_t i = 0; not_inherited[i] != NULL; i++)
                        drop = drop || text_starts(*variable, not_inherited[i]);
                if (!drop)
                        *kept++ = *variable;
        }
        *kept = NULL;
}

/*
 * In the child: nothing open but the socket and /dev/null, and no signal that ends it before its parent does. It takes no
 * order of a driver that has ended: that lies in the socket still, and the next driver may have done what reverses it.
 */
static _Noreturn void run(int fd, int parent)
{
        worker_dies_with_parent(parent);
        if (dup2(fd, STDERR_FILENO + 1) < 0 || fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC) < 0 ||
            close_range(STDERR_FILENO + 2, ~0U, 0) < 0 || chdir("/") < 0)
                _exit(1);
        order_fd = STDERR_FILENO + 1;
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
            dup2(null_fd, STDERR_FILENO) < 0)
                _exit(1);
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGHUP, SIG_IGN);
        privileges_stay_undumpable();
        clean_environment();
        serve();
}

int launcher_begin(struct error *error)
{
        int parent = getpid();
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return fail(error, errno, "socketpair", "the launcher");
        pid = fork();
        if (pid == 0)
                run(pair[1], parent);
        (void)close(pair[1]); /* the launcher has it */
        if (pid < 0) {
                int errnum = errno;

                (void)close(pair[0]);
                return fail(error, errnum, "fork", "the launcher");
        }
        return pair[0];
}
