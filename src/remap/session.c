/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "fuse_library.h"
#include "locks.h"
#include "nodes.h"
#include "operations.h"

#define TICK_MS 5
#define QUIET_TICKS 10
#define REPLAY_SECONDS 2
#define TURNS_MAX 16
#define TURNS_MANY 8
#define LISTENERS_MAX 2
#define LOOKS 2     /* seconds, for a server */
#define TRIES_MAX 2 /* a request that killed so many daemons is not for a third */

/* What is newer than Debian 12's headers (Linux 6.9). */
#define INIT_PASSTHROUGH2 (1U << (37 - 32))
#define OPEN_PASSTHROUGH (1U << 7)
_Static_assert(sizeof(struct fuse_init_out) == 64,
               "of the same size since Linux 4.20; max_stack_depth is what was unused");

static struct fuse_session *session;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t at_work = PTHREAD_RWLOCK_INITIALIZER; /* held for reading by each thread that is at a request */
static int idle;
static uint64_t begun; /* how many requests */
static int working;    /* threads that are at one */
static uint32_t last_pid;
static int turns; /* how often, of late, another process asked than before: 0 to TURNS_MAX */
static int parked;
static int called; /* of them, who has not heard it yet */
static pthread_cond_t call = PTHREAD_COND_INITIALIZER;
static bool taken[THREADS_MAX]; /* which buffers have a thread */
static int end = 1;             /* 1: it goes on */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static pthread_cond_t replayed = PTHREAD_COND_INITIALIZER;
static int replays; /* how many threads are at what the daemon before us had begun */

static uint64_t interrupted[THREADS_MAX]; /* whose caller got a signal; 0: nobody's */
static int looked[THREADS_MAX];           /* and how often that was looked at */

static __thread int slot = -1;
static __thread struct fuse_in_header *current; /* the request that this thread is at; NULL: none */
static __thread bool replaying;
static __thread bool greeting; /* FUSE_INIT is said again to a new session, not to the kernel */
static __thread int backing;

bool session_replayed(void)
{
        return replaying;
}

void session_changes(void)
{
        if (slot >= 0 && !replaying)
                shared->changing[slot] = true;
}

bool session_may_have_changed(void)
{
        return replaying && slot >= 0 && shared->changing[slot];
}

void session_pass_through(int with)
{
        backing = with;
}

static struct fuse_in_header *header_of(int of)
{
        return (struct fuse_in_header *)(void *)shared->requests[of];
}

bool session_keep_request(uint8_t ret_copy[WAITER_SIZE])
{
        const uint32_t size = current->len;

        if (size > WAITER_SIZE)
                return false;
        (void)memcpy(ret_copy + sizeof size, (const uint8_t *)current + sizeof size, size - sizeof size);
        (void)memcpy(ret_copy, &size, sizeof size); /* last: from here on it is one */
        return true;
}

/* ---- answers */

/* The answer to FUSE_INIT, with what libfuse 3.14 does not know. */
static void extend_init(const struct iovec *parts, int count)
{
        const struct fuse_init_in *asked = (const void *)(shared->init + sizeof(struct fuse_in_header));
        bool extended = shared->init_size >= sizeof(struct fuse_in_header) + offsetof(struct fuse_init_in, flags2) +
                                                     sizeof asked->flags2 &&
                        (asked->flags & FUSE_INIT_EXT) != 0;
        struct fuse_init_out *answer = count == 2 ? parts[1].iov_base : NULL;
        const uint32_t depth = 1;

        shared->passthrough = false;
        if (answer == NULL || parts[1].iov_len < sizeof *answer)
                return;
        /* who takes setuid and setgid bits away is the kernel that writes the source, as whoever writes (Linux 5.12) */
        answer->flags |= asked->flags & FUSE_HANDLE_KILLPRIV_V2;
        if (!extended || shared->network || (asked->flags2 & INIT_PASSTHROUGH2) == 0)
                return;
        answer->flags |= FUSE_INIT_EXT;
        answer->flags2 |= INIT_PASSTHROUGH2;
        (void)memcpy(answer->unused, &depth, sizeof depth); /* max_stack_depth */
        shared->passthrough = true;
}

/* The answer to FUSE_OPEN and FUSE_CREATE ends in a fuse_open_out, whose last word names the file to pass through to.
 */
