/* SPDX-License-Identifier: Apache-2.0 */
#include "released.h"

#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>

#include "answer.h"
#include "caches.h"
#include "closing.h"
#include "descriptors.h"
#include "nodes.h"
#include "request.h"
#include "waiters.h"

/* One of each thread, of each owner of locks, and those that closing.h has left. */
#define RELEASED_MAX (THREADS_MAX + OWNERS_MAX + CLOSING_MAX)

static struct {
        int count;
        int fds[RELEASED_MAX];
} released;

/* The file was released, and the number is another file's as soon as it is closed: such a request is only answered. */
static void answer_releases(void)
{
        for (int i = 0; i < THREADS_MAX; i++) {
                struct fuse_in_header *header = request_buffer(i);
                struct node *node = nodes_get(header->nodeid);
                const struct fuse_release_in *release = (const void *)(header + 1);

                if (header->len == 0 || (header->opcode != FUSE_RELEASE && header->opcode != FUSE_RELEASEDIR) ||
                    release->fh >= DESCRIPTORS_MAX || shared->uses[release->fh] != USE_RELEASED)
                        continue;
                if (node != NULL) /* what was written last it may not know; after the answer it may forget the file */
                        caches_drop_attributes(node);
                answer_error(header->unique, 0);
                __atomic_store_n(&header->len, 0, __ATOMIC_RELEASE);
        }
}

static void *close_released(void *ignored)
{
        (void)ignored;
        for (int i = 0; i < released.count; i++)
                descriptor_end(released.fds[i]);
        waiters_retry();
        (void)poll(NULL, 0, -1); /* no thread ends: threads_rest() */
        return NULL;
}

int released_end(void)
{
        pthread_t thread;
        int r;

        answer_releases();
        released.count = 0;
        for (uint32_t fd = 0; fd < shared->descriptors && released.count < RELEASED_MAX; fd++)
                if (shared->uses[fd] == USE_RELEASED)
                        released.fds[released.count++] = (int)fd;
        if (released.count == 0)
                return 0;
        r = -pthread_create(&thread, NULL, close_released, NULL);
        if (r == 0)
                (void)pthread_detach(thread); /* cannot fail for a new thread */
        return r;
}
