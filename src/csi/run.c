/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "launcher.h"
#include "loop.h"
#include "memory.h"
#include "outcome.h"

#define SHARE(programs) ((programs)*3 / 4) /* of slots, for those that may last; of these, for one method's */
#define SERVER_SHARE(programs)                                                                                         \
        ((programs) /                                                                                                  \
         3) /* of one method's, for those that wait for one server; twice for what may be one, or several */
#define CONTROLLER_PROGRAMS 16 /* of LAUNCHER_PROGRAMS: the others are for calls that a pod waits for */
#define OUTPUT_MAX ((off_t)64 * 1024 * 1024)

/* A program: waiting for others to end, or under way. */
struct run {
        struct run *next;
        enum run_queue queue;
        const char *slow; /* as in struct run_place */
        struct awaited awaited;
        uint32_t id;
        int input_fd;
        int output_fd;
        run_ended *ended;
        void *argument;
        int error;     /* errno: it cannot be run */
        size_t length; /* of order */
        char order[];
};

struct queue {
        struct run *first, **last;
        size_t most; /* of its programs at one time */
};

static int null_fd = -EBADF;
static bool failed;
static uint32_t next_id;
static struct run *running;
#define QUEUE(name, programs) [name] = { .last = &waiting[name].first, .most = (programs) }
static struct queue waiting[RUN_QUEUES] = {
        QUEUE(RUN_CONTROLLER, CONTROLLER_PROGRAMS),
        QUEUE(RUN_NODE, LAUNCHER_PROGRAMS - CONTROLLER_PROGRAMS),
};
static struct queue refused = { .last = &refused.first };
static struct loop_timer refusal; /* they end in a turn of their own */

static void push(struct queue *queue, struct run *run)
{
        run->next = NULL;
        *queue->last = run;
        queue->last = &run->next;
}

/* The one that a link of the queue points to. */
static struct run *take(struct queue *queue, struct run **link)
{
        struct run *run = *link;

        if ((*link = run->next) == NULL)
                queue->last = link;
        return run;
}

static void end_run(struct run *run)
{
        fd_close(&run->input_fd);
        fd_close(&run->output_fd);
        memory_forget(run, sizeof *run + run->length);
}

static void conclude(struct run *run, int status, const char *words, bool occupied)
{
        struct outcome outcome;
        struct stat st = {};
        void *output = MAP_FAILED;
        char too_long[128];

        if (run->output_fd >= 0 && fstat(run->output_fd, &st) == 0 && st.st_size > 0 && st.st_size <= OUTPUT_MAX)
                output = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, run->output_fd, 0);
        if (st.st_size > OUTPUT_MAX) {
                (void)snprintf(too_long, sizeof too_long, "%s printed more than %d MiB",
                               run->order + sizeof(struct launcher_order), (int)(OUTPUT_MAX / 1024 / 1024));
                words = too_long;
        }
        outcome_read(output, output != MAP_FAILED ? (size_t)st.st_size : 0, status, words, &outcome);
        outcome.occupied = occupied;
        if (output != MAP_FAILED)
                (void)munmap(output, (size_t)st.st_size); /* cannot fail */
        run->ended(run->argument, &outcome);
        outcome_end(&outcome);
        end_run(run);
}

static void tell_refused(struct loop_timer *timer)
{
        (void)timer;
        while (refused.first != NULL) {
                struct run *run = take(&refused, &refused.first);
                char words[128];

                (void)snprintf(words, sizeof words, "%s cannot be started: %s",
                               run->order + sizeof(struct launcher_order), strerror(run->error));
                conclude(run, -1, words, /* occupied= */ false);
        }
}

static void refuse(struct run *run, int error)
{
        run->error = error;
        push(&refused, run);
        if (!refusal.set)
                loop_set(&refusal, clock_now_ms(), tell_refused);
}

static struct loop_source launcher = { .fd = -EBADF };

static void give_order(struct run *run)
{
        const int fds[2] = { run->input_fd >= 0 ? run->input_fd : null_fd, run->output_fd };
        struct iovec part = { .iov_base = run->order, .iov_len = run->length };
        char control[CMSG_SPACE(sizeof fds)] = {};
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
        };
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);

        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fds);
        memcpy(CMSG_DATA(header), fds, sizeof fds);
        /* it blocks at most as long as the launcher starts those before */
        if (sendmsg(launcher.fd, &message, MSG_NOSIGNAL) < 0) {
                refuse(run, errno);
                return;
        }
        fd_close(&run->input_fd);
        run->next = running;
        running = run;
}

/* Beside those that run. */
static bool has_slot(const struct run *run)
{
        const size_t most = waiting[run->queue].most;
        size_t all = 0;
        size_t slow = 0;
        size_t same = 0;
        size_t with_server = 0;
        size_t with_author = 0;

        for (const struct run *other = running; other != NULL; other = other->next)
                if (other->queue == run->queue) {
                        all++;
                        slow += other->slow != NULL;
                        same += other->slow == run->slow;
                        with_server += other->slow == run->slow && other->awaited.number == run->awaited.number;
                        with_author += other->slow == run->slow && other->awaited.author == run->awaited.author;
                }
        if (run->slow == NULL)
                return all < most;
        return all < most && slow < SHARE(most) && same < SHARE(SHARE(most)) &&
               (run->awaited.number == 0 ||
                with_server < SERVER_SHARE(SHARE(SHARE(most))) * (run->awaited.perhaps ? 2 : 1)) &&
               (run->awaited.author == 0 || with_author < SERVER_SHARE(SHARE(SHARE(most))) * 2);
}