static void extend_open(const struct iovec *parts, int count)
{
        struct fuse_open_out *answer;

        if (count < 2 || parts[count - 1].iov_len < sizeof *answer)
                return;
        answer = (void *)((char *)parts[count - 1].iov_base + parts[count - 1].iov_len - sizeof *answer);
        answer->open_flags |= OPEN_PASSTHROUGH;
        answer->padding = (__typeof__(answer->padding))backing;
}

/*
 * An answer that is on its way: should we die before we know that it was heard, the next daemon says the same, and does
 * not do again what was asked for.
 */
static void keep_answer(const struct iovec *parts, int count)
{
        uint32_t size = 0;

        if (slot < 0 || current != header_of(slot))
                return;
        for (int i = 0; i < count; i++) {
                if (parts[i].iov_len > ANSWER_SIZE - size)
                        return;
                (void)memcpy(shared->answers[slot] + size, parts[i].iov_base, parts[i].iov_len);
                size += (uint32_t)parts[i].iov_len;
        }
        __atomic_store_n(&shared->answer_sizes[slot], size, __ATOMIC_RELEASE);
}

static void answer_error(uint64_t unique, int errnum)
{
        struct fuse_out_header answer = { .len = sizeof answer, .error = -errnum, .unique = unique };

        (void)!write(FD_FUSE, &answer, sizeof answer); /* it may be answered by now */
}

static ssize_t send_answer(int fd, struct iovec *parts, int count, void *ignored)
{
        ssize_t length = 0;

        (void)ignored;
        if (greeting) { /* the kernel heard it from the daemon before */
                for (int i = 0; i < count; i++)
                        length += (ssize_t)parts[i].iov_len;
                return length;
        }
        if (current != NULL && current->opcode == FUSE_INIT)
                extend_init(parts, count);
        if (backing > 0) {
                extend_open(parts, count);
                backing = 0;
        }
        keep_answer(parts, count);
        length = writev(fd, parts, count);
        if (length < 0 && errno != ENOENT) { /* the kernel does not take it, and whoever asked would wait for ever */
                answer_error(((const struct fuse_out_header *)parts[0].iov_base)->unique, EIO);
                errno = ENOENT;
        }
        return length;
}

/* libfuse wants one; requests are read by serve(), each into its own buffer. */
static ssize_t receive(int fd, void *buffer, size_t size, void *ignored)
{
        (void)ignored;
        return read(fd, buffer, size);
}

/*
 * Somebody who waits for an answer got a signal. One that is being killed is let go when a server has not answered for
 * a while, or it would wait as long as the server is away: the kernel leaves it there. Its answer goes nowhere then, if
 * it ever comes. A source on this machine is never away.
 */
static void note_interrupt(const struct fuse_in_header *header)
{
        uint64_t unique;

        (void)memcpy(&unique, header + 1, sizeof unique);
        for (int i = 0; shared->network && i < THREADS_MAX; i++)
                if (i != slot && header_of(i)->len > 0 && header_of(i)->unique == unique)
                        interrupted[i] = unique;
}

void session_look(void)
{
        for (int i = 0; shared->network && i < THREADS_MAX; i++) {
                const struct fuse_in_header *header = header_of(i);
                uint64_t unique = interrupted[i];

                if (unique == 0)
                        continue;
                if (header->len == 0 || header->unique != unique)
                        interrupted[i] = 0; /* it came back */
                else if (++looked[i] > LOOKS && caller_is_dying((pid_t)header->pid)) {
                        interrupted[i] = 0;
                        answer_error(unique, EINTR);
                } else
                        continue;
                looked[i] = 0;
        }
}

/* ---- requests */

static void process(struct fuse_in_header *header, size_t size)
{
        struct fuse_buf buffer = { .mem = header, .size = size };
        uint32_t operation = header->opcode;

        current = header;
        if (operation == FUSE_INIT && size <= INIT_SIZE) {
                (void)memcpy(shared->init, header, size);
                shared->init_size = (uint32_t)size;
        }
        if (operation == FUSE_INTERRUPT)
                note_interrupt(header);
        /* once at most: to forget twice would be worse than to forget never */
        if (operation == FUSE_FORGET || operation == FUSE_BATCH_FORGET || operation == FUSE_INTERRUPT)
                __atomic_store_n(&header->len, 0, __ATOMIC_RELEASE);
        fuse_session_process_buf(session, &buffer);
        if (operation == FUSE_INIT)
                shared->served = true;
        backing = 0;
        current = NULL;
        __atomic_store_n(&header->len, 0, __ATOMIC_RELEASE);
}

