/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "calls.h"
#include "connection.h"
#include "journal.h"
#include "loop.h"
#include "run.h"

#define CLIENTS_MAX (CALLS_MAX + 16) /* kubelet has a connection for each call */
#define PAUSE_MS 100                 /* after accept() has failed: the system lacks memory or descriptors */
#define SHOW_FIRST_MS 1000
#define SHOW_LAST_MS 64000
#define GOODBYE_MS 20000 /* when all calls are answered: for clients to hear of the end, and to read what waits */

/* What each socket has. */
static const struct rpc *const of_endpoint[] = { identity_rpcs, controller_rpcs, node_rpcs, NULL };
static const struct rpc *const of_registration[] = { registration_rpcs, NULL };

struct door {
        struct loop_source source;
        struct listener *listener;
};

static struct door doors[LISTEN_MAX];
static struct loop_source signals = { .fd = -EBADF };
static struct connection *clients[CLIENTS_MAX];
static size_t client_count;
static unsigned idle_limit, grace_limit;
static struct loop_timer idle, grace, goodbye, showing, pause_end;
static bool ending, over;

/* Whether nobody is there, and nothing is to be done later. */
static bool is_idle(void)
{
        return client_count == 0 && !calls_under_way() && !showing.set;
}

static void end_client(size_t index)
{
        connection_end(clients[index]);
        clients[index] = clients[--client_count];
}

/* Room for one more: the client that has asked nothing for the longest time goes. Whether there is. */
static bool make_room(void)
{
        size_t oldest = CLIENTS_MAX;
        int64_t oldest_ms = INT64_MAX;

        if (client_count < CLIENTS_MAX)
                return true;
        for (size_t i = 0; i < client_count; i++) {
                int64_t since_ms;

                if (connection_is_idle(clients[i], &since_ms) && since_ms < oldest_ms) {
                        oldest = i;
                        oldest_ms = since_ms;
                }
        }
        if (oldest == CLIENTS_MAX)
                return false;
        end_client(oldest);
        return true;
}

static bool is_root(int fd)
{
        struct ucred peer = {};
        socklen_t length = sizeof peer;

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && length == sizeof peer && peer.uid == 0;
}

static void wait_at_doors(uint32_t events)
{
        for (size_t i = 0; i < LISTEN_MAX; i++)
                if (doors[i].listener != NULL)
                        loop_wait_for(&doors[i].source, events);
}

static void pause_is_over(struct loop_timer *timer)
{
        (void)timer;
        wait_at_doors(EPOLLIN);
}

/* Who waits there would wake the loop again at once. */
static void pause_doors(void)
{
        wait_at_doors(0);
        loop_set(&pause_end, clock_now_ms() + PAUSE_MS, pause_is_over);
}

static void let_in(struct loop_source *source, uint32_t events)
{
        const struct door *door = (const struct door *)source; /* its first member */
        cleanup_close int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct connection *client;

        (void)events;
        if (fd < 0) {
                if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                        pause_doors();
                return;
        }
        if (!is_root(fd)) {
                journal_say("%s: a client that is not root was refused", door->listener->path);
                return;
        }
        if (!make_room()) {
                journal_say("%s: a client was refused: %d have requests under way", door->listener->path, CLIENTS_MAX);
                return;
        }
        client = connection_begin(fd_take(&fd), door->listener->is_registration ? of_registration : of_endpoint);
        if (client != NULL)
                clients[client_count++] = client;
}

static void time_is_over(struct loop_timer *timer)
{
        (void)timer;
        over = true;
}

/* In one turn of the loop a client may have been let in before. */
static void idle_is_over(struct loop_timer *timer)
{
        (void)timer;
        over = is_idle();
}

static void close_doors(void)
{
        for (size_t i = 0; i < LISTEN_MAX; i++)
                if (doors[i].listener != NULL) {
                        loop_remove(&doors[i].source);
                        listen_end(doors[i].listener);
                        doors[i].listener = NULL;
                }
}

