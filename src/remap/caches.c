/* SPDX-License-Identifier: Apache-2.0 */
#include "caches.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "answer.h"
#include "nodes.h"
#include "request.h"

/* Who was told a node's attributes, if it is not one thread. */
#define NOBODY 0
#define SEVERAL (-1) /* not all the same */
#define ALL (-2)     /* several, the same */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static pthread_mutex_t at_work = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER; /* of what the nodes' files have been told */
static struct caches_job *first;
static struct caches_job **last = &first;

int64_t caches_nanoseconds(const struct timespec *time)
{
        /* only compared: a container may set a time that is too large, which wraps */
        return (int64_t)((uint64_t)time->tv_sec * 1000000000U + (uint64_t)time->tv_nsec);
}

struct file_state caches_state(const struct stat *st)
{
        return (struct file_state){ .size = st->st_size,
                                    .mtime_ns = caches_nanoseconds(&st->st_mtim),
                                    .ctime_ns = caches_nanoseconds(&st->st_ctim) };
}

bool caches_same(const struct file_state *one, const struct file_state *other)
{
        return one->size == other->size && one->mtime_ns == other->mtime_ns && one->ctime_ns == other->ctime_ns;
}

/* To make known who the kernel believes owns a file: one attempt for all nodes whose numbers have the same rest. */
#define ATTEMPTS 64
#define ATTEMPT_LATES 3             /* how long it may take */
#define LATE_NS INT64_C(1000000000) /* no request waits for so long before it is read */
static struct attempt {
        const struct node *node; /* NULL: none */
        pid_t thread;            /* of the container, that asked; or that was told */
        bool told;
        int64_t since_ns; /* the attributes were dropped */
        int drops;        /* under way: an answer to a request from before is ignored */
} attempts[ATTEMPTS];

static struct attempt *attempt_of(const struct node *node)
{
        return &attempts[nodes_number(node) % ATTEMPTS];
}

static int64_t name_gone_ns; /* when the last name was removed */

static int64_t now_ns(clockid_t clock)
{
        struct timespec now;

        (void)clock_gettime(clock, &now); /* cannot fail for these clocks */
        return caches_nanoseconds(&now);
}

/* With the mutex held. What a thread was told may be ignored. */
static void end_attempt(const struct node *node)
{
        attempt_of(node)->node = NULL;
}

/* The kernel ignores the answers to all requests that began before. */
static void invalidate(uint64_t number, bool pages)
{
        const struct node *node = &shared->nodes[number];

        (void)pthread_mutex_lock(&telling);
        end_attempt(node);
        attempt_of(node)->drops++;
        (void)pthread_mutex_unlock(&telling);
        answer_invalidate(number, pages);
        (void)pthread_mutex_lock(&telling);
        end_attempt(node);
        attempt_of(node)->drops--;
        (void)pthread_mutex_unlock(&telling);
}

void caches_drop_attributes(struct node *node)
{
        (void)pthread_mutex_lock(&telling);
        node->told_to = NOBODY; /* first: whoever is told from now on is counted */
        (void)pthread_mutex_unlock(&telling);
        invalidate(nodes_number(node), /* pages= */ false);
}

/* That thread is told the attributes, and has them when it asks the next time, unless they are dropped meanwhile. */
static void note_told(const struct node *node, pid_t thread)
{
        struct attempt *attempt = attempt_of(node);

        (void)pthread_mutex_lock(&telling);
        if (attempt->node == node &&
            (attempt->thread == thread || now_ns(CLOCK_MONOTONIC) - attempt->since_ns > LATE_NS)) {
                attempt->thread = thread;
                attempt->told = true;
        }
        (void)pthread_mutex_unlock(&telling);
}

/* With the mutex held. Whether a name of the file may just have been removed, which the kernel need not know: its time tells. */
static bool has_lost_name(const struct stat *st)
{
        return now_ns(CLOCK_MONOTONIC) - name_gone_ns < LATE_NS &&
               now_ns(CLOCK_REALTIME) - caches_nanoseconds(&st->st_ctim) < 2 * LATE_NS;
}

/* With the mutex held. Whether an attempt is under way, in which this thread is the one to be told now. */
static bool take_turn(const struct node *node, pid_t thread)
{
        struct attempt *attempt = attempt_of(node);

        if (attempt->node != node || attempt->drops > 0 ||
            now_ns(CLOCK_MONOTONIC) - attempt->since_ns > ATTEMPT_LATES * LATE_NS)
                return false;
        attempt->thread = thread;
        attempt->told = false;
        return true;
}

