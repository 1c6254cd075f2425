/* SPDX-License-Identifier: Apache-2.0 */
#include "waiters.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "answer.h"
#include "base/clock.h"
#include "caller.h"
#include "closing.h"
#include "descriptors.h"
#include "request.h"

#define SPARE_SLOTS (WAITERS_MAX / 4) /* not for those that wait: for those that are about to be answered */
#define BLOCKED_MAX (THREADS_MAX / 4) /* threads that may wait for a slot, which others end the use of */
#define SLOT_MS 10
#define LOOK_AT 256  /* waiters, each second */
#define AGAIN_MS 100 /* interval of retries: locks released on the node or by other clients are not reported here */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static TAILQ_HEAD(waiters, waiter) all; /* until they are answered */
static struct waiter *waiting;          /* for a lock */
static bool again;                      /* something changed since the retrying thread began to look; atomic */
static int blocked;                     /* threads that wait for a slot */
static void (*before)(void);            /* the thread that retries begins */
static __thread int repeated = -1;      /* the slot whose request this thread repeats; -1: none, or a waiter has it */

static bool have(int fd, bool asking)
{
        const struct waiter *waiter;

        (void)pthread_mutex_lock(&mutex);
        TAILQ_FOREACH(waiter, &all, entry)
        if (waiter->fd == fd && !(asking && waiter->given_up))
                break;
        (void)pthread_mutex_unlock(&mutex);
        return waiter != NULL;
}

bool waiters_have(int fd)
{
        return have(fd, /* asking= */ false);
}

bool waiters_have_asking(int fd)
{
        return have(fd, /* asking= */ true);
}

void waiters_unlock(int fd, const struct flock *lock)
{
        struct flock none = *lock;

        none.l_type = F_UNLCK;
        (void)fcntl(fd, F_OFD_SETLK, &none); /* a refusal by a server cannot be reported */
}

/*
 * Record the answer before it is sent, in place of the request. If the daemon dies now, the next one sends it again and does
 * not repeat the request: the caller may have the answer, and have unlocked, or locked, since.
 */
static void keep_answer(const struct waiter *waiter, int r)
{
        const struct fuse_out_header answer = { .len = sizeof answer, .error = r };
        uint64_t head;

        _Static_assert(offsetof(struct fuse_out_header, unique) == sizeof head &&
                               offsetof(struct fuse_in_header, unique) == sizeof head,
                       "the request's number stays where it is");
        _Static_assert(offsetof(struct shared, waiters) % sizeof head == 0 && WAITER_SIZE % sizeof head == 0,
                       "one store");
        if (waiter->slot < 0)
                return;
        (void)memcpy(&head, &answer, sizeof head);
        __atomic_store_n((uint64_t *)(void *)shared->waiters[waiter->slot], head, __ATOMIC_RELEASE);
}

/*
 * The caller does not know of the lock, and will not release it. One of flock(2) is of the open file, which another process may
 * have, too: it had none at least since this one waited.
 */
static void undo(const struct waiter *waiter)
{
        if (waiter->operation == 0 && waiter->lock.l_type != F_UNLCK)
                waiters_unlock(waiter->fd, &waiter->lock);
        else if (waiter->operation != 0 && waiter->waited)
                (void)flock(waiter->fd, LOCK_UN); /* a refusal by a server cannot be reported */
}

/* Memory is freed with the mutex held: waiters_rest(). */
void waiters_end(struct waiter *waiter, int r)
{
        const int fd = waiter->fd;

        (void)pthread_mutex_lock(&mutex);
        fuse_req_interrupt_func(waiter->request, NULL, NULL); /* waits for a callback that is running */
        keep_answer(waiter, r);
        if (fuse_reply_err(waiter->request, -r) == -ENOENT && r == 0) {
                waiter->given_up = true;
                (void)pthread_mutex_unlock(&mutex);
                undo(waiter); /* a server may be slow to answer */
                (void)pthread_mutex_lock(&mutex);
        }
        TAILQ_REMOVE(&all, waiter, entry);
        if (waiter->slot >= 0) /* the next daemon does not retry it any more */
                (void)memset(shared->waiters[waiter->slot], 0, sizeof(uint32_t));
        free(waiter);
        (void)pthread_mutex_unlock(&mutex);
        closing_done(fd);
}

static void end_granted(struct caches_job *job)
{
        waiters_end((void *)job, 0);
}

void waiters_grant(struct waiter *waiter)
{
        waiter->job.then = end_granted;
        caches_drop(&waiter->job);
}

