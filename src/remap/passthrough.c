/* SPDX-License-Identifier: Apache-2.0 */
#include "passthrough.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include "caller.h"
#include "request.h"

/* Linux 6.9 */
struct backing_map {
        int32_t fd;
        uint32_t flags;
        uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

static pthread_mutex_t backing_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static int asked[THREADS_MAX]; /* the open file that the thread of each slot asks, without the mutex; 0: none */

void passthrough_begin(void)
{
        backing_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        answered = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        (void)memset(asked, 0, sizeof asked);
}

/* With the mutex held, or of a node that nothing uses. */
static void end(struct node *node)
{
        if (node->backing > 0)
                (void)ioctl(FD_FUSE, BACKING_CLOSE, &node->backing); /* it was open */
        node->backing = 0;
}

/* With the mutex held. fd: an open file of the node. */
static void begin(struct node *node, int fd)
{
        struct backing_map map = { .fd = node->fd };

        /* the kernel writes with the credentials of the registration: without CAP_FSETID, so that a write clears the
         * setuid bit; and with the ids of the caller, of whom the next may be another */
        node->backing = 0;
        node->backing_kept = node->fd >= 0 && caller_has_one_group();
        node->backing_uid = caller_uid();
        node->backing_gid = caller_gid();
        if (node->backing_kept)
                node->backing = ioctl(FD_FUSE, BACKING_OPEN, &map);
        if (!node->backing_kept || (node->backing < 0 && errno == EBADF)) { /* it wants a file that is open */
                map.fd = fd;
                node->backing_kept = false;
                node->backing = ioctl(FD_FUSE, BACKING_OPEN, &map);
        }
        if (node->backing < 0) /* for example a stacked filesystem: read and written by the daemon */
                node->backing = 0;
}

/* With the mutex held. Whether the last registration is as this caller's would be. */
static bool is_of_caller(const struct node *node)
{
        return node->backing_kept && node->backing_uid == caller_uid() && node->backing_gid == caller_gid() &&
               caller_has_one_group();
}

/*
 * The kernel wants all open files of a node that are passed through at the same time to have the same registration. That
 * of the node's own descriptor, which neither reads nor writes, is kept for the next time.
 */
int passthrough_open(struct node *node, int fd)
{
        int backing = 0;

        if (!shared->passthrough)
                return 0;
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opens == 0 && (node->backing == 0 || !is_of_caller(node))) {
                end(node);
                begin(node, fd);
        }
        node->opens++;
        if (node->opened == 0)
                node->opened = fd;
        backing = node->backing;
        (void)pthread_mutex_unlock(&backing_mutex);
        return backing;
}

/* With the mutex held. */
static bool is_asked(int fd)
{
        for (size_t i = 0; i < THREADS_MAX; i++)
                if (asked[i] == fd)
                        return true;
        return false;
}

void passthrough_close(struct node *node, int fd)
{
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opened == fd)
                node->opened = 0;
        while (is_asked(fd)) /* and by nobody from now on */
                (void)pthread_cond_wait(&answered, &backing_mutex);
        if (node->opens > 0 && --node->opens == 0 && !node->backing_kept)
                end(node);
        (void)pthread_mutex_unlock(&backing_mutex);
}

/* Without the mutex, as the file may be a server's below an overlay, which need not answer; so it is noted, not to be closed. */
bool passthrough_get_xattr(const struct node *node, const char *name, char *ret_value, size_t size, ssize_t *ret_length)
{
        const int slot = request_slot();
        int failure;
        int fd;

        if (!shared->passthrough || slot < 0)
                return false;
        (void)pthread_mutex_lock(&backing_mutex);
        fd = asked[slot] = node->opened;
        (void)pthread_mutex_unlock(&backing_mutex);
        if (fd == 0)
                return false;
        *ret_length = fgetxattr(fd, name, ret_value, size);
        failure = errno;
        (void)pthread_mutex_lock(&backing_mutex);
        asked[slot] = 0;
        (void)pthread_cond_broadcast(&answered);
        (void)pthread_mutex_unlock(&backing_mutex);
        errno = failure;
        return true;
}

void passthrough_forget(struct node *node)
{
        end(node);
}
