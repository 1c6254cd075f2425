/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "caches.h"
#include "caller.h"
#include "caller_ids.h"
#include "fuse_library.h"
#include "interrupts.h"
#include "locks.h"
#include "newer.h"
#include "nodes.h"
#include "operation.h"
#include "operations.h"
#include "passthrough.h"
#include "released.h"
#include "request.h"
#include "waiters.h"

#define TICK_MS 5
#define QUIET_TICKS 10
#define REPLAY_SECONDS 2
#define REST_MS 500
#define TURNS_MAX 16
#define TURNS_MANY 8
#define LISTENERS_MAX 2
#define RUNNING 1
#define TRIES_MAX 2 /* daemons that may die of one request */
#define STACK_SIZE ((size_t)256 * 1024)
#define PAGE ((size_t)4096)
#define SMALL ((size_t)32 * 1024)
#define LARGE ((size_t)128 * 1024)
#define LARGE_MS 1000 /* for so long the memory that a large request needed is kept for the next */

/* The threads of the daemon, and what they have in common. */
static struct {
        struct fuse_session *session;
        pthread_mutex_t mutex;
        pthread_rwlock_t at_work; /* held for reading by threads that answer a request, or start a thread */
        int idle;                 /* threads that read, or are about to; atomic */
        uint64_t begun;           /* requests so far */
        int working;              /* threads that answer a request */
        uint32_t last_pid;
        int turns;  /* how often the calling process changed recently: 0 to TURNS_MAX */
        int parked; /* threads that wait for wake */
        int woken;  /* of these, those that have not seen it yet */
        pthread_cond_t wake;
        bool taken[THREADS_MAX]; /* slots that have a thread */
        int replays;             /* threads that repeat a request of the last daemon */
        pthread_cond_t replayed;
        int result; /* of the daemon; RUNNING until it ends */
        pthread_cond_t ended;
        void (*report)(int r);
        void (*rest)(void);
} threads;

/* libfuse requires this function; requests are read by serve() instead, each slot into its own buffer. */
static ssize_t receive(int fd, void *buffer, size_t size, void *ignored)
{
        (void)ignored;
        return read(fd, buffer, size);
}

/* ---- requests */

/* The kernel's own, or about what is open already. */
static bool is_nobodys(uint32_t operation)
{
        return operation == FUSE_INIT || operation == FUSE_DESTROY || operation == FUSE_FORGET ||
               operation == FUSE_BATCH_FORGET || operation == FUSE_INTERRUPT || operation == FUSE_READ ||
               operation == FUSE_RELEASE || operation == FUSE_RELEASEDIR;
}

/* Find who asks. A request that makes an inode has ids already: those that the inode gets. */
static void note_asker(struct fuse_in_header *header)
{
        const struct caller_ids *ids = caller_ids_find((pid_t)header->pid);

        request_note_asker(ids);
        if (header->uid == (uint32_t)-1) {
                header->uid = ids->uid;
                header->gid = ids->gid;
        }
}

static void process(struct fuse_in_header *header, size_t size)
{
        struct fuse_buf buffer = { .mem = header, .size = size };
        uint32_t operation = header->opcode;
        union newer_copy copy;

        request_start(header);
        if (shared->mappable && !shared->checked && !is_nobodys(operation))
                note_asker(header);
        if (operation == FUSE_INIT && size <= INIT_SIZE) {
                (void)memcpy(shared->init, header, size);
                shared->init_size = (uint32_t)size;
        }
        /* done at once, not repeated after a crash: forgetting twice is worse than never forgetting */
        if (operation == FUSE_FORGET || operation == FUSE_BATCH_FORGET || operation == FUSE_INTERRUPT)
                __atomic_store_n(&header->len, 0, __ATOMIC_RELEASE);
        if (newer_translate(header, size, &copy))
                buffer.mem = &copy;
        fuse_session_process_buf(threads.session, &buffer);
        if (operation == FUSE_INIT) {
                shared->served = true;
                threads.report(shared->mappable && !shared->mapped ? -EOPNOTSUPP : 0);
        }
        request_finish();
        __atomic_store_n(&header->len, 0, __ATOMIC_RELEASE);
}

/* Repeat the request that the last daemon left in this buffer. */
static void do_again(int slot)
{
        struct fuse_in_header *header = request_buffer(slot);
        uint32_t answered = shared->answer_sizes[slot];

        if (header->len == 0)
                return;
        request_replay(true);
        if (answered > 0 && ((struct fuse_out_header *)(void *)shared->answers[slot])->unique == header->unique) {
                (void)!write(FD_FUSE, shared->answers[slot], answered); /* the kernel ignores a second answer */
                header->len = 0;
        } else if (++shared->tries[slot] > TRIES_MAX) {
                answer_error(header->unique, EIO);
                header->len = 0;
        } else
                process(header, header->len);
        shared->tries[slot] = 0;
        request_replay(false);
}