/* What the daemon before us had begun in this buffer. */
static void do_again(void)
{
        struct fuse_in_header *header = header_of(slot);
        uint32_t answered = shared->answer_sizes[slot];

        if (header->len == 0)
                return;
        replaying = true;
        if (answered > 0 && ((struct fuse_out_header *)(void *)shared->answers[slot])->unique == header->unique) {
                (void)!write(FD_FUSE, shared->answers[slot], answered); /* perhaps for the second time */
                header->len = 0;
        } else if (++shared->tries[slot] > TRIES_MAX) {
                answer_error(header->unique, EIO);
                header->len = 0;
        } else
                process(header, header->len);
        shared->tries[slot] = 0;
        replaying = false;
}

/* Nothing new is begun before what was begun is done: the one may build upon the other. But not for ever. */
static void wait_for_replays(void)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail for this clock */
        until.tv_sec += REPLAY_SECONDS;
        while (replays > 0 && pthread_cond_timedwait(&ended, &mutex, &until) != ETIMEDOUT)
                ;
        replays = 0;
        (void)pthread_cond_broadcast(&replayed);
}

static void end_replay(void)
{
        (void)pthread_mutex_lock(&mutex);
        if (replays > 0 && --replays == 0)
                (void)pthread_cond_broadcast(&ended);
        while (replays > 0)
                (void)pthread_cond_wait(&replayed, &mutex);
        (void)pthread_mutex_unlock(&mutex);
}

static void *serve(void *argument);

/* With the mutex held. */
static void start_thread(int for_slot)
{
        pthread_t thread;

        taken[for_slot] = true;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)for_slot) == 0)
                (void)pthread_detach(thread); /* cannot fail for a thread just made */
        else
                taken[for_slot] = false; /* then those that there are have to do */
}

/* Likewise: somebody has to listen. */
static void start_listener(void)
{
        if (parked > called) {
                called++;
                (void)pthread_cond_signal(&call);
                return;
        }
        for (int i = 0; i < THREADS_MAX; i++)
                if (!taken[i]) {
                        start_thread(i);
                        return;
                }
}

static void finish(int r)
{
        (void)pthread_mutex_lock(&mutex);
        if (end == 1)
                end = r;
        (void)pthread_cond_signal(&ended);
        (void)pthread_mutex_unlock(&mutex);
}

/* What is worth waking another thread for, which listens meanwhile; for the rest watch_listener() does when it has to.
 */
static bool takes_long(uint32_t operation)
{
        switch (operation) {
        case FUSE_READ:
        case FUSE_WRITE:
        case FUSE_FSYNC:
        case FUSE_FSYNCDIR:
        case FUSE_FALLOCATE:
        case FUSE_COPY_FILE_RANGE:
        case FUSE_LSEEK:
                return true;
        default:
                return shared->network;
        }
}

/* Nobody listens, and has not for a while: what was thought to be quick is not. */
static void *watch_listener(void *ignored)
{
        const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };
        uint64_t seen = 0;

        (void)ignored;
        for (;;) {
                (void)poll(&fuse, 1, -1); /* there is something to do */
                for (int quiet = 0; quiet < QUIET_TICKS; quiet++) {
                        (void)nanosleep(&tick, NULL);
                        (void)pthread_mutex_lock(&mutex);
                        if (begun != seen)
                                quiet = 0;
                        else if (idle == 0)
                                start_listener();
                        seen = begun;
                        (void)pthread_mutex_unlock(&mutex);
                }
        }
        return NULL;
}

/* With the mutex held. */
static void note_caller(uint32_t pid)
{
        if (pid == 0) /* nobody's: forgotten inodes */
                return;
        if (pid != last_pid)
                turns += turns < TURNS_MAX;
        else
                turns -= turns > 0;
        last_pid = pid;
}

/*
 * Likewise: how many threads are to listen. One, for a process that waits for each of its answers: two would take
 * turns, and each wake the other processor for nothing. Where several ask at once another processor is a gain; a server
 * is slow anyway.
 */
static int listeners(void)
{
        return shared->network || turns >= TURNS_MANY ? LISTENERS_MAX : 1;
}

/* With the mutex held: this thread is to listen; perhaps after it was called. No thread ever ends (session_rest()). */
static void take_turn(void)
{
        if (idle >= listeners()) {
                parked++;
                while (called == 0)
                        (void)pthread_cond_wait(&call, &mutex);
                called--;
                parked--;
        }
        idle++;
}