/*
 * What was told before is ignored since the attributes were dropped for an attempt, if it was not applied by then. An answer to
 * a request that began later is applied, unless the attributes are dropped again, a write is answered, or another name of the
 * file is removed meanwhile, which each end the attempt. A request began later if its thread was refused later, or if it was
 * read long after. And once the kernel has an owner, it only gets the same again, as long as the file has that. Who changes
 * owner, mode or ACL holds the inode's lock from before the kernel checks until the answer: so nobody else's check is older.
 */
bool caches_owner_is_known(struct node *node, pid_t thread, const struct stat *st)
{
        struct attempt *attempt = attempt_of(node);
        bool known;
        bool begun;

        if (!node->owner_varied)
                return true;
        (void)pthread_mutex_lock(&telling);
        if (attempt->node == node && attempt->told && attempt->thread == thread && attempt->drops == 0 &&
            node->writers == 0 && !has_lost_name(st))
                node->owner_varied = false;
        known = !node->owner_varied;
        begun = known || take_turn(node, thread);
        (void)pthread_mutex_unlock(&telling);
        if (begun)
                return known;
        caches_drop_attributes(node);
        (void)pthread_mutex_lock(&telling);
        attempt->node = node;
        attempt->since_ns = now_ns(CLOCK_MONOTONIC);
        (void)take_turn(node, thread);
        (void)pthread_mutex_unlock(&telling);
        return false;
}

void caches_name_goes(void)
{
        (void)pthread_mutex_lock(&telling);
        name_gone_ns = now_ns(CLOCK_MONOTONIC);
        (void)pthread_mutex_unlock(&telling);
}

/*
 * The kernel applies an answer when the thread that waited for it runs, and ignores one whose request began before
 * another was applied, or before the attributes were dropped. So the attributes that it has, unless it knows that they
 * are not valid, are for certain:
 * - for the thread that alone was told them: what it was told last. It has applied each answer before it asks again;
 * - what several were told, if that was the same.
 * It also ignores one whose request began before a write was answered: while the file is open for writing nothing is for
 * certain, and after that not before the attributes were dropped once more.
 */
void caches_tell(struct node *node, pid_t thread, const struct stat *st)
{
        const struct file_state state = caches_state(st);
        bool same;

        caches_tell_owner(node, st);
        if (node->owner_varied && request_current()->opcode != FUSE_READDIRPLUS) /* of which it may leave entries out */
                note_told(node, thread);
        if (shared->network || nodes_alone(node))
                return; /* nobody asks for the rest */
        (void)pthread_mutex_lock(&telling);
        same = caches_same(&node->told, &state);
        if (node->told_to == NOBODY && thread > 0) {
                node->told_to = thread;
                node->told_varied = false;
        } else if (node->told_to == thread)
                node->told_varied = node->told_varied || !same;
        else
                node->told_to = same && !node->told_varied && node->told_to != SEVERAL && thread > 0 ? ALL : SEVERAL;
        node->told = state;
        (void)pthread_mutex_unlock(&telling);
}