/* New requests may depend on repeated ones, and are read after these, or after REPLAY_SECONDS. */
static void wait_for_replays(void)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail for this clock */
        until.tv_sec += REPLAY_SECONDS;
        while (threads.replays > 0 && pthread_cond_timedwait(&threads.ended, &threads.mutex, &until) != ETIMEDOUT)
                ;
        threads.replays = 0;
        (void)pthread_cond_broadcast(&threads.replayed);
}

static void end_replay(void)
{
        (void)pthread_mutex_lock(&threads.mutex);
        if (threads.replays > 0 && --threads.replays == 0)
                (void)pthread_cond_broadcast(&threads.ended);
        while (threads.replays > 0)
                (void)pthread_cond_wait(&threads.replayed, &threads.mutex);
        (void)pthread_mutex_unlock(&threads.mutex);
}

static void *serve(void *argument);

/* With the mutex held. */
static void start_thread(int for_slot)
{
        pthread_t thread;

        threads.taken[for_slot] = true;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)for_slot) == 0)
                (void)pthread_detach(thread); /* cannot fail for a new thread */
        else
                threads.taken[for_slot] = false; /* the existing threads go on */
}

/* With the mutex held. Have another thread read. */
static void start_listener(void)
{
        if (threads.parked > threads.woken) {
                threads.woken++;
                (void)pthread_cond_signal(&threads.wake);
                return;
        }
        for (int i = 0; i < THREADS_MAX; i++)
                if (!threads.taken[i]) {
                        start_thread(i);
                        return;
                }
}

static void finish(int r)
{
        (void)pthread_mutex_lock(&threads.mutex);
        if (threads.result == RUNNING)
                threads.result = r;
        (void)pthread_cond_signal(&threads.ended);
        (void)pthread_mutex_unlock(&threads.mutex);
}

/* What is read or written. */
static size_t length_of(const struct fuse_in_header *header)
{
        const struct fuse_read_in *reading = (const void *)(header + 1);

        return header->opcode == FUSE_READ ? reading->size : header->len;
}

/*
 * Requests during which another thread is woken to read. For others watch_listener() does that when needed: a wakeup costs
 * more than a small file's content.
 */
static bool takes_long(const struct fuse_in_header *header)
{
        switch (header->opcode) {
        case FUSE_READ:
        case FUSE_WRITE:
                return shared->network || length_of(header) > SMALL;
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

/* Start another thread when none has read for a while: a request that should be quick is not. */
static void *watch_listener(void *ignored)
{
        const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };
        uint64_t seen = 0;

        (void)ignored;
        for (;;) {
                (void)poll(&fuse, 1, -1); /* a request waits */
                for (int quiet = 0; quiet < QUIET_TICKS; quiet++) {
                        (void)nanosleep(&tick, NULL);
                        (void)pthread_rwlock_rdlock(&threads.at_work);
                        (void)pthread_mutex_lock(&threads.mutex);
                        if (threads.begun != seen)
                                quiet = 0;
                        else if (threads.idle == 0)
                                start_listener();
                        seen = threads.begun;
                        (void)pthread_mutex_unlock(&threads.mutex);
                        (void)pthread_rwlock_unlock(&threads.at_work);
                }
        }
        return NULL;
}

/* With the mutex held. */
static void note_caller(uint32_t pid)
{
        if (pid == 0) /* FUSE_FORGET has no caller */
                return;
        if (pid != threads.last_pid)
                threads.turns += threads.turns < TURNS_MAX;
        else
                threads.turns -= threads.turns > 0;
        threads.last_pid = pid;
}

/*
 * With the mutex held. How many threads should read. One, for a process that waits for each answer: two threads would
 * alternate, and each would wake another processor for nothing. Several processes gain from another processor; so do
 * requests to a server, which take long.
 */
static int listeners(void)
{
        return shared->network || threads.turns >= TURNS_MANY ? LISTENERS_MAX : 1;
}

/* ---- the memory that large requests need: without passthrough, for reading and writing */

static __thread bool has_large; /* this thread's buffers may have it */

static void note_size(const struct fuse_in_header *header)
{
        if (length_of(header) > LARGE)
                has_large = true;
}

/* With no request in the slot. */
static void give_back(int slot)
{
        uint8_t *second_page = shared->requests[slot] + PAGE;

        has_large = false;
        operation_buffer_empty();
        (void)madvise(second_page, REQUEST_SIZE - PAGE, MADV_REMOVE); /* else it stays */
}

/* With the mutex held, while parked. */
static void wait_to_be_woken(int slot)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail for this clock */
        until.tv_sec += LARGE_MS / 1000;
        while (threads.woken == 0)
                if (!has_large)
                        (void)pthread_cond_wait(&threads.wake, &threads.mutex);
                else if (pthread_cond_timedwait(&threads.wake, &threads.mutex, &until) == ETIMEDOUT)
                        give_back(slot);
}

