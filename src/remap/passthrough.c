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
 * Let the kernel read and write the file itself, where it can: every open file of a node that is passed through at one
 * time is so with the same registration. 0: not this one.
 */
int passthrough_open(struct node *node, int fd)
{
        int backing = 0;

        if (!shared->passthrough)
                return 0;
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opens == 0) {
                struct backing_map map = { .fd = fd };

                /* the kernel writes as whoever registers it: without CAP_FSETID, so that a write takes the setuid bit
                 * away */
                node->backing = ioctl(FD_FUSE, BACKING_OPEN, &map);
                if (node->backing < 0) /* on a filesystem that is itself made of others, say: then through us */
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
