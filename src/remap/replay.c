/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "request.h"
#include "session.h"
#include "shared.h"
#include "waiters.h"

#define TRIES_MAX 2 /* daemons that may die of one request */

void replay_buffer(int slot)
{
        struct fuse_in_header *header = request_buffer(slot);
        uint32_t answered = shared->answer_sizes[slot];

        if (header->len == 0)
                return;
        request_replay(true);
        if (answered > 0 && ((struct fuse_out_header *)(void *)shared->answers[slot])->unique == header->unique) {
                (void)!write(FD_FUSE, shared->answers[slot], answered); /* the kernel ignores a second answer */
                header->len = 0;
        } else if (request_was_given_up(slot)) { /* what it names may be another's by now */
                answer_error(header->unique, EINTR);
                header->len = 0;
        } else if (++shared->tries[slot] > TRIES_MAX) {
                answer_error(header->unique, EIO);
                header->len = 0;
        } else
                session_process(header, header->len);
        shared->tries[slot] = 0;
        request_replay(false);
}

/* It was killed when it had just moved the request to the waiters. */
static void drop_from_buffers(const uint8_t waiter[WAITER_SIZE])
{
        struct fuse_out_header head;

        (void)memcpy(&head, waiter, sizeof head);
        for (int i = 0; i < THREADS_MAX; i++)
                if (request_buffer(i)->len > 0 && request_buffer(i)->unique == head.unique)
                        request_buffer(i)->len = 0;
}

static bool is_unlock(const uint8_t waiter[WAITER_SIZE])
{
        struct fuse_in_header head;
        struct fuse_lk_in lock;

        (void)memcpy(&head, waiter, sizeof head);
        (void)memcpy(&lock, waiter + sizeof head, sizeof lock);
        return head.len >= sizeof head + sizeof lock && lock.lk.type == F_UNLCK;
}
_Static_assert(sizeof(struct fuse_in_header) + sizeof(struct fuse_lk_in) <= WAITER_SIZE, "a request for a lock fits");

static void repeat_waiters(bool unlocks)
{
        static uint8_t request[WAITER_SIZE] __attribute__((aligned(8)));

        for (uint32_t i = 0; i < shared->waiters_high; i++) {
                uint32_t size;

                (void)memcpy(&size, shared->waiters[i], sizeof size);
                if (size == 0 || size > WAITER_SIZE || is_unlock(shared->waiters[i]) != unlocks)
                        continue;
                drop_from_buffers(shared->waiters[i]);
                if (size == sizeof(struct fuse_out_header)) {
                        (void)!write(FD_FUSE, shared->waiters[i], size); /* the kernel ignores a second answer */
                        (void)memset(shared->waiters[i], 0, sizeof size);
                        continue;
                }
                (void)memcpy(request, shared->waiters[i], size);
                waiters_repeat((int)i);
                if (++shared->waiter_tries[i] > TRIES_MAX)
                        answer_error(((struct fuse_in_header *)(void *)request)->unique, EIO);
                else
                        session_process((void *)request, size);
                waiters_repeat(-1);
                shared->waiter_tries[i] = 0;
        }
}

/* Unlocks last: another thread does those, with a mutex that the others need, and the server need not answer it. */
void replay_waiters(void)
{
        request_replay(true);
        repeat_waiters(/* unlocks= */ false);
        repeat_waiters(/* unlocks= */ true);
        request_replay(false);
}