/* To those that have waited longest, of those that may begin. */
static void give_orders(struct queue *queue)
{
        struct run **link = &queue->first;

        while (*link != NULL)
                if (has_slot(*link))
                        give_order(take(queue, link));
                else
                        link = &(*link)->next;
}

static void tell_end(const struct launcher_end *end)
{
        struct run **link = &running;
        struct run *run;
        char words[128];

        while (*link != NULL && (*link)->id != end->id)
                link = &(*link)->next;
        if ((run = *link) == NULL)
                return;
        *link = run->next;
        if (end->error != 0)
                (void)snprintf(words, sizeof words, "%s cannot be started: %s",
                               run->order + sizeof(struct launcher_order), strerror(end->error));
        else if (end->signal != 0)
                (void)snprintf(words, sizeof words, "%s was killed by signal %d (%s)",
                               run->order + sizeof(struct launcher_order), end->signal,
                               sigabbrev_np(end->signal) ?: "unknown");
        else
                (void)snprintf(words, sizeof words, "%s exited with status %d and printed no JSON",
                               run->order + sizeof(struct launcher_order), end->status);
        conclude(run, end->status, words, end->error == EINPROGRESS);
}

static void take_end(struct loop_source *source, uint32_t events)
{
        struct launcher_end end;
        ssize_t length = recv(source->fd, &end, sizeof end, MSG_DONTWAIT);

        (void)events;
        if (length == sizeof end) {
                tell_end(&end);
                for (size_t i = 0; i < RUN_QUEUES; i++)
                        give_orders(&waiting[i]);
        } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
                failed = true;
                loop_remove(source);
        }
}

int runs_begin(struct error *error)
{
        json_object_seed(0); /* jansson opens /dev/urandom for it, and the filter forbids that */
        if ((null_fd = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
                return fail(error, errno, "open", "/dev/null");
        launcher.fd = launcher_begin(error);
        launcher.ready = take_end;
        return launcher.fd < 0 ? launcher.fd : 0;
}

int runs_serve(struct error *error)
{
        int r = loop_add(&launcher, EPOLLIN);

        return r < 0 ? fail(error, -r, "epoll_ctl", "the launcher") : 0;
}

bool runs_failed(void)
{
        return failed;
}

/* The order's length; 0: it is too long. */
static size_t measure_order(const char *program, const char *const arguments[], uint32_t *ret_texts)
{
        size_t length = sizeof(struct launcher_order) + strlen(program) + 1;

        for (*ret_texts = 1; arguments != NULL && *arguments != NULL; arguments++, ++*ret_texts)
                length += strlen(*arguments) + 1;
        return length <= LAUNCHER_ORDER_BYTES && *ret_texts <= LAUNCHER_ARGUMENTS ? length : 0;
}

/* Only the program's name, of an order that is too long. */
static struct run *make_run(const char *alone, const char *program, const char *const arguments[])
{
        /* two texts with one number only exclude each other */
        struct launcher_order head = { .id = next_id++, .alone = hash_text_or_zero(alone) };
        size_t length = measure_order(program, arguments, &head.texts);
        static const char *const none[] = { NULL };
        struct run *run;
        char *end;

        if (length == 0) {
                struct run *refused_run = make_run(alone, program, none);

                refused_run->error = E2BIG;
                return refused_run;
        }
        if ((run = calloc(1, sizeof *run + length)) == NULL)
                abort(); /* the service starts anew, and every call is repeated */
        run->id = head.id;
        run->length = length;
        memcpy(run->order, &head, sizeof head);
        end = stpcpy(run->order + sizeof head, program) + 1;
        for (; arguments != NULL && *arguments != NULL; arguments++)
                end = stpcpy(end, *arguments) + 1;
        return run;
}

/* A file in memory with this text, to be read from its beginning. Returns it or negative errno. */
static int make_input(const char *text)
{
        cleanup_close int fd = memfd_create("input", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));

        if (r < 0)
                return r;
        return lseek(fd, 0, SEEK_SET) == 0 ? fd_take(&fd) : -errno;
}

struct run *run_begin(const struct run_place *place, const char *program, const char *const arguments[],
                      const char *input, run_ended *ended, void *argument)
{
        struct run *run = make_run(place->alone, program, arguments);

        run->queue = place->queue;
        run->slow = place->slow;
        run->awaited = place->awaited;
        run->input_fd = -EBADF;
        run->ended = ended;
        run->argument = argument;
        run->output_fd = memfd_create("output", MFD_CLOEXEC);
        if (run->output_fd < 0)
                run->error = errno;
        else if (input != NULL && (run->input_fd = make_input(input)) < 0)
                run->error = -run->input_fd;
        if (run->error != 0)
                refuse(run, run->error);
        else {
                push(&waiting[run->queue], run);
                give_orders(&waiting[run->queue]);
        }
        return run;
}

bool run_cancel(struct run *run)
{
        struct queue *queue = &waiting[run->queue];
        struct run **link = &queue->first;

        while (*link != NULL && *link != run)
                link = &(*link)->next;
        if (*link == NULL)
                return false;
        end_run(take(queue, link));
        return true;
}
