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

#define CONTROLLER_PROGRAMS 16 /* of LAUNCHER_PROGRAMS: the others are for calls that a pod waits for */
#define OUTPUT_MAX ((off_t)64 * 1024 * 1024)

/* A program: waiting for others to end, or under way. */
struct run {
        struct run *next;
        enum run_queue queue;
        bool slow;
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
        size_t under_way, most; /* of its programs: given to the launcher; at one time */
};

/* The slow ones count for both. */
enum { ALL, SLOW, SPEEDS };

static int null_fd = -EBADF;
static bool failed;
static uint32_t next_id;
static struct run *running;
#define QUEUES(name, programs)                                                                                         \
        [name] = { [ALL] = { .last = &waiting[name][ALL].first, .most = (programs) },                                  \
                   [SLOW] = { .last = &waiting[name][SLOW].first, .most = (programs)*3 / 4 } }
static struct queue waiting[RUN_QUEUES][SPEEDS] = {
        QUEUES(RUN_CONTROLLER, CONTROLLER_PROGRAMS),
        QUEUES(RUN_NODE, LAUNCHER_PROGRAMS - CONTROLLER_PROGRAMS),
};
static struct queue refused = { .last = &refused.first };
static struct loop_timer refusal; /* they end in a turn of their own */

static void push(struct queue *queue, struct run *run)
{
        run->next = NULL;
        *queue->last = run;
        queue->last = &run->next;
}

static struct run *pop(struct queue *queue)
{
        struct run *run = queue->first;

        if (run != NULL && (queue->first = run->next) == NULL)
                queue->last = &queue->first;
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
        struct run *run;

        (void)timer;
        while ((run = pop(&refused)) != NULL) {
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

static void count_run(const struct run *run, int change)
{
        waiting[run->queue][ALL].under_way += (size_t)change;
        if (run->slow)
                waiting[run->queue][SLOW].under_way += (size_t)change;
}

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
        count_run(run, 1);
}

/* Whichever has waited longer, of those that may begin. */
static struct queue *next_of(struct queue *queues)
{
        const bool slow = queues[SLOW].first != NULL && queues[SLOW].under_way < queues[SLOW].most;
        const struct run *other = queues[ALL].first;

        if (queues[ALL].under_way >= queues[ALL].most)
                return NULL;
        if (slow && (other == NULL || (int32_t)(queues[SLOW].first->id - other->id) < 0))
                return &queues[SLOW];
        return other != NULL ? &queues[ALL] : NULL;
}

static void give_orders(struct queue *queues)
{
        struct queue *queue;

        while ((queue = next_of(queues)) != NULL)
                give_order(pop(queue));
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
        count_run(run, -1);
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
                        give_orders(waiting[i]);
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

/* What stands for it in an order, not 0; two texts with one number only exclude each other. */
static uint64_t number_of(const char *alone)
{
        return alone != NULL ? hash_bytes(HASH_SEED, alone, strlen(alone)) | 1U : 0;
}

/* Only the program's name, of an order that is too long. */
static struct run *make_run(const char *alone, const char *program, const char *const arguments[])
{
        struct launcher_order head = { .id = next_id++, .alone = number_of(alone) };
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

struct run *run_begin(enum run_queue queue, bool slow, const char *alone, const char *program,
                      const char *const arguments[], const char *input, run_ended *ended, void *argument)
{
        struct run *run = make_run(alone, program, arguments);

        run->queue = queue;
        run->slow = slow;
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
                push(&waiting[queue][slow ? SLOW : ALL], run);
                give_orders(waiting[queue]);
        }
        return run;
}

bool run_cancel(struct run *run)
{
        struct queue *queue = &waiting[run->queue][run->slow ? SLOW : ALL];
        struct run **link = &queue->first;

        while (*link != NULL && *link != run)
                link = &(*link)->next;
        if (*link == NULL)
                return false;
        if ((*link = run->next) == NULL)
                queue->last = link;
        end_run(run);
        return true;
}
