/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupts.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "answer.h"
#include "caller.h"
#include "request.h"
#include "shared.h"

#define LOOKS 2 /* seconds, for a server */

static uint64_t interrupted[THREADS_MAX]; /* whose caller got a signal; 0: nobody's */
static int looked[THREADS_MAX];           /* and how often that was looked at */

void interrupts_begin(void)
{
        (void)memset(interrupted, 0, sizeof interrupted);
}

/*
 * Somebody who waits for an answer got a signal. One that is being killed is let go when a server has not answered for
 * a while, or it would wait as long as the server is away: the kernel leaves it there. Its answer goes nowhere then, if
 * it ever comes. A source on this machine is never away.
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
                        interrupted[i] = 0; /* it came back */
                else if (++looked[i] > LOOKS && caller_is_dying((pid_t)header->pid)) {
                        interrupted[i] = 0;
                        answer_error(unique, EINTR);
                } else
                        continue;
                looked[i] = 0;
        }
}
