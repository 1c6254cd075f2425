/* SPDX-License-Identifier: Apache-2.0 */
#include "closing.h"

#include <pthread.h>

#include "descriptors.h"

/*
 * Those that are to be closed when no thread uses their numbers any more for a process that was killed and has its answer.
 * What does not fit stays for the next daemon.
 */
static struct {
        pthread_mutex_t mutex;
        bool (*is_used)(int fd);
        int count; /* atomic */
        int fds[CLOSING_MAX];
} named;

void closing_begin(bool (*is_used)(int fd))
{
        named.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        named.count = 0; /* released_end() finds them */
        named.is_used = is_used;
}

static bool names(const struct fuse_in_header *header, int fd)
{
        int fds[REQUEST_FILES_MAX];
        const int count = request_files(header, fds);

        return (count > 0 && fds[0] == fd) || (count > 1 && fds[1] == fd);
}

/* With the mutex held. */
static bool is_named(int fd)
{
        for (int i = 0; i < request_slots(); i++) {
                const struct fuse_in_header *header = request_buffer(i);

                if (__atomic_load_n(&header->len, __ATOMIC_SEQ_CST) > 0 && request_was_given_up(i) && names(header, fd))
                        return true;
        }
        return named.is_used(fd);
}

void closing_done(int fd)
{
        bool ends = false;

        if (__atomic_load_n(&named.count, __ATOMIC_SEQ_CST) == 0)
                return;
        (void)pthread_mutex_lock(&named.mutex);
        for (int i = 0; i < named.count; i++) {
                if (named.fds[i] != fd || is_named(fd))
                        continue;
                ends = true;
                named.fds[i] = named.fds[named.count - 1];
                __atomic_store_n(&named.count, named.count - 1, __ATOMIC_SEQ_CST);
                break;
        }
        (void)pthread_mutex_unlock(&named.mutex);
        if (ends)
                descriptor_end(fd);
}

void closing_done_of(const struct fuse_in_header *header)
{
        int fds[REQUEST_FILES_MAX];
        int count;

        if (__atomic_load_n(&named.count, __ATOMIC_SEQ_CST) == 0)
                return;
        count = request_files(header, fds);
        for (int i = 0; i < count; i++)
                closing_done(fds[i]);
}

void closing_close(int fd)
{
        bool fits;

        if (!shared->network) { /* no request is given up */
                descriptor_end(fd);
                return;
        }
        (void)pthread_mutex_lock(&named.mutex);
        fits = named.count < CLOSING_MAX;
        if (fits) {
                named.fds[named.count] = fd;
                __atomic_store_n(&named.count, named.count + 1, __ATOMIC_SEQ_CST);
        }
        (void)pthread_mutex_unlock(&named.mutex);
        if (fits)
                closing_done(fd);
}
