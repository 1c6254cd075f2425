/* SPDX-License-Identifier: Apache-2.0 */
#include "base/interrupt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define SIGNALS (sizeof signals / sizeof signals[0])

static bool is_caught[SIGNALS];
static volatile bool is_noted_first[SIGNALS]; /* by note(), which has not seen it yet */
static bool is_ignored[SIGNALS];
static volatile sig_atomic_t caught; /* a worker has the same memory */

static int (*volatile at_end)(int number);
static volatile int at_end_pid;

static bool set(int number, void (*handler)(int))
{
        /* not SA_RESTART: who waits for a lock gives up */
        const struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND };

        return sigaction(number, &action, NULL) == 0;
}

/* Its handler is the default by now. The signal that is sent anew waits until this one has returned, and ends the process. */
static void end(int number)
{
        int (*function)(int number) = at_end;

        /* a child may be in a container, where /proc may be anything; without a function it was just taken back */
        if (getpid() != at_end_pid || function == NULL || function(number) < 0)
                _exit(128 + number);
}

static void note(int number)
{
        caught = number;
        for (size_t i = 0; i < SIGNALS; i++)
                if (signals[i] == number)
                        is_noted_first[i] = false;
        if (at_end != NULL)
                (void)set(number, end);
}

static void wake(int number)
{
        (void)number; /* the system call that it interrupts asks interrupt_check() */
}

void interrupt_begin(void)
{
        const struct sigaction nudge = { .sa_handler = wake };
        struct sigaction was;

        (void)sigaction(INTERRUPT_NUDGE, &nudge, NULL);
        for (size_t i = 0; i < SIGNALS; i++) {
                is_caught[i] =
                        sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN && set(signals[i], note);
                is_noted_first[i] = is_caught[i];
        }
}

/* A signal that was ignored before stays ignored. */
static void set_end(size_t i)
{
        struct sigaction was = {};
        const struct sigaction action = { .sa_handler = end, .sa_flags = (int)SA_RESETHAND };

        is_ignored[i] = sigaction(signals[i], &action, &was) == 0 && was.sa_handler == SIG_IGN;
        if (is_ignored[i])
                (void)signal(signals[i], SIG_IGN);
}

void interrupt_at_end(int (*function)(int number))
{
        at_end_pid = getpid();
        at_end = function;
        for (size_t i = 0; i < SIGNALS; i++)
                if (is_noted_first[i] || is_ignored[i])
                        continue; /* note() sets end() */
                else if (function != NULL)
                        set_end(i);
                else
                        (void)signal(signals[i], SIG_DFL);
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
