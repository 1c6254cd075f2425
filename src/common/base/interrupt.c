/* SPDX-License-Identifier: Apache-2.0 */
#include "base/interrupt.h"

#include <errno.h>
#include <string.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define SIGNALS (sizeof signals / sizeof signals[0])

static bool is_caught[SIGNALS];
static volatile sig_atomic_t caught; /* a worker has the same memory */

static void note(int number)
{
        caught = number;
}

static void wake(int number)
{
        (void)number; /* the system call that it interrupts asks interrupt_check() */
}

void interrupt_begin(void)
{
        /* not SA_RESTART: who waits for a lock gives up */
        const struct sigaction action = { .sa_handler = note, .sa_flags = (int)SA_RESETHAND };
        const struct sigaction nudge = { .sa_handler = wake };
        struct sigaction was;

        (void)sigaction(INTERRUPT_NUDGE, &nudge, NULL);
        for (size_t i = 0; i < SIGNALS; i++)
                is_caught[i] = sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN &&
                               sigaction(signals[i], &action, NULL) == 0;
}

bool interrupt_is_noted(void)
{
        return caught != 0;
}

void interrupt_forget(void)
{
        caught = 0;
}

static void set_all(void (*handler)(int))
{
        for (size_t i = 0; i < SIGNALS; i++)
                if (is_caught[i])
                        (void)signal(signals[i], handler);
}

void interrupt_ignore(void)
{
        set_all(SIG_IGN);
}

void interrupt_default(void)
{
        set_all(SIG_DFL);
}

int interrupt_check(const char *operation, const char *subject, struct error *error)
{
        if (caught == 0)
                return 0;
        return fail_because(error, ECANCELED, operation, subject, "interrupted (SIG%s)", sigabbrev_np(caught));
}
