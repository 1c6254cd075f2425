/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupts.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "answer.h"
#include "caller.h"
#include "request.h"
#include "shared.h"

#define LOOKS 2 /* seconds that a server may take */

static uint64_t interrupted[THREADS_MAX]; /* the request in each slot whose caller got a signal; 0: none */
static int looked[THREADS_MAX];           /* seconds since then */

void interrupts_begin(void)
{
        (void)memset(interrupted, 0, sizeof interrupted);
}

/*
 * A process that waits for an answer got a signal. Even if it is killed, the kernel lets it wait for its answer while
 * the server does not answer. So after a while its request is answered with EINTR, and the later answer is dropped.
 * Local filesystems need none of this.
 */
void interrupts_note(const struct fuse_in_header *header)
{
        uint64_t unique;

        (void)memcpy(&unique, header + 1, sizeof unique);
        for (int i = 0; shared->network && i < THREADS_MAX; i++)
                if (i != request_slot() && request_buffer(i)->len > 0 && request_buffer(i)->unique == unique)
                        interrupted[i] = unique;
}

void interrupts_look(void)
{
        for (int i = 0; shared->network && i < THREADS_MAX; i++) {
                const struct fuse_in_header *header = request_buffer(i);
                uint64_t unique = interrupted[i];

                if (unique == 0)
                        continue;
                if (header->len == 0 || header->unique != unique)
                        interrupted[i] = 0; /* it was answered */
                else if (++looked[i] > LOOKS && caller_is_dying((pid_t)header->pid)) {
                        interrupted[i] = 0;
                        request_give_up(i, unique);
                        answer_error(unique, EINTR);
                } else
                        continue;
                looked[i] = 0;
        }
}
