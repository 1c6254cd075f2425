/* SPDX-License-Identifier: Apache-2.0 */
#include "append.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "descriptors.h"
#include "operation.h"
#include "request.h"

#define TURNS 64
#define AGAIN_MS 1

/* One at a time for an open file, by its number, until the answer is recorded: what is noted of the file is of the last one. */
static pthread_mutex_t turns[TURNS] = { [0 ... TURNS - 1] = PTHREAD_MUTEX_INITIALIZER };

/*
 * The kernel moves the position of an open file to the end of what it has appended, and both outlive the daemon. Nothing else
 * moves it while a request to append is not answered. So the next daemon knows whether it was done, however much others
 * append. Of one who was killed in the middle of a large write it believes that nobody else has made the file longer between
 * append_rest()'s two system calls.
 */
static size_t done_before(int fd, size_t size)
{
        const int64_t more = request_may_have_changed() ? lseek(fd, 0, SEEK_CUR) - descriptor_position(fd) : 0;

        if (more <= 0)
                return 0;
        return more < (int64_t)size ? (size_t)more : size;
}

/*
 * A client of 9p, or of another FUSE filesystem, appends where the file ended when it last asked, over what others have
 * appended since: its server does not hear that this is to be appended. That of NFS asks by itself.
 */
static void ask_for_end(int fd)
{
        struct statx ignored;

        if (shared->network && !shared->nfs)
                (void)statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &ignored);
}

/* Returns what is done by now, or negative errno. */
static ssize_t append_rest(int fd, const char *data, size_t size, size_t done)
{
        const struct iovec rest = { .iov_base = (void *)(data + done), .iov_len = size - done };
        off_t end;
        ssize_t n;

        ask_for_end(fd);
        end = lseek(fd, 0, SEEK_END);
        if (end < 0)
                return -errno;
        descriptor_set_position(fd, end - (off_t)done);
        request_changes();
        n = pwritev2(fd, &rest, 1, /* and move its position: */ -1, RWF_APPEND);
        if (n < 0 && done == 0)
                return -errno;
        return (ssize_t)done + (n < 0 ? 0 : n);
}

/* Whether the last daemon had begun another one, which has to be looked at first. */
static bool is_another_begun(int fd)
{
        for (int i = 0; i < THREADS_MAX; i++) {
                const struct fuse_in_header *header = request_buffer(i);
                const struct fuse_write_in *write = (const void *)(header + 1);

                if (i != request_slot() && shared->changing[i] && __atomic_load_n(&header->len, __ATOMIC_ACQUIRE) > 0 &&
                    header->opcode == FUSE_WRITE && write->fh == (uint64_t)fd)
                        return true;
        }
        return false;
}

void append(fuse_req_t request, int fd, const char *data, size_t size)
{
        pthread_mutex_t *turn = &turns[(size_t)fd % TURNS];
        size_t done;
        ssize_t n;

        while (request_replayed() && !request_may_have_changed() && is_another_begun(fd))
                (void)poll(NULL, 0, AGAIN_MS);
        (void)pthread_mutex_lock(turn);
        if (request_given_up()) { /* while it waited */
                (void)pthread_mutex_unlock(turn);
                operation_reply_error(request, -EINTR);
                return;
        }
        done = done_before(fd, size);
        n = done == size ? (ssize_t)size : append_rest(fd, data, size, done);
        if (n < 0)
                operation_reply_error(request, (int)n);
        else
                (void)fuse_reply_write(request, (size_t)n);
        (void)pthread_mutex_unlock(turn);
}