/* execve(2) does not look at S_ISGID where the group may not execute the file. */
static bool has_set_id(const struct stat *st)
{
        return (st->st_mode & S_ISUID) != 0 || (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

static bool has_mode_of_locking(const struct stat *st)
{
        return S_ISREG(st->st_mode) && (st->st_mode & (S_ISGID | S_IXGRP)) == S_ISGID;
}

bool caches_has_mode_of_locking(struct node *node, int fd)
{
        struct stat st;
        bool locking;

        if (__atomic_load_n(&node->told_no_locking, __ATOMIC_RELAXED))
                return false;
        if (fstat(fd, &st) < 0)
                return false;
        locking = has_mode_of_locking(&st);
        /* a mode that is set at this moment may be noted before: then the next write takes its bit, which counts for nothing */
        __atomic_store_n(&node->told_no_locking, !locking, __ATOMIC_RELAXED);
        return locking;
}

void caches_tell_owner(struct node *node, const struct stat *st)
{
        bool untold;

        __atomic_store_n(&node->told_no_locking, !has_mode_of_locking(st), __ATOMIC_RELAXED);
        (void)pthread_mutex_lock(&telling);
        untold = node->told_uid == OWNER_UNTOLD;
        if (!untold && (node->told_uid != st->st_uid || node->told_gid != st->st_gid)) {
                node->owner_varied = true;
                end_attempt(node);
        }
        node->told_uid = st->st_uid;
        node->told_gid = st->st_gid;
        if (has_set_id(st)) /* what is told afterwards it may ignore (caches_tell()) */
                node->told_no_set_id = false;
        else if (untold) /* nothing else can be on its way to it */
                node->told_no_set_id = true;
        (void)pthread_mutex_unlock(&telling);
}

void caches_set_owner(struct node *node, const struct stat *st)
{
        (void)pthread_mutex_lock(&telling);
        node->told_uid = st->st_uid;
        node->told_gid = st->st_gid;
        (void)pthread_mutex_unlock(&telling);
}

void caches_owner_was_set(struct node *node, bool answered)
{
        (void)pthread_mutex_lock(&telling);
        node->owner_varied = !answered;
        (void)pthread_mutex_unlock(&telling);
}

bool caches_know_no_set_id(const struct node *node)
{
        bool know;

        (void)pthread_mutex_lock(&telling);
        know = node->told_no_set_id;
        (void)pthread_mutex_unlock(&telling);
        return know;
}

bool caches_note_set_id(struct node *node, const struct stat *st)
{
        bool lost;

        (void)pthread_mutex_lock(&telling);
        lost = !node->told_no_set_id && !has_set_id(st);
        node->told_no_set_id = !has_set_id(st);
        (void)pthread_mutex_unlock(&telling);
        return lost;
}

bool caches_note(struct node *node, const struct stat *st)
{
        const struct file_state state = caches_state(st);
        bool same;

        (void)pthread_mutex_lock(&telling);
        same = caches_same(&node->told, &state);
        node->told = state;
        (void)pthread_mutex_unlock(&telling);
        return !same;
}

/* caches_tell() does not use told_varied where nobody else changes the file. */
void caches_note_mapped(struct node *node)
{
        if (!__atomic_exchange_n(&node->told_varied, true, __ATOMIC_RELAXED))
                caches_drop_attributes(node); /* it believes them for good */
}

bool caches_may_be_mapped(const struct node *node)
{
        return nodes_alone(node) && __atomic_load_n(&node->told_varied, __ATOMIC_RELAXED);
}

void caches_begin_writing(struct node *node)
{
        (void)pthread_mutex_lock(&telling);
        node->writers++;
        end_attempt(node);
        (void)pthread_mutex_unlock(&telling);
}

void caches_end_writing(struct node *node)
{
        (void)pthread_mutex_lock(&telling);
        node->writers--;
        node->told_to = SEVERAL;
        end_attempt(node);
        (void)pthread_mutex_unlock(&telling);
}

bool caches_have_attributes(const struct node *node, pid_t thread, const struct stat *st)
{
        const struct file_state state = caches_state(st);
        bool have;

        (void)pthread_mutex_lock(&telling);
        have = thread > 0 && node->writers == 0 && (node->told_to == thread || node->told_to == ALL) &&
               caches_same(&node->told, &state);
        (void)pthread_mutex_unlock(&telling);
        return have;
}

bool caches_have_pages(const struct node *node)
{
        return node->backing == 0 && !nodes_alone(node);
}

void caches_drop(struct caches_job *job)
{
        job->next = NULL;
        (void)pthread_mutex_lock(&mutex);
        *last = job;
        last = &job->next;
        (void)pthread_cond_signal(&changed);
        (void)pthread_mutex_unlock(&mutex);
}

static struct caches_job *take_job(void)
{
        struct caches_job *job;

        (void)pthread_mutex_lock(&mutex);
        while (first == NULL)
                (void)pthread_cond_wait(&changed, &mutex);
        job = first;
        first = job->next;
        if (first == NULL)
                last = &first;
        (void)pthread_mutex_unlock(&mutex);
        return job;
}

static void *work(void *ignored)
{
        (void)ignored;
        for (;;) {
                struct caches_job *job = take_job();

                invalidate(job->node, /* pages= */ true);
                (void)pthread_mutex_lock(&at_work);
                job->then(job);
                (void)pthread_mutex_unlock(&at_work);
        }
        return NULL;
}

int caches_begin(void)
{
        pthread_t thread;

        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        at_work = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        telling = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        first = NULL;
        last = &first;
        (void)memset(attempts, 0, sizeof attempts);
        return -pthread_create(&thread, NULL, work, NULL);
}

bool caches_rest(void (*function)(void), const struct timespec *until)
{
        if (pthread_mutex_clocklock(&at_work, CLOCK_MONOTONIC, until) != 0)
                return false;
        function();
        (void)pthread_mutex_unlock(&at_work);
        return true;
}
