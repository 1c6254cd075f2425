/* SPDX-License-Identifier: Apache-2.0 */
#include "process/ask.h"

#include "base/clock.h"
#include "process/worker.h"

static int ask_some(void *argument, struct error *error)
{
        struct ask *ask = argument;

        (void)error;
        ask->began = true;
        do
                ask->one(ask, ask->next);
        while (++ask->next < ask->count && clock_now_ms() < ask->until_ms);
        return 0;
}

size_t ask_all(struct ask *ask)
{
        int64_t now_ms;

        ask->next = 0;
        while (ask->next < ask->count && (now_ms = clock_now_ms()) < ask->deadline_ms) {
                const bool last = now_ms > ask->deadline_ms - ask->share_ms; /* its share is cut */
                const int64_t end_ms = last ? ask->deadline_ms : now_ms + ask->share_ms;
                struct error error = {};
                int r;

                ask->began = false;
                ask->until_ms = now_ms + ask->share_ms / 2;
                r = ask->without_fds ? worker_run_without_fds(ask_some, ask, end_ms, &error)
                                     : worker_run(ask_some, ask, end_ms, &error);
                if (r == 0 || ask->next >= ask->count)
                        continue;
                if (r == -ETIMEDOUT && (last || (ask->without_fds && !ask->began)))
                        break;
                if (ask->give_up != NULL)
                        ask->give_up(ask, ask->next, &error);
                ask->next++;
        }
        return ask->next;
}