static int try_lock(const struct waiter *waiter)
{
        struct flock lock = waiter->lock;

        if (waiter->operation != 0)
                return flock(waiter->fd, waiter->operation | LOCK_NB) < 0 ? -errno : 0;
        return fcntl(waiter->fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

bool waiters_would_wait(int r)
{
        return r == -EAGAIN || r == -EACCES;
}

static void look_again(void)
{
        __atomic_store_n(&again, true, __ATOMIC_SEQ_CST);
        (void)pthread_cond_signal(&changed);
}

static bool is_over(const struct waiter *waiter)
{
        return __atomic_load_n(&waiter->interrupted, __ATOMIC_RELAXED) ||
               __atomic_load_n(&waiter->given_up, __ATOMIC_RELAXED);
}

static void *retry(void *ignored)
{
        (void)ignored;
        before();
        (void)pthread_mutex_lock(&mutex);
        for (;;) {
                struct waiter **link = &waiting;
                struct timespec until;

                __atomic_store_n(&again, false, __ATOMIC_SEQ_CST);
                while (*link != NULL) {
                        struct waiter *waiter = *link;
                        int r;

                        /* only this thread removes from the list; a server may be slow to answer */
                        (void)pthread_mutex_unlock(&mutex);
                        r = is_over(waiter) ? -EINTR : try_lock(waiter);
                        (void)pthread_mutex_lock(&mutex);

                        if (waiters_would_wait(r)) {
                                link = &waiter->next;
                                continue;
                        }
                        *link = waiter->next; /* others are only added, at the end */
                        if (r == 0) {
                                waiters_grant(waiter);
                                continue;
                        }
                        (void)pthread_mutex_unlock(&mutex);
                        waiters_end(waiter, r);
                        (void)pthread_mutex_lock(&mutex);
                }
                if (__atomic_load_n(&again, __ATOMIC_SEQ_CST))
                        continue; /* told while this thread looked, perhaps of one that it had passed */
                if (waiting == NULL) {
                        (void)pthread_cond_wait(&changed, &mutex);
                        continue;
                }
                until = clock_after_ms(AGAIN_MS + (shared->network ? 1000 : 0));
                (void)pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &until);
        }
        return NULL;
}

int waiters_begin(void (*begin)(void))
{
        pthread_t thread;

        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        TAILQ_INIT(&all);
        waiting = NULL;
        blocked = 0;
        again = false;
        before = begin;
        return -pthread_create(&thread, NULL, retry, NULL);
}

void waiters_rest(void (*function)(void))
{
        (void)pthread_mutex_lock(&mutex);
        function();
        (void)pthread_mutex_unlock(&mutex);
}

void waiters_retry(void)
{
        (void)pthread_mutex_lock(&mutex);
        if (waiting != NULL)
                look_again();
        (void)pthread_mutex_unlock(&mutex);
}

void waiters_repeat(int slot)
{
        if (slot < 0 && repeated >= 0)
                (void)memset(shared->waiters[repeated], 0, sizeof(uint32_t));
        repeated = slot;
}

/* With the mutex held. As of descriptors, one may have so many as are left. */
static bool may_wait(const struct waiter *waiter)
{
        int left = WAITERS_MAX - SPARE_SLOTS;
        int of_process = 0;
        int of_user = 0;

        for (const struct waiter *other = waiting; other != NULL; other = other->next) {
                of_process += other->by.process == waiter->by.process;
                of_user += other->by.user == waiter->by.user;
                left--;
        }
        return of_process < left && of_user / 3 < left;
}

/* With the mutex held. Returns -1 if there is none. */
static int take_slot(void)
{
        int taken = repeated;

        repeated = -1;
        for (int i = 0; taken < 0 && i < WAITERS_MAX; i++) {
                uint32_t used;

                (void)memcpy(&used, shared->waiters[i], sizeof used);
                if (used != 0)
                        continue;
                if ((uint32_t)i >= shared->waiters_high)
                        shared->waiters_high = (uint32_t)i + 1;
                if (!request_keep(shared->waiters[i]))
                        break;
                taken = i;
        }
        return taken;
}

/*
 * With the mutex held, but not all the time. An unlock, which nobody expects to fail: while no slot is free its request stays
 * in this thread's buffer, and the next daemon finds it there. Returns -1 where too many threads wait already.
 */
static int wait_for_slot(void)
{
        int slot;

        while ((slot = take_slot()) < 0 && blocked < BLOCKED_MAX && request_current()->len <= WAITER_SIZE) {
                blocked++;
                (void)pthread_mutex_unlock(&mutex);
                (void)poll(NULL, 0, SLOT_MS);
                (void)pthread_mutex_lock(&mutex);
                blocked--;
        }
        return slot;
}

/* With the mutex held. In place of the request its answer, as keep_answer(), unless that is there by now. */
static void give_up(struct waiter *waiter)
{
        const struct fuse_out_header answer = { .len = sizeof answer, .error = -EINTR };
        uint64_t *head = waiter->slot >= 0 ? (void *)shared->waiters[waiter->slot] : NULL;
        uint64_t request = head != NULL ? __atomic_load_n(head, __ATOMIC_ACQUIRE) : 0;
        uint64_t kept;
        uint32_t size;

        (void)memcpy(&kept, &answer, sizeof kept);
        (void)memcpy(&size, &request, sizeof size);
        __atomic_store_n(&waiter->given_up, true, __ATOMIC_RELAXED);
        if (size > sizeof answer)
                __atomic_store_n(head, kept, __ATOMIC_RELEASE);
        answer_error(waiter->unique, EINTR);
}

struct waiter *waiters_make(fuse_req_t request, fuse_ino_t node, int fd, int operation, const struct flock *lock,
                            bool waits)
{
        const bool unlocks = lock != NULL ? lock->l_type == F_UNLCK : operation == LOCK_UN;
        const struct fuse_ctx *context = fuse_req_ctx(request);
        struct waiter *waiter = calloc(1, sizeof *waiter);
        bool made;

        if (waiter == NULL)
                return NULL;
        *waiter = (struct waiter){ .request = request,
                                   .unique = request_current()->unique,
                                   .thread = context->pid,
                                   .fd = fd,
                                   .operation = operation,
                                   .slot = -1 };
        waiter->job.node = node;
        if (lock != NULL)
                waiter->lock = *lock;
        if (waits)
                waiter->by = descriptors_opener(context->pid, context->uid);
        (void)pthread_mutex_lock(&mutex);
        if (unlocks)
                waiter->slot = wait_for_slot();
        else if (!waits || request_replayed() || may_wait(waiter))
                waiter->slot = take_slot();
        /* a kill may lose an unlock without a slot: sooner that than done before mapped pages are written */
        made = waiter->slot >= 0 || unlocks;
        if (made) {
                TAILQ_INSERT_TAIL(&all, waiter, entry);
                if (request_given_up())
                        give_up(waiter);
        }
        (void)pthread_mutex_unlock(&mutex);
        if (made)
                return waiter;
        free(waiter);
        return NULL;
}

/* Behind the request in a slot: its number, if it was interrupted, which the kernel says once. */
static uint64_t *interrupted_in(int slot)
{
        _Static_assert(sizeof(struct fuse_in_header) + sizeof(struct fuse_lk_in) + sizeof(uint64_t) <= WAITER_SIZE,
                       "there is room");
        return (uint64_t *)(void *)(shared->waiters[slot] + WAITER_SIZE - sizeof(uint64_t));
}

/* libfuse holds the request's lock: only set a flag, and one for the next daemon. */
static void interrupt(fuse_req_t request, void *data)
{
        struct waiter *waiter = data;

        (void)request;
        if (waiter->slot >= 0)
                __atomic_store_n(interrupted_in(waiter->slot), waiter->unique, __ATOMIC_RELAXED);
        __atomic_store_n(&waiter->interrupted, true, __ATOMIC_RELAXED);
        look_again();
}

void waiters_look(void)
{
        struct waiter *first = NULL;
        struct waiter *waiter;
        bool any = false;

        (void)pthread_mutex_lock(&mutex);
        for (int i = 0; i < LOOK_AT && (waiter = TAILQ_FIRST(&all)) != NULL && waiter != first; i++) {
                if (first == NULL)
                        first = waiter;
                TAILQ_REMOVE(&all, waiter, entry);
                TAILQ_INSERT_TAIL(&all, waiter, entry); /* the next call goes on behind it */
                if (waiter->given_up || !caller_is_dying(waiter->thread))
                        continue;
                give_up(waiter);
                any = true;
        }
        if (any)
                look_again();
        (void)pthread_mutex_unlock(&mutex);
}

void waiters_wait(struct waiter *waiter)
{
        struct waiter **end = &waiting;

        waiter->waited = !request_replayed(); /* what the last daemon left may have had its lock */
        waiter->interrupted = request_replayed() && waiter->slot >= 0 &&
                              __atomic_load_n(interrupted_in(waiter->slot), __ATOMIC_RELAXED) == waiter->unique;
        (void)pthread_mutex_lock(&mutex);
        fuse_req_interrupt_func(waiter->request, interrupt, waiter); /* before another thread can end it */
        while (*end != NULL)
                end = &(*end)->next;
        waiter->next = NULL;
        *end = waiter; /* who has waited longest is tried first, as the kernel does */
        look_again();
        (void)pthread_mutex_unlock(&mutex);
}