/*
 * A client that was let in and has not asked yet would find a closed connection, and its call would fail though it has
 * reached nobody: first it is told (RFC 9113, 6.8).
 */
static void begin_end(struct loop_source *source, uint32_t events)
{
        struct signalfd_siginfo info;

        (void)events;
        if (read(source->fd, &info, sizeof info) != sizeof info || ending)
                return;
        ending = true;
        loop_unset(&idle);
        close_doors();
        for (size_t i = 0; i < client_count; i++)
                connection_announce_end(clients[i]);
        /* Until it has ended there is no other: erasing a disk must not keep pods from their volumes. */
        loop_set(&grace, clock_now_ms() + (int64_t)grace_limit * 1000, time_is_over);
}

static void settle(void)
{
        for (size_t i = client_count; i > 0; i--)
                if (!connection_settle(clients[i - 1]))
                        end_client(i - 1);
        if (ending && !calls_under_way()) {
                over = over || client_count == 0;
                if (!goodbye.set)
                        loop_set(&goodbye, clock_now_ms() + GOODBYE_MS, time_is_over);
        } else if (ending)
                loop_unset(&goodbye);
        else if (!is_idle())
                loop_unset(&idle);
        else if (idle_limit > 0 && !idle.set)
                loop_set(&idle, clock_now_ms() + (int64_t)idle_limit * 1000, idle_is_over);
}

int server_begin(struct listener listeners[LISTEN_MAX], unsigned idle_seconds, unsigned grace_seconds,
                 struct error *error)
{
        sigset_t ends;
        int r;

        (void)sigemptyset(&ends); /* these do not fail for what is given here */
        (void)sigaddset(&ends, SIGTERM);
        (void)sigaddset(&ends, SIGINT);
        (void)sigprocmask(SIG_BLOCK, &ends, NULL);
        signals = (struct loop_source){ .fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK), .ready = begin_end };
        if (signals.fd < 0)
                return fail(error, errno, "signalfd", "SIGTERM");
        idle_limit = idle_seconds;
        grace_limit = grace_seconds;
        if ((r = loop_begin(error)) < 0 || (r = runs_serve(error)) < 0)
                return r;
        if ((r = loop_add(&signals, EPOLLIN)) < 0)
                return fail(error, -r, "epoll_ctl", "SIGTERM");
        for (size_t i = 0; i < LISTEN_MAX; i++) {
                if (listeners[i].fd < 0)
                        continue;
                doors[i] = (struct door){ { .fd = listeners[i].fd, .ready = let_in }, &listeners[i] };
                if ((r = loop_add(&doors[i].source, EPOLLIN)) < 0)
                        return fail(error, -r, "epoll_ctl", listeners[i].path);
        }
        return 0;
}

int server_run(struct error *error)
{
        settle();
        while (!over) {
                int r = loop_turn();

                if (r < 0)
                        return fail(error, -r, "epoll_wait", "the event loop");
                if (runs_failed())
                        return fail_because(error, ECHILD, "recv", "the launcher", "the launcher has ended");
                settle();
        }
        close_doors();
        return 0;
}

static void show_now(struct loop_timer *timer)
{
        static int again_ms = SHOW_FIRST_MS; /* kept: it grows with each failure in a row */
        const struct listener *listener = doors[LISTEN_MAX - 1].listener;
        int r = listener != NULL ? listen_show_anew(listener) : 0;

        if (r == 0)
                again_ms = SHOW_FIRST_MS;
        else if (r == -ENOENT)
                journal_say("%s is gone: kubelet registers the driver when the driver starts anew", listener->path);
        else {
                journal_say("%s cannot be renamed away and back (%s), which is tried again in %d s", listener->path,
                            strerror(-r), again_ms / 1000);
                loop_set(timer, clock_now_ms() + again_ms, show_now);
                again_ms = again_ms < SHOW_LAST_MS ? 2 * again_ms : SHOW_LAST_MS;
        }
}

void server_show_anew(int after_ms)
{
        if (!ending)
                loop_set(&showing, clock_now_ms() + after_ms, show_now);
}
