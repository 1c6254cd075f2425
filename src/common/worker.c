/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fd.h"

#define STACK_SIZE_BYTES ((size_t)512 * 1024) /* address space; only what is touched is ever memory */
#define GRACE_MS 500 /* how long a killed child may take to go before it is left where it hangs */

struct job {
        worker_function *function;
        void *argument;
        struct error *error;
        int result;
};

static int child_main(void *argument)
{
        struct job *job = argument;

        job->result = job->function(job->argument, job->error);
        return 0; /* glibc's clone() turns this into a plain exit of this task */
}

int64_t worker_now_ms(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether the child ended before the deadline. */
static bool wait_until(int pidfd, int64_t deadline_ms)
{
        struct pollfd wait = { .fd = pidfd, .events = POLLIN };

        for (;;) {
                int64_t left_ms = deadline_ms - worker_now_ms();
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
        struct job job = { .function = function, .argument = argument, .error = error };
        cleanup_close int pidfd = -EBADF;
        siginfo_t end = {};
        char *stack;
        int pid;

        stack = mmap(NULL, STACK_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (stack == MAP_FAILED)
                return fail(error, errno, "mmap", "a worker's stack");
        pid = clone(child_main, stack + STACK_SIZE_BYTES, CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD, &job, &pidfd);
        if (pid < 0) {
                int errnum = errno;

                (void)munmap(stack, STACK_SIZE_BYTES);
                return fail(error, errnum, "clone", "a worker");
        }

        if (!wait_until(pidfd, deadline_ms)) {
                (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0); /* it may just have ended: as well */
                if (!wait_until(pidfd, worker_now_ms() + GRACE_MS))
                        return fail(error, ETIMEDOUT, "wait", "a hanging system call"); /* its stack stays mapped */
                (void)waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED);
                (void)munmap(stack, STACK_SIZE_BYTES);
                return fail(error, ETIMEDOUT, "wait", "a hanging system call");
        }
        while (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED) < 0 && errno == EINTR)
                ;
        (void)munmap(stack, STACK_SIZE_BYTES);
        if (end.si_code != CLD_EXITED)
                return fail_because(error, ECANCELED, "wait", "a worker", "the worker was killed by signal %d (%s)",
                                    end.si_status, sigabbrev_np(end.si_status) ?: "unknown");
        return job.result;
}
