/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupts.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "answer.h"
#include "caller.h"
#include "request.h"
#include "shared.h"
#include "waiters.h"

#define LOOKS 2 /* seconds that a server may take */

static uint64_t seen[THREADS_MAX]; /* the request in each slot when it was last looked at */
static int looked[THREADS_MAX];    /* seconds since it was there first */

void interrupts_begin(void)
{
        (void)memset(seen, 0, sizeof seen);
}

/*
 * Even if a process is killed, the kernel lets it wait for its answer while the server does not answer. So after a while
 * its request is answered with EINTR, and the later answer is dropped. FUSE_INTERRUPT is not waited for: every thread may
 * be waiting for the server, and none read it. Local filesystems need none of this.
 */
void interrupts_look(void)
{
        for (int i = 0; shared->network && i < request_slots(); i++) {
                const struct fuse_in_header *header = request_buffer(i);
                const uint64_t unique = header->unique;

                if (header->len == 0 || unique != seen[i])
                        looked[i] = 0;
                else if (++looked[i] > LOOKS && caller_is_dying((pid_t)header->pid) && request_give_up(i, unique))
                        answer_error(unique, EINTR);
                seen[i] = unique;
        }
        if (shared->network)
                waiters_look();
}
