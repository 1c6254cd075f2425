/* SPDX-License-Identifier: Apache-2.0 */
#include "process/worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define STACK_SIZE_BYTES ((size_t)512 * 1024) /* address space; only what is touched is ever memory */
#define GRACE_MS 500                          /* how long a killed child may take to end before it is left behind */

struct job {
        int parent_pid;
        worker_function *function;
        void *argument;
        struct error *error;
        int result;
        bool finished;
};

void worker_dies_with_parent(int parent_pid)
{
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* cannot fail for a valid signal */
        if (getppid() != parent_pid)
                (void)syscall(SYS_exit_group, 1); /* the parent has ended */
}

static int child_main(void *argument)
{
        struct job *job = argument;

        worker_dies_with_parent(job->parent_pid);
        job->result = job->function(job->argument, job->error);
        job->finished = true;
        return 0; /* glibc's clone() exits with it */
}

/*
 * Parent and child never run at the same time, so they use one processor: waking an idle one costs more than all the
 * rest of a worker (30 to 60 us in a virtual machine, where it is an interrupt between virtual processors).
 */
static void stay_on_this_cpu(void)
{
        int cpu = sched_getcpu();
        cpu_set_t set;

        if (cpu < 0 || cpu >= CPU_SETSIZE)
                return; /* slower, but works */
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set); /* as above */
}

/* One stack, reused by the next worker, but not if a child was left behind on it. */
static char *idle_stack;

static char *take_stack(void)
{
        char *stack = idle_stack;

        idle_stack = NULL;
        if (stack == NULL)
                stack = mmap(NULL, STACK_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                             -1, 0);
        return stack == MAP_FAILED ? NULL : stack;
}

/* Whether the child ended before the deadline. */
static bool wait_until(int pidfd, int64_t deadline_ms)
{
        struct pollfd wait = { .fd = pidfd, .events = POLLIN };

        for (;;) {
                int64_t left_ms = deadline_ms - clock_now_ms();
                struct timespec timeout = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };

                if (left_ms < 0)
                        timeout = (struct timespec){};
                if (ppoll(&wait, 1, &timeout, NULL) > 0)
                        return true;
                if (left_ms <= 0)
                        return false;
        }
}

int worker_run(worker_function *function, void *argument, int64_t deadline_ms, struct error *error)
{
        struct job job = { .parent_pid = getpid(), .function = function, .argument = argument, .error = error };
        cleanup_close int pidfd = -EBADF;
        siginfo_t end = {};
        bool in_time;
        char *stack = take_stack();

        if (stack == NULL)
                return fail(error, ENOMEM, "mmap", "a worker's stack");
        stay_on_this_cpu();
        if (clone(child_main, stack + STACK_SIZE_BYTES, CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD, &job, &pidfd) <
            0) {
                idle_stack = stack;
                return fail(error, errno, "clone", "a worker");
        }

        in_time = wait_until(pidfd, deadline_ms);
        if (!in_time) {
                (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0); /* fails if it has just ended */
                if (!wait_until(pidfd, clock_now_ms() + GRACE_MS))
                        return fail(error, ETIMEDOUT, "wait",
                                    "a hanging system call"); /* the child and its stack stay */
        }
        while (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED) < 0 && errno == EINTR)
                ;
        idle_stack = stack;
        if (!in_time)
                return fail(error, ETIMEDOUT, "wait", "a hanging system call");
        if (job.finished) /* its result is complete, even if it was killed then */
                return job.result;
        if (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)
                return fail_because(error, ECANCELED, "wait", "a worker", "the worker was killed by signal %d (%s)",
                                    end.si_status, sigabbrev_np(end.si_status) ?: "unknown");
        /* it exited before it began (worker_dies_with_parent()) */
        return fail_because(error, ECANCELED, "wait", "a worker", "the worker ended without an answer");
}
