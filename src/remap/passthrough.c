/* SPDX-License-Identifier: Apache-2.0 */
#include "passthrough.h"

#include <pthread.h>
#include <sys/ioctl.h>

/* Linux 6.9 */
struct backing_map {
        int32_t fd;
        uint32_t flags;
        uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

static pthread_mutex_t backing_mutex = PTHREAD_MUTEX_INITIALIZER;

void passthrough_begin(void)
{
        backing_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/*
 * The kernel wants all open files of a node that are passed through at the same time to have the same registration.
 */
int passthrough_open(struct node *node, int fd)
{
        int backing = 0;

        if (!shared->passthrough)
                return 0;
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opens == 0) {
                struct backing_map map = { .fd = fd };

                /* the kernel writes with the credentials of the registration: without CAP_FSETID, so that a write
                 * clears the setuid bit */
                node->backing = ioctl(FD_FUSE, BACKING_OPEN, &map);
                if (node->backing < 0) /* for example a stacked filesystem: read and written by the daemon */
                        node->backing = 0;
        }
        node->opens++;
        backing = node->backing;
        (void)pthread_mutex_unlock(&backing_mutex);
        return backing;
}

void passthrough_close(struct node *node)
{
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opens > 0 && --node->opens == 0 && node->backing > 0) {
                (void)ioctl(FD_FUSE, BACKING_CLOSE, &node->backing); /* it was open */
                node->backing = 0;
        }
        (void)pthread_mutex_unlock(&backing_mutex);
}
