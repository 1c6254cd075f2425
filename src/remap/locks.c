/* SPDX-License-Identifier: Apache-2.0 */
#include "locks.h"

#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include "caches.h"
#include "closing.h"
#include "descriptors.h"
#include "nodes.h"
#include "operation.h"
#include "request.h"
#include "waiters.h"

static pthread_mutex_t owners_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- owners of POSIX locks */

static struct lock_owner *find_owner(const struct node *node, uint64_t owner)
{
        uint32_t number = (uint32_t)nodes_number(node);

        for (size_t i = 0; i < OWNERS_MAX; i++)
                if (shared->owners[i].node == number && shared->owners[i].owner == owner)
                        return &shared->owners[i];
        return NULL;
}

/* As who this thread is. Returns a descriptor, or -1 and errno. */
static int open_with(fuse_req_t request, int fd, int mode)
{
        return ATTEMPT(request, operation_open(fd, mode | O_NONBLOCK | O_CLOEXEC));
}

/*
 * Open a file description that every kind of lock can be set on, as the caller. The permission to lock was checked when
 * fd was opened, and may be gone by now: then as root, of which a server is not asked in the name of others where mounts
 * are id-mapped. What cannot be opened for reading and writing is opened with the access mode of fd.
 */
static int open_again(fuse_req_t request, int fd)
{
        const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
        int again = operation_act_as_caller(request);

        if (again < 0) {
                errno = -again;
                return -1;
        }
        if ((again = open_with(request, fd, O_RDWR)) >= 0)
                return again;
        if (!shared->mappable) {
                if ((again = operation_open_as_root(fd, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
                        again = operation_open_as_root(fd, mode | O_NONBLOCK | O_CLOEXEC);
        }
        return again >= 0 ? again : open_with(request, fd, mode);
}

static struct lock_owner *free_owner(void)
{
        for (size_t i = 0; i < OWNERS_MAX; i++)
                if (shared->owners[i].node == 0)
                        return &shared->owners[i];
        return NULL;
}

/* With owners_mutex held. As of descriptors, one may have so many owners as are left. */
static bool may_have_owner(fuse_req_t request)
{
        const struct fuse_ctx *context = fuse_req_ctx(request);
        uint32_t used = 0;
        uint32_t of_process = 0;
        uint32_t of_user = 0;
        struct opener by;

        for (size_t i = 0; i < OWNERS_MAX; i++)
                used += shared->owners[i].node != 0;
        if (used <= OWNERS_MAX / 8)
                return true;
        by = descriptors_opener(context->pid, context->uid);
        for (size_t i = 0; i < OWNERS_MAX; i++)
                if (shared->owners[i].node != 0) {
                        const struct opener *other = &shared->openers[shared->owners[i].fd];

                        of_process += other->process == by.process;
                        of_user += other->user == by.user;
                }
        return of_process < OWNERS_MAX - used && of_user / 3 < OWNERS_MAX - used;
}

/* With owners_mutex held. The descriptor of an owner, opened if it has none. */
static int owner_fd(fuse_req_t request, struct node *node, int fd, uint64_t owner)
{
        struct lock_owner *found = find_owner(node, owner);
        int new_fd;
        int r;

        if (found != NULL)
                return found->fd;
        if ((r = descriptors_check(fuse_req_ctx(request)->pid, fuse_req_ctx(request)->uid)) < 0)
                return r;
        found = free_owner();
        if (found == NULL || !may_have_owner(request))
                return -ENOLCK;
        new_fd = open_again(request, fd);
        if (new_fd < 0) /* some errors would say that another has the lock */
                return waiters_would_wait(-errno) ? -ENOLCK : -errno;
        if (request_given_up()) {    /* while the server did not answer: the node may be gone */
                (void)close(new_fd); /* nothing was written to it */
                return -EINTR;
        }
        found->fd = new_fd;
        found->file = fd;
        found->owner = owner;
        descriptor_use(new_fd, USE_LOCK);
        found->node = (uint32_t)nodes_number(node);
        node->owners++;
        return new_fd;
}

/* With owners_mutex held. Closing the descriptor releases its locks. */
static void end_owner(struct node *node, struct lock_owner *owner)
{
        owner->node = 0;
        node->owners--;
        descriptor_use(owner->fd, USE_RELEASED);
        closing_close(owner->fd);
}

/*
 * With owners_mutex held. Its locks are released; its descriptor stays while another thread of this owner waits on it. The
 * number of the file that was closed is another's from now on: what the thread then gets ends with a flush of the owner's.
 */
static void leave_owner(struct node *node, struct lock_owner *owner)
{
        struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

        if (waiters_have_asking(owner->fd)) {
                (void)fcntl(owner->fd, F_OFD_SETLK, &all);
                owner->file = -1;
        } else
                end_owner(node, owner);
}

void locks_drop(struct node *node, uint64_t owner)
{
        struct lock_owner *found;

        if (node->owners == 0)
                return;
        (void)pthread_mutex_lock(&owners_mutex);
        found = find_owner(node, owner);
        if (found != NULL)
                leave_owner(node, found);
        (void)pthread_mutex_unlock(&owners_mutex);
        if (found != NULL)
                waiters_retry();
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
                        fd < 0 ? end_owner(node, owner) : leave_owner(node, owner);
        }
        (void)pthread_mutex_unlock(&owners_mutex);
        waiters_retry();
}

/* ---- requests */

/* The last daemon was killed when an owner had it no more, or not yet. */
static void release_unowned(void)
{
        for (uint32_t fd = 0; fd < shared->descriptors; fd++) {
                size_t i = 0;

                if (shared->uses[fd] != USE_LOCK)
                        continue;
                while (i < OWNERS_MAX && (shared->owners[i].node == 0 || shared->owners[i].fd != (int)fd))
                        i++;
                if (i == OWNERS_MAX)
                        descriptor_use((int)fd, USE_RELEASED);
        }
}

/*
 * A daemon that was killed between the two has one in the table, and not counted: it would never end. Or one of a node that is
 * gone, whose number may be another's next.
 */
static void count_owners(void)
{
        for (size_t i = 0; i < OWNERS_MAX; i++) {
                struct node *node = shared->owners[i].node != 0 ? nodes_get(shared->owners[i].node) : NULL;

                if (node != NULL)
                        node->owners++;
                else
                        shared->owners[i].node = 0;
        }
}

int locks_begin(void (*before)(void))
{
        if (shared->begun) { /* else there is none, and looking would take memory */
                count_owners();
                release_unowned();
        }
        owners_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        return waiters_begin(before);
}

static void get_lock(fuse_req_t request, struct node *node, int fd, uint64_t owner, struct flock *lock)
{
        int owned;
        int r = 0;

        lock->l_pid = 0;
        (void)pthread_mutex_lock(&owners_mutex); /* keeps the descriptor this owner's */
        owned = request_given_up() ? -EINTR : owner_fd(request, node, fd, owner);
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

/* With owners_mutex held, as until a waiter is in a list. r: of the first attempt, which changed nothing or got the lock. */
static void answer_lock(fuse_req_t request, struct node *node, int fd, int operation, const struct flock *lock, int r)
{
        struct waiter *waiter = NULL;

        if (r == 0 && !caches_have_pages(node)) {
                if (!nodes_alone(node))
                        caches_drop_attributes(node);
                /* the caller was interrupted, does not know of the lock, and will not release it */
                if (fuse_reply_err(request, 0) == -ENOENT && lock != NULL && !request_replayed())
                        waiters_unlock(fd, lock);
                return;
        }
        if (r == 0 || waiters_would_wait(r))
                waiter = waiters_make(request, nodes_number(node), fd, operation, lock, /* waits= */ r != 0);
        if (waiter != NULL && r == 0)
                waiters_grant(waiter);
        else if (waiter != NULL)
                waiters_wait(waiter);
        else {
                if (r == 0 && lock != NULL)
                        waiters_unlock(fd, lock);
                else if (r == 0)
                        (void)flock(fd, LOCK_UN); /* as above */
                (void)fuse_reply_err(request, ENOLCK);
        }
}

/* What the last daemon left is begun before anything else is served, and the server need not answer. */
static bool is_left_to_retry(void)
{
        return shared->network && request_replayed();
}

static void set_lock(fuse_req_t request, struct node *node, int fd, uint64_t owner, struct flock *lock, bool wait)
{
        int owned;
        int r = 0;

        lock->l_pid = 0; /* F_OFD_SETLK wants it so */
        (void)pthread_mutex_lock(&owners_mutex);
        owned = request_given_up() ? -EINTR : owner_fd(request, node, fd, owner); /* none for a file that is released */
        if (owned < 0)
                r = owned;
        else if (wait && is_left_to_retry())
                r = -EAGAIN;
        else if (fcntl(owned, F_OFD_SETLK, lock) < 0)
                r = -errno;
        if (r == 0 || (wait && waiters_would_wait(r)))
                answer_lock(request, node, owned, 0, lock, r);
        else
                (void)fuse_reply_err(request, -r);
        (void)pthread_mutex_unlock(&owners_mutex);
}

/* waiter: NULL for this thread's request. Of a process that was killed all locks are released, and another may be that owner by now. */
static int unlock(struct node *node, uint64_t owner, struct flock *lock, const struct waiter *waiter)
{
        const struct lock_owner *found;
        bool over;
        int r = 0;

        lock->l_pid = 0;
        (void)pthread_mutex_lock(&owners_mutex);
        over = waiter != NULL ? __atomic_load_n(&waiter->given_up, __ATOMIC_RELAXED) : request_given_up();
        found = find_owner(node, owner);
        if (over)
                r = -EINTR;
        else if (found != NULL && fcntl(found->fd, F_OFD_SETLK, lock) < 0)
                r = -errno;
        (void)pthread_mutex_unlock(&owners_mutex);
        return r; /* unlocking without a lock succeeds */
}

/* What was written to mapped pages is written by now. */
static void unlock_later(struct caches_job *job)
{
        struct waiter *waiter = (void *)job;
        struct node *node = nodes_get(job->node);
        int r = 0;

        if (waiter->operation != 0)
                r = flock(waiter->fd, waiter->operation) < 0 ? -errno : 0;
        else if (node != NULL)
                r = unlock(node, waiter->owner, &waiter->lock, waiter);
        waiters_end(waiter, r);
        waiters_retry();
}

/* The next holder of the lock must see what was written to mapped pages. */
static void begin_unlock(fuse_req_t request, struct node *node, int fd, int operation, uint64_t owner,
                         struct flock *lock)
{
        struct waiter *waiter = NULL;
        int r;

        if (caches_have_pages(node) && (operation != 0 || node->owners > 0))
                waiter = waiters_make(request, nodes_number(node), fd, operation, lock, /* waits= */ false);
        if (waiter != NULL) {
                waiter->owner = owner;
                waiter->job.then = unlock_later;
                caches_drop(&waiter->job);
                return;
        }
        r = operation != 0 ? (flock(fd, operation) < 0 ? -errno : 0) : unlock(node, owner, lock, /* waiter= */ NULL);
        (void)fuse_reply_err(request, -r);
        waiters_retry();
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
        else if (lock->l_type == F_UNLCK)
                begin_unlock(request, node, (int)file->fh, 0, file->lock_owner, lock);
        else
                set_lock(request, node, (int)file->fh, file->lock_owner, lock, wait != 0);
}

void locks_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, int operation)
{
        struct node *node = nodes_get(number);
        const int fd = (int)file->fh;
        int r;

        if (node == NULL)
                operation_reply_error(request, -ESTALE);
        else if ((operation & ~LOCK_NB) == LOCK_UN)
                begin_unlock(request, node, fd, LOCK_UN, 0, NULL);
        else {
                if ((operation & LOCK_NB) == 0 && is_left_to_retry())
                        r = -EAGAIN;
                else
                        r = flock(fd, operation | LOCK_NB) < 0 ? -errno : 0;
                if (r == 0 || (waiters_would_wait(r) && (operation & LOCK_NB) == 0))
                        answer_lock(request, node, fd, operation, NULL, r);
                else
                        (void)fuse_reply_err(request, -r);
        }
}