static ssize_t read_request(int slot)
{
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };

        /* where another thread reads, that one may take the request, and this one wait for the next with its memory */
        if (has_large && (poll(&fuse, 1, LARGE_MS) == 0 || __atomic_load_n(&threads.idle, __ATOMIC_SEQ_CST) > 1))
                give_back(slot);
        /* the raw call: read() is a point of cancellation, which takes time in a program with threads */
        return syscall(SYS_read, FD_FUSE, shared->requests[slot], REQUEST_SIZE);
}

/* ---- the threads that read */

/* Wait until this thread should read. No thread ever ends (session_rest()). */
static void take_turn(int slot)
{
        int none = 0;

        /* the only one that reads may always do so */
        if (__atomic_compare_exchange_n(&threads.idle, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return;
        (void)pthread_mutex_lock(&threads.mutex);
        if (threads.idle >= listeners()) {
                threads.parked++;
                wait_to_be_woken(slot);
                threads.woken--;
                threads.parked--;
        }
        __atomic_add_fetch(&threads.idle, 1, __ATOMIC_SEQ_CST);
        (void)pthread_mutex_unlock(&threads.mutex);
}

static void *serve(void *argument)
{
        const int slot = (int)(intptr_t)argument;
        int r;

        request_use_slot(slot);
        if ((r = caller_begin()) < 0) {
                finish(r);
                return NULL;
        }
        if (request_buffer(slot)->len > 0) {
                (void)pthread_rwlock_rdlock(&threads.at_work);
                do_again(slot);
                (void)pthread_rwlock_unlock(&threads.at_work);
                end_replay();
        }
        for (;;) {
                ssize_t n;

                take_turn(slot);
                shared->answer_sizes[slot] = 0;
                shared->changing[slot] = false;
                n = read_request(slot);
                r = n < 0 ? errno : 0;
                (void)pthread_rwlock_rdlock(&threads.at_work);
                (void)pthread_mutex_lock(&threads.mutex);
                __atomic_sub_fetch(&threads.idle, 1, __ATOMIC_SEQ_CST);
                threads.begun++;
                __atomic_add_fetch(&threads.working, 1, __ATOMIC_RELAXED);
                if (n > 0)
                        note_caller(request_buffer(slot)->pid);
                if (threads.idle == 0 && n > 0 && (takes_long(request_buffer(slot)) || threads.working < listeners()))
                        start_listener();
                (void)pthread_mutex_unlock(&threads.mutex);
                if (n > 0) {
                        note_size(request_buffer(slot));
                        process(request_buffer(slot), (size_t)n);
                }
                __atomic_sub_fetch(&threads.working, 1, __ATOMIC_RELAXED);
                (void)pthread_rwlock_unlock(&threads.at_work);
                if (n < 0 && r != EINTR && r != EAGAIN && r != ENOENT) {
                        finish(r == ENODEV ? 0 : -r); /* ENODEV: unmounted */
                        return NULL;
                }
        }
}

static void rest_waiters(void)
{
        waiters_rest(threads.rest);
}

/* New requests wait meanwhile, but not for longer: one that waits for a server that does not answer may never end. */
static bool rest_within(int ms)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail for this clock */
        until.tv_nsec += ms * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        return pthread_rwlock_timedwrlock(&threads.at_work, &until) == 0;
}

void session_rest(void (*function)(void))
{
        const struct timespec pause = { .tv_sec = 1 };

        while (!rest_within(REST_MS))
                (void)nanosleep(&pause, NULL);
        threads.rest = function;
        caches_rest(rest_waiters);
        (void)pthread_rwlock_unlock(&threads.at_work);
}

/* It was killed when it had just moved the request to the waiters. */
static void drop_from_buffers(const uint8_t waiter[WAITER_SIZE])
{
        struct fuse_out_header head;

        (void)memcpy(&head, waiter, sizeof head);
        for (int i = 0; i < THREADS_MAX; i++)
                if (request_buffer(i)->len > 0 && request_buffer(i)->unique == head.unique)
                        request_buffer(i)->len = 0;
}

/* Repeat the requests that waited for a lock when the last daemon died, and send the answers that it may not have sent. */
static void replay_waiters(void)
{
        static uint8_t request[WAITER_SIZE] __attribute__((aligned(8)));

        request_replay(true);
        for (uint32_t i = 0; i < shared->waiters_high; i++) {
                uint32_t size;

                (void)memcpy(&size, shared->waiters[i], sizeof size);
                if (size == 0 || size > WAITER_SIZE)
                        continue;
                drop_from_buffers(shared->waiters[i]);
                if (size == sizeof(struct fuse_out_header)) {
                        (void)!write(FD_FUSE, shared->waiters[i], size); /* the kernel ignores a second answer */
                        (void)memset(shared->waiters[i], 0, sizeof size);
                        continue;
                }
                (void)memcpy(request, shared->waiters[i], size);
                waiters_repeat((int)i);
                if (++shared->waiter_tries[i] > TRIES_MAX)
                        answer_error(((struct fuse_in_header *)(void *)request)->unique, EIO);
                else
                        process((void *)request, size);
                waiters_repeat(-1);
                shared->waiter_tries[i] = 0;
        }
        request_replay(false);
}

/* Give the new session the FUSE_INIT request that an earlier daemon answered. */
static void greet(void)
{
        uint8_t request[INIT_SIZE];
        struct fuse_buf buffer = { .mem = request, .size = shared->init_size };

        (void)memcpy(request, shared->init, shared->init_size);
        answer_withhold(true);
        fuse_session_process_buf(threads.session, &buffer);
        answer_withhold(false);
}

/* Begin to repeat what the last daemon left. */
static void replay(void)
{
        released_end();
        replay_waiters();
        (void)pthread_mutex_lock(&threads.mutex);
        for (int i = 0; i < THREADS_MAX; i++)
                threads.replays += request_buffer(i)->len > 0;
        for (int i = 0; i < THREADS_MAX; i++)
                if (request_buffer(i)->len > 0)
                        start_thread(i); /* it repeats that request first */
        (void)pthread_mutex_unlock(&threads.mutex);
}

static void say_nothing(enum fuse_log_level level, const char *format, va_list arguments)
{
        (void)level;
        (void)format;
        (void)arguments;
}

/*
 * A node may have a thousand mounts, each with its threads. Small stacks lie side by side, so that they share pages of the
 * page table; and small pieces of memory are all that threads ask for, so that one area for all of them is enough.
 */
static int save_memory(void)
{
        pthread_attr_t attributes;
        int r = pthread_attr_init(&attributes);

        if (r == 0)
                r = pthread_attr_setstacksize(&attributes, STACK_SIZE);
        if (r == 0)
                r = pthread_setattr_default_np(&attributes);
        (void)mallopt(M_ARENA_MAX, 1); /* else there are more */
        return -r;
}

int session_begin(void)
{
        static const struct fuse_custom_io io = { .writev = answer_send, .read = receive };
        char name[] = "flexgraft";
        char *words[] = { name, NULL };
        struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
        int r;

        /* this memory may be a copy of a daemon's, whose threads are gone */
        (void)memset(&threads, 0, sizeof threads);
        threads.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        /* whoever waits for the threads to rest (session_rest()) comes before the next request */
        threads.at_work = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
        threads.wake = threads.replayed = threads.ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        threads.result = RUNNING;
        interrupts_begin();
        request_use_slot(-1);
        fuse_set_log_func(say_nothing); /* standard error is not ours */
        if ((r = save_memory()) < 0 || (r = caller_ids_begin()) < 0 || (r = nodes_begin()) < 0 ||
            (r = operation_begin_links()) < 0 || (r = caller_begin()) < 0)
                return r;
        threads.session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
        if (threads.session == NULL || fuse_session_custom_io(threads.session, &io, FD_FUSE) < 0)
                return -ENOMEM;
        passthrough_begin();
        if ((r = caches_begin()) < 0)
                return r;
        return locks_begin();
}

int session_serve(void (*ready)(int r))
{
        pthread_t thread;
        int r = 0;

        threads.report = ready;
        (void)pthread_rwlock_rdlock(&threads.at_work);
        if (!shared->network)
                r = pthread_create(&thread, NULL, watch_listener, NULL);
        if (r == 0 && shared->served)
                greet();
        if (r == 0 && shared->begun) /* else there is nothing, and looking would take memory for all the buffers */
                replay();
        (void)pthread_rwlock_unlock(&threads.at_work);
        if (r != 0)
                return -r;
        (void)pthread_mutex_lock(&threads.mutex);
        wait_for_replays();
        (void)pthread_mutex_unlock(&threads.mutex);
        shared->begun = true;
        (void)pthread_rwlock_rdlock(&threads.at_work);
        (void)pthread_mutex_lock(&threads.mutex);
        if (!shared->mappable || shared->served)
                threads.report(0); /* else when the kernel has said what it can */
        start_listener();
        (void)pthread_rwlock_unlock(&threads.at_work);
        while (threads.result == RUNNING)
                (void)pthread_cond_wait(&threads.ended, &threads.mutex);
        r = threads.result;
        (void)pthread_mutex_unlock(&threads.mutex);
        return r;
}