static void *serve(void *argument)
{
        int r;

        slot = (int)(intptr_t)argument;
        if ((r = caller_begin()) < 0) {
                finish(r);
                return NULL;
        }
        if (header_of(slot)->len > 0) {
                do_again();
                end_replay();
        }
        for (;;) {
                ssize_t n;

                (void)pthread_mutex_lock(&mutex);
                take_turn();
                (void)pthread_mutex_unlock(&mutex);
                shared->answer_sizes[slot] = 0;
                shared->changing[slot] = false;
                n = read(FD_FUSE, shared->requests[slot], REQUEST_SIZE);
                r = n < 0 ? errno : 0;
                (void)pthread_rwlock_rdlock(&at_work);
                (void)pthread_mutex_lock(&mutex);
                idle--;
                begun++;
                __atomic_add_fetch(&working, 1, __ATOMIC_RELAXED);
                if (n > 0)
                        note_caller(header_of(slot)->pid);
                if (idle == 0 && n > 0 && (takes_long(header_of(slot)->opcode) || working < listeners()))
                        start_listener();
                (void)pthread_mutex_unlock(&mutex);
                if (n > 0)
                        process(header_of(slot), (size_t)n);
                __atomic_sub_fetch(&working, 1, __ATOMIC_RELAXED);
                (void)pthread_rwlock_unlock(&at_work);
                if (n < 0 && r != EINTR && r != EAGAIN && r != ENOENT) {
                        finish(r == ENODEV ? 0 : -r); /* ENODEV: nothing is mounted any more */
                        return NULL;
                }
        }
}

void session_rest(void (*function)(void))
{
        (void)pthread_rwlock_wrlock(&at_work);
        locks_rest(function);
        (void)pthread_rwlock_unlock(&at_work);
}

/* Those that waited for a lock when the daemon before us died. */
static void wait_again(void)
{
        static uint8_t request[WAITER_SIZE] __attribute__((aligned(8)));

        replaying = true;
        for (int i = 0; i < WAITERS_MAX; i++) {
                uint32_t size;

                (void)memcpy(&size, shared->waiters[i], sizeof size);
                if (size == 0 || size > WAITER_SIZE)
                        continue;
                (void)memcpy(request, shared->waiters[i], size);
                (void)memset(shared->waiters[i], 0, sizeof size);
                process((void *)request, size);
        }
        replaying = false;
}

/* A session that knows what the kernel and the daemon before us agreed upon. */
static void greet(void)
{
        uint8_t request[INIT_SIZE];
        struct fuse_buf buffer = { .mem = request, .size = shared->init_size };

        (void)memcpy(request, shared->init, shared->init_size);
        greeting = true;
        fuse_session_process_buf(session, &buffer);
        greeting = false;
}

static void say_nothing(enum fuse_log_level level, const char *format, va_list arguments)
{
        (void)level;
        (void)format;
        (void)arguments;
}

int session_begin(void)
{
        static const struct fuse_custom_io io = { .writev = send_answer, .read = receive };
        char name[] = "flexgraft";
        char *words[] = { name, NULL };
        struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
        int r;

        /* our memory may be a copy of that of a daemon before us, with all its threads gone */
        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        at_work = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
        ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        replayed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        replays = 0;
        call = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        parked = called = working = 0;
        (void)memset(taken, 0, sizeof taken);
        (void)memset(interrupted, 0, sizeof interrupted);
        idle = 0;
        end = 1;
        slot = -1;
        fuse_set_log_func(say_nothing); /* to nobody's standard error */
        if ((r = nodes_begin()) < 0 || (r = caller_begin()) < 0)
                return r;
        session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
        if (session == NULL || fuse_session_custom_io(session, &io, FD_FUSE) < 0)
                return -ENOMEM;
        operations_begin();
        return locks_begin();
}

int session_serve(void (*ready)(void))
{
        pthread_t thread;
        int r;

        if (!shared->network && (r = pthread_create(&thread, NULL, watch_listener, NULL)) != 0)
                return -r;

        if (shared->served)
                greet();
        wait_again();
        (void)pthread_mutex_lock(&mutex);
        for (int i = 0; i < THREADS_MAX; i++)
                replays += header_of(i)->len > 0;
        for (int i = 0; i < THREADS_MAX; i++)
                if (header_of(i)->len > 0)
                        start_thread(i); /* which begins with that */
        wait_for_replays();
        start_listener();
        ready();
        while (end == 1)
                (void)pthread_cond_wait(&ended, &mutex);
        r = end;
        (void)pthread_mutex_unlock(&mutex);
        return r;
}
