/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include <errno.h>
#include <linux/fuse.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "caches.h"
#include "caller.h"
#include "interrupts.h"
#include "operation.h"
#include "released.h"
#include "replay.h"
#include "request.h"
#include "session.h"
#include "shared.h"
#include "waiters.h"

#define TICK_MS 5
#define QUIET_TICKS 10
#define REPLAY_SECONDS 2
#define REST_MS 500
#define TURNS_MAX 16
#define TURNS_MANY 8
#define LISTENERS_MAX 2
#define RUNNING 1
#define STACK_SIZE ((size_t)256 * 1024)
#define PAGE ((size_t)4096)
#define LARGE ((size_t)128 * 1024)
#define AGAIN_MS 500
#define LARGE_MS 1000 /* for so long the memory that a large request needed is kept for the next */

/* The threads of the daemon, and what they have in common. */
static struct {
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
        bool repeated;           /* they have, and new requests are read */
        bool unrepeated;         /* there was no thread for some of those requests */
        pthread_cond_t replayed;
        int result; /* of the daemon; RUNNING until it ends */
        pthread_cond_t ended;
        void (*rest)(void);
} threads;

/* New requests may depend on repeated ones, and are read after these, or after REPLAY_SECONDS. */
static void wait_for_replays(void)
{
        const struct timespec until = clock_after_ms(REPLAY_SECONDS * 1000);

        while (threads.replays > 0 &&
               pthread_cond_clockwait(&threads.ended, &threads.mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
                ;
        threads.replays = 0;
        threads.repeated = true;
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

/* With the mutex held. Returns 0 or negative errno: the existing threads go on. */
static int start_thread(int for_slot)
{
        pthread_t thread;
        int r;

        threads.taken[for_slot] = true;
        r = -pthread_create(&thread, NULL, serve, (void *)(intptr_t)for_slot);
        if (r == 0)
                (void)pthread_detach(thread); /* cannot fail for a new thread */
        else
                threads.taken[for_slot] = false;
        return r;
}

/* With the mutex held. Have another thread read. Where there can be none, those that read or answer do it later. */
static void start_listener(void)
{
        if (threads.parked > threads.woken) {
                threads.woken++;
                (void)pthread_cond_signal(&threads.wake);
                return;
        }
        for (int i = 0; i < THREADS_MAX; i++)
                if (!threads.taken[i]) {
                        (void)start_thread(i);
                        return;
                }
}

/* With the mutex held. Unless those that repeat requests read next. Returns 0 or negative errno: nobody would ever read. */
static int start_first_listener(void)
{
        for (int i = 0; i < THREADS_MAX; i++)
                if (threads.taken[i]) {
                        start_listener();
                        return 0;
                }
        return start_thread(0);
}

static void finish(int r)
{
        (void)pthread_mutex_lock(&threads.mutex);
        if (threads.result == RUNNING)
                threads.result = r;
        (void)pthread_cond_signal(&threads.ended);
        (void)pthread_mutex_unlock(&threads.mutex);
}

/* Start another thread when none has read for a while: a request that should be quick is not. */
static void *watch_listener(void *ignored)
{
        const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };
        uint64_t seen = 0;

        (void)ignored;
        /* or it would have a slot that holds a request of the last daemon repeat that, and read the next, beside another */
        (void)pthread_mutex_lock(&threads.mutex);
        while (!threads.repeated)
                (void)pthread_cond_wait(&threads.replayed, &threads.mutex);
        (void)pthread_mutex_unlock(&threads.mutex);
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
        if (request_length(header) > LARGE)
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
        const struct timespec until = clock_after_ms(LARGE_MS);

        while (threads.woken == 0)
                if (!has_large)
                        (void)pthread_cond_wait(&threads.wake, &threads.mutex);
                else if (pthread_cond_clockwait(&threads.wake, &threads.mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT)
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

/* Wait until this thread should read. No thread ever ends (threads_rest()). */
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
                replay_buffer(slot);
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
                if (threads.idle == 0 && n > 0 &&
                    (request_takes_long(request_buffer(slot)) || threads.working < listeners()))
                        start_listener();
                (void)pthread_mutex_unlock(&threads.mutex);
                if (n > 0) {
                        note_size(request_buffer(slot));
                        session_process(request_buffer(slot), (size_t)n);
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
static bool rest_within(unsigned ms)
{
        const struct timespec until = clock_after_ms(ms);
        bool rested;

        if (pthread_rwlock_clockwrlock(&threads.at_work, CLOCK_MONOTONIC, &until) != 0)
                return false;
        rested = caches_rest(rest_waiters, &until);
        (void)pthread_rwlock_unlock(&threads.at_work);
        return rested;
}

void threads_rest(void (*function)(void))
{
        const struct timespec pause = { .tv_sec = 1 };

        threads.rest = function;
        while (!rest_within(REST_MS)) {
                interrupts_look(); /* which nobody does meanwhile */
                (void)nanosleep(&pause, NULL);
        }
}

/* With the mutex held. Each slot's thread repeats its request first, also where it begins as a listener. */
static void start_replays(void)
{
        threads.unrepeated = false;
        for (int i = 0; i < THREADS_MAX; i++)
                if (!threads.taken[i] && request_buffer(i)->len > 0 && start_thread(i) < 0)
                        threads.unrepeated = true;
}

/*
 * With the mutex held, which is released meanwhile. Whoever waits for such a request would wait until as many others are under way at
 * once; and to end this daemon would count as a try of those that it repeats.
 */
static void start_replays_later(void)
{
        const struct timespec until = clock_after_ms(AGAIN_MS);

        if (pthread_cond_clockwait(&threads.ended, &threads.mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
                return;
        (void)pthread_mutex_unlock(&threads.mutex);
        (void)pthread_rwlock_rdlock(&threads.at_work);
        (void)pthread_mutex_lock(&threads.mutex);
        start_replays();
        (void)pthread_rwlock_unlock(&threads.at_work);
}

/* Begin to repeat what the last daemon left. Returns 0 or negative errno, with nothing repeated. */
static int replay(void)
{
        const int r = released_end();

        if (r < 0)
                return r;
        replay_waiters();
        (void)pthread_mutex_lock(&threads.mutex);
        for (int i = 0; i < THREADS_MAX; i++)
                threads.replays += request_buffer(i)->len > 0;
        start_replays();
        (void)pthread_mutex_unlock(&threads.mutex);
        return 0;
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

int threads_begin(void)
{
        /* this memory may be a copy of a daemon's, whose threads are gone */
        (void)memset(&threads, 0, sizeof threads);
        threads.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        /* whoever waits for the threads to rest (threads_rest()) comes before the next request */
        threads.at_work = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
        threads.wake = threads.replayed = threads.ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        threads.result = RUNNING;
        return save_memory();
}

int threads_serve(void)
{
        pthread_t thread;
        int r = 0;

        (void)pthread_rwlock_rdlock(&threads.at_work);
        if (!shared->network)
                r = -pthread_create(&thread, NULL, watch_listener, NULL);
        if (r == 0 && shared->served)
                session_greet();
        if (r == 0 && shared->begun) /* else there is nothing, and looking would take memory for all the buffers */
                r = replay();
        (void)pthread_rwlock_unlock(&threads.at_work);
        if (r < 0)
                return r;
        shared->begun = true; /* before anything is read */
        (void)pthread_mutex_lock(&threads.mutex);
        wait_for_replays();
        (void)pthread_mutex_unlock(&threads.mutex);
        (void)pthread_rwlock_rdlock(&threads.at_work);
        (void)pthread_mutex_lock(&threads.mutex);
        if ((r = start_first_listener()) == 0)
                session_is_ready(); /* it goes on with what it has read when this thread has left the mutex */
        else
                threads.result = r; /* the keeper starts another daemon */
        (void)pthread_rwlock_unlock(&threads.at_work);
        while (threads.result == RUNNING)
                if (threads.unrepeated)
                        start_replays_later();
                else
                        (void)pthread_cond_wait(&threads.ended, &threads.mutex);
        r = threads.result;
        (void)pthread_mutex_unlock(&threads.mutex);
        return r;
}
