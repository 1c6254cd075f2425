/* SPDX-License-Identifier: Apache-2.0 */
#include "locks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <time.h>
#include <unistd.h>

#include "nodes.h"
#include "operation.h"
#include "request.h"

#define AGAIN_MS 100 /* interval of retries: locks released on the node or by other clients are not reported here */

struct waiter {
        fuse_req_t request;
        int slot; /* in shared->waiters, which has a copy of the request for the next daemon; -1: the table was full */
        int fd;
        int operation;     /* of flock(2); 0: a POSIX lock */
        struct flock lock; /* the POSIX lock */
        bool interrupted;
        struct waiter *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t owners_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct waiter *waiting;

/* ---- owners of POSIX locks */

static struct lock_owner *find_owner(const struct node *node, uint64_t owner)
{
        uint32_t number = (uint32_t)nodes_number(node);

        for (size_t i = 0; i < OWNERS_MAX; i++)
                if (shared->owners[i].node == number && shared->owners[i].owner == owner)
                        return &shared->owners[i];
        return NULL;
}

/*
 * Open a file description that every kind of lock can be set on. The permission to lock was checked when fd was opened.
 * So the file is opened as root for reading and writing; where that fails (a server squashes root), as the caller, or
 * with the access mode of fd.
 */
static int open_again(int fd)
{
        char path[32];
        int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
        int was = setfsuid(0);
        int again;

        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (again < 0)
                again = open(path, mode | O_NONBLOCK | O_CLOEXEC);
        (void)setfsuid((uid_t)was);
        if (again < 0)
                again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        return again >= 0 ? again : open(path, mode | O_NONBLOCK | O_CLOEXEC);
}

static struct lock_owner *free_owner(void)
{
        for (size_t i = 0; i < OWNERS_MAX; i++)
                if (shared->owners[i].node == 0)
                        return &shared->owners[i];
        return NULL;
}

/* With owners_mutex held. The descriptor of an owner. Errors: ENOENT it has none, and make is false. */
static int owner_fd(struct node *node, int fd, uint64_t owner, bool make)
{
        struct lock_owner *found = find_owner(node, owner);
        int new_fd;
        int r;

        if (found != NULL)
                return found->fd;
        if (!make)
                return -ENOENT;
        if ((r = descriptor_check_limit()) < 0)
                return r;
        found = free_owner();
        if (found == NULL)
                return -ENOLCK;
        new_fd = open_again(fd);
        if (new_fd < 0)
                return -errno;
        found->fd = new_fd;
        found->file = fd;
        found->owner = owner;
        descriptor_use(new_fd, USE_LOCK);
        found->node = (uint32_t)nodes_number(node);
        node->owners++;
        return new_fd;
}

static bool has_waiter(int fd)
{
        bool found = false;

        (void)pthread_mutex_lock(&mutex);
        for (const struct waiter *waiter = waiting; !found && waiter != NULL; waiter = waiter->next)
                found = waiter->fd == fd;
        (void)pthread_mutex_unlock(&mutex);
        return found;
}

/* With owners_mutex held. Closing the descriptor releases its locks. */
static void end_owner(struct node *node, struct lock_owner *owner)
{
        owner->node = 0;
        node->owners--;
        descriptor_end(owner->fd);
}

void locks_drop(struct node *node, uint64_t owner)
{
        struct lock_owner *found;

        if (node->owners == 0)
                return;
        (void)pthread_mutex_lock(&owners_mutex);
        found = find_owner(node, owner);
        if (found != NULL && has_waiter(found->fd)) {
                struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

                (void)fcntl(found->fd, F_OFD_SETLK, &all); /* another thread of this owner is still waiting */
        } else if (found != NULL)
                end_owner(node, found);
        (void)pthread_mutex_unlock(&owners_mutex);
        if (found != NULL)
                locks_changed();
}

void locks_drop_file(struct node *node, int fd)
{
        uint32_t number = (uint32_t)nodes_number(node);

        if (node->owners == 0)
                return;
        (void)pthread_mutex_lock(&owners_mutex);
        for (size_t i = 0; node->owners > 0 && i < OWNERS_MAX; i++) {
                struct lock_owner *owner = &shared->owners[i];

                if (owner->node == number && (fd < 0 || owner->file == fd))
                        end_owner(node, owner);
        }
        (void)pthread_mutex_unlock(&owners_mutex);
        locks_changed();
}

/* ---- waiting requests */

static void unlock(int fd, const struct flock *lock)
{
        struct flock none = *lock;

        none.l_type = F_UNLCK;
        (void)fcntl(fd, F_OFD_SETLK, &none); /* a refusal by a server cannot be reported */
}

static void end_waiter(struct waiter *waiter, int r)
{
        fuse_req_interrupt_func(waiter->request, NULL, NULL); /* waits for a callback that is running */
        if (fuse_reply_err(waiter->request, -r) == -ENOENT && r == 0 && waiter->operation == 0)
                unlock(waiter->fd, &waiter->lock);
        if (waiter->slot >= 0) /* the next daemon does not retry it any more */
                (void)memset(shared->waiters[waiter->slot], 0, sizeof(uint32_t));
        free(waiter);
}

static int try_lock(const struct waiter *waiter)
{
        struct flock lock = waiter->lock;

        if (waiter->operation != 0)
                return flock(waiter->fd, waiter->operation | LOCK_NB) < 0 ? -errno : 0;
        return fcntl(waiter->fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static bool would_wait(int r)
{
        return r == -EAGAIN || r == -EACCES;
}

static void *retry(void *ignored)
{
        (void)ignored;
        (void)pthread_mutex_lock(&mutex);
        for (;;) {
                struct waiter **link = &waiting;
                struct timespec until;

                while (*link != NULL) {
                        struct waiter *waiter = *link;
                        int r;

                        /* only this thread removes from the list; a server may be slow to answer */
                        (void)pthread_mutex_unlock(&mutex);
                        r = waiter->interrupted ? -EINTR : try_lock(waiter);
                        (void)pthread_mutex_lock(&mutex);

                        if (would_wait(r)) {
                                link = &waiter->next;
                                continue;
                        }
                        for (link = &waiting; *link != waiter;) /* others may have been inserted before it */
                                link = &(*link)->next;
                        *link = waiter->next;
                        end_waiter(waiter, r);
                }
                if (waiting == NULL) {
                        (void)pthread_cond_wait(&changed, &mutex);
                        continue;
                }
                (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail for this clock */
                until.tv_sec += shared->network ? 1 : 0;
                until.tv_nsec += AGAIN_MS * 1000000L;
                if (until.tv_nsec >= 1000000000L) {
                        until.tv_nsec -= 1000000000L;
                        until.tv_sec++;
                }
                (void)pthread_cond_timedwait(&changed, &mutex, &until);
        }
        return NULL;
}

int locks_begin(void)
{
        pthread_t thread;

        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        owners_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        waiting = NULL;
        return -pthread_create(&thread, NULL, retry, NULL);
}

void locks_rest(void (*function)(void))
{
        (void)pthread_mutex_lock(&mutex);
        function();
        (void)pthread_mutex_unlock(&mutex);
}

void locks_changed(void)
{
        (void)pthread_mutex_lock(&mutex);
        if (waiting != NULL)
                (void)pthread_cond_signal(&changed);
        (void)pthread_mutex_unlock(&mutex);
}

/* libfuse holds the request's lock: only set a flag. */
static void interrupt(fuse_req_t request, void *data)
{
        struct waiter *waiter = data;

        (void)request;
        __atomic_store_n(&waiter->interrupted, true, __ATOMIC_RELAXED);
        (void)pthread_cond_signal(&changed);
}

static void wait_for(fuse_req_t request, int fd, int operation, const struct flock *lock)
{
        struct waiter *waiter = calloc(1, sizeof *waiter);

        if (waiter == NULL) {
                (void)fuse_reply_err(request, ENOMEM);
                return;
        }
        *waiter = (struct waiter){ .request = request, .fd = fd, .operation = operation, .slot = -1 };
        if (lock != NULL)
                waiter->lock = *lock;
        (void)pthread_mutex_lock(&mutex);
        for (int i = 0; waiter->slot < 0 && i < WAITERS_MAX; i++) {
                uint32_t used;

                (void)memcpy(&used, shared->waiters[i], sizeof used);
                if (used == 0 && request_keep(shared->waiters[i]))
                        waiter->slot = i;
        }
        fuse_req_interrupt_func(request, interrupt, waiter); /* before another thread can end it */
        waiter->next = waiting;
        waiting = waiter;
        (void)pthread_cond_signal(&changed);
        (void)pthread_mutex_unlock(&mutex);
}

/* ---- requests */

static void get_lock(fuse_req_t request, struct node *node, int fd, uint64_t owner, struct flock *lock)
{
        int owned;
        int r = 0;

        lock->l_pid = 0;
        (void)pthread_mutex_lock(&owners_mutex); /* keeps the descriptor this owner's */
        owned = owner_fd(node, fd, owner, /* make= */ true);
        if (owned < 0)
                r = owned;
        else if (fcntl(owned, F_OFD_GETLK, lock) < 0)
                r = -errno;
        (void)pthread_mutex_unlock(&owners_mutex);
        if (lock->l_pid < 0)
                lock->l_pid = 0; /* held by a process that the container does not see */
        if (r < 0)
                (void)fuse_reply_err(request, -r);
        else
                (void)fuse_reply_lock(request, lock);
}

static void set_lock(fuse_req_t request, struct node *node, int fd, uint64_t owner, struct flock *lock, bool wait)
{
        bool waits = false;
        int owned;
        int r = 0;

        lock->l_pid = 0; /* F_OFD_SETLK wants it so */
        (void)pthread_mutex_lock(&owners_mutex);
        owned = owner_fd(node, fd, owner, /* make= */ lock->l_type != F_UNLCK);
        if (owned < 0)
                r = owned == -ENOENT ? 0 : owned; /* unlocking without a lock succeeds */
        else if (fcntl(owned, F_OFD_SETLK, lock) < 0) {
                r = -errno;
                waits = wait && would_wait(r);
                if (waits)
                        wait_for(request, owned, 0, lock);
        }
        /* the caller was interrupted, does not know of the lock, and will not release it */
        if (!waits && fuse_reply_err(request, -r) == -ENOENT && r == 0 && lock->l_type != F_UNLCK &&
            !request_replayed() && owned >= 0)
                unlock(owned, lock);
        (void)pthread_mutex_unlock(&owners_mutex);
        if (!waits && lock->l_type == F_UNLCK)
                locks_changed();
}

void locks_getlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock)
{
        struct node *node = nodes_get(number);

        if (node == NULL)
                operation_reply_error(request, -ESTALE);
        else
                get_lock(request, node, (int)file->fh, file->lock_owner, lock);
}

void locks_setlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock, int wait)
{
        struct node *node = nodes_get(number);

        if (node == NULL)
                operation_reply_error(request, -ESTALE);
        else
                set_lock(request, node, (int)file->fh, file->lock_owner, lock, wait != 0);
}

void locks_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, int operation)
{
        const int fd = (int)file->fh;
        int r = flock(fd, operation | LOCK_NB) < 0 ? -errno : 0;

        (void)number;
        if (would_wait(r) && (operation & LOCK_NB) == 0) {
                wait_for(request, fd, operation, NULL);
                return;
        }
        (void)fuse_reply_err(request, -r);
        if ((operation & ~LOCK_NB) == LOCK_UN)
                locks_changed();
}
