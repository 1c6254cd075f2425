/* SPDX-License-Identifier: Apache-2.0 */
#include "process/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/interrupt.h"
#include "base/populate.h"

#define STACK_SIZE_BYTES ((size_t)512 * 1024) /* address space; only what is touched is ever memory */
#define STACK_USED_BYTES ((size_t)44 * 1024)  /* by most workers */
#define NUDGE_MS 100                          /* between two nudges of a worker (base/interrupt) */
#define GRACE_MS 500                          /* how long a killed child may take to end before it is left behind */
#define OTHERS_LEAST_MS 50                    /* of each wait for others, when their time is over */

struct job {
        int parent_pid;
        bool without_fds; /* of its parent's, */
        int kept_fd;      /* but this one, if it is not 0 */
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

/* 0: all. It is none that is kept, as the standard files are open. */
static int close_all_but(int fd)
{
        if (fd > 0 && close_range(0, (unsigned)fd - 1, 0) < 0)
                return -errno;
        return close_range(fd > 0 ? (unsigned)fd + 1 : 0, ~0U, 0);
}

static int child_main(void *argument)
{
        struct job *job = argument;

        worker_dies_with_parent(job->parent_pid);
        if (job->without_fds && close_all_but(job->kept_fd) < 0)
                return 1;
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
        static bool stays; /* kept: a worker has its parent's processor, and this memory */
        int cpu = sched_getcpu();
        cpu_set_t set;

        if (stays || cpu < 0 || cpu >= CPU_SETSIZE)
                return; /* the latter is slower, but works */
        stays = true;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set); /* as above */
}

/*
 * Stacks for the next workers: a worker and one apart need two at once. None of a child that was left behind on it, or
 * killed: the sanitizers mark the frames of functions that have not returned.
 */
static char *idle_stacks[2];
static unsigned idle_count;

static char *take_stack(void)
{
        char *stack;

        if (idle_count > 0)
                return idle_stacks[--idle_count];
        stack = mmap(NULL, STACK_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (stack == MAP_FAILED)
                return NULL;
        populate(stack + STACK_SIZE_BYTES - STACK_USED_BYTES, STACK_USED_BYTES);
        return stack;
}

static void give_stack(char *stack)
{
        if (idle_count < sizeof idle_stacks / sizeof idle_stacks[0])
                idle_stacks[idle_count++] = stack;
        else
                (void)munmap(stack, STACK_SIZE_BYTES); /* cannot fail */
}

/* Whether the child ended before the deadline. */
static bool wait_until(int pidfd, int64_t deadline_ms)
{
        struct pollfd wait = { .fd = pidfd, .events = POLLIN };

        for (;;) {
                const int64_t left_ms = deadline_ms - clock_now_ms();
                const int64_t wait_ms = interrupt_is_noted() && left_ms > NUDGE_MS ? NUDGE_MS : left_ms;
                struct timespec timeout = { .tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000 };

                if (left_ms < 0)
                        timeout = (struct timespec){};
                if (ppoll(&wait, 1, &timeout, NULL) > 0)
                        return true;
                if (left_ms <= 0)
                        return false;
                if (interrupt_is_noted()) /* again and again: it may have been just about to wait */
                        (void)syscall(SYS_pidfd_send_signal, pidfd, INTERRUPT_NUDGE, NULL, 0); /* as below */
        }
}

/* What the job of an ended child comes to. */
static int conclude(const struct job *job, const siginfo_t *end, struct error *error)
{
        if (job->finished) /* its result is complete, even if it was killed then */
                return job->result;
        if (end->si_code == CLD_KILLED || end->si_code == CLD_DUMPED)
                return fail_because(error, ECANCELED, OPERATION_WAIT, "a worker",
                                    "the worker was killed by signal %d (%s)", end->si_status,
                                    sigabbrev_np(end->si_status) ?: "unknown");
        /* it exited before it began (worker_dies_with_parent()) */
        return fail_because(error, ECANCELED, OPERATION_WAIT, "a worker", "the worker ended without an answer");
}

/*
 * A child that hangs shares the descriptors, and so would keep a pipe open that the reader of this program's reply reads
 * to its end, and the lock that it was given.
 */
static void close_callers(void)
{
        for (int fd = STDIN_FILENO; fd <= WORKER_GIVEN_FD; fd++)
                (void)close(fd); /* whatever it is: this process ends */
}

/* A worker that has ended may have left one apart, which hangs. */
static void close_callers_at_exit(void)
{
        static bool closes; /* kept: atexit() is called once */

        if (!closes)
                closes = atexit(close_callers) == 0; /* there is room for it */
}

static volatile int awaited_fd = -EBADF; /* the worker that this program waits for, and that may hang */

/*
 * A signal ends this program, and with it the worker. One that hangs in spite of it would keep the pipe of the reply open,
 * and the locks. It does nothing more when it is killed: then they can be closed.
 */
static int end_awaited(int number)
{
        int self_fd;

        if (awaited_fd >= 0) {
                (void)syscall(SYS_pidfd_send_signal, awaited_fd, SIGKILL, NULL, 0); /* fails if it has just ended */
                (void)wait_until(awaited_fd, clock_now_ms() + GRACE_MS);
        }
        (void)close_range(0, ~0U, 0);                                     /* cannot fail */
        self_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* kill(2) is not for every program */
        return self_fd < 0 ? -errno : (int)syscall(SYS_pidfd_send_signal, self_fd, number, NULL, 0);
}

/* The worker writes it, and the program that waits for the worker reads it. */
static struct {
        int64_t left_ms;
        _Atomic int64_t since_ms; /* of this wait; 0: there is none */
        bool limited;
        bool late;
} others;

void worker_allow_others(int64_t milliseconds)
{
        others.left_ms = milliseconds;
        others.limited = milliseconds > 0;
}

bool worker_waits_for_others(bool waits)
{
        const int64_t since_ms = others.since_ms;

        if (!others.limited || waits == (since_ms != 0))
                return waits;
        if (!waits)
                others.left_ms -= clock_now_ms() - since_ms;
        others.since_ms = waits ? clock_now_ms() : 0;
        return since_ms != 0;
}

bool worker_others_were_late(void)
{
        return others.late;
}

/*
 * wait_until(), or until the worker has waited too long for others. It begins and ends such waits meanwhile: this looks when
 * the time for them may be over.
 */
static bool wait_with_others(int pidfd, int64_t deadline_ms)
{
        while (others.limited) {
                const int64_t since_ms = others.since_ms;
                const int64_t begin_ms = since_ms != 0 ? since_ms : clock_now_ms();
                const int64_t until_ms =
                        begin_ms + (others.left_ms > OTHERS_LEAST_MS ? others.left_ms : OTHERS_LEAST_MS);

                if (until_ms >= deadline_ms)
                        break;
                if (wait_until(pidfd, until_ms))
                        return true;
                others.late = since_ms != 0 && since_ms == others.since_ms;
                if (others.late)
                        return false;
        }
        return wait_until(pidfd, deadline_ms);
}

/*
 * That in the program itself, which is its worker's parent. Signals are caught only meanwhile, and when a worker was late,
 * which may have left a process: a system call that hangs is ended by a signal that nobody catches.
 */
static bool await(int pidfd, int64_t deadline_ms)
{
        static bool was_late; /* kept: once one was late, the signals stay caught */
        bool in_time;

        awaited_fd = pidfd;
        interrupt_at_end(end_awaited);
        in_time = wait_with_others(pidfd, deadline_ms);
        was_late = was_late || !in_time;
        if (!was_late)
                interrupt_at_end(NULL);
        return in_time;
}

static int run(struct job *job, int64_t deadline_ms, struct error *error)
{
        const int flags = CLONE_VM | CLONE_PIDFD | SIGCHLD | (job->without_fds ? 0 : CLONE_FILES);
        static int program_pid; /* kept for workers that have workers: they have the same memory */
        cleanup_close int pidfd = -EBADF;
        siginfo_t end = {};
        bool of_program;
        bool left = false;
        bool in_time;
        char *stack = take_stack();

        if (program_pid == 0)
                program_pid = job->parent_pid;
        of_program = job->parent_pid == program_pid;
        others.late = others.late && !of_program;
        if (stack == NULL)
                return fail(error, ENOMEM, "mmap", "a worker's stack");
        stay_on_this_cpu();
        if (clone(child_main, stack + STACK_SIZE_BYTES, flags, job, &pidfd) < 0) {
                give_stack(stack);
                return fail(error, errno, "clone", "a worker");
        }

        in_time = of_program ? await(pidfd, deadline_ms) : wait_until(pidfd, deadline_ms);
        if (!in_time) {
                (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0); /* fails if it has just ended */
                if (!job->without_fds)
                        close_callers_at_exit();
                left = !wait_until(pidfd, clock_now_ms() + GRACE_MS);
        }
        if (of_program) {
                awaited_fd = -EBADF; /* its number is another file's soon */
                (void)worker_waits_for_others(false);
        }
        if (left)
                return fail(error, ETIMEDOUT, OPERATION_WAIT,
                            "a hanging system call"); /* the child and its stack stay */
        while (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED) < 0 && errno == EINTR)
                ;
        if (!in_time)
                return fail(error, ETIMEDOUT, OPERATION_WAIT, "a hanging system call");
        if (job->finished)
                give_stack(stack);
        return conclude(job, &end, error);
}

int worker_run(worker_function *function, void *argument, int64_t deadline_ms, struct error *error)
{
        struct job job = { .parent_pid = getpid(), .function = function, .argument = argument, .error = error };

        return run(&job, deadline_ms, error);
}

int worker_run_without_fds(worker_function *function, void *argument, int64_t deadline_ms, struct error *error)
{
        struct job job = {
                .parent_pid = getpid(), .without_fds = true, .function = function, .argument = argument, .error = error
        };

        return run(&job, deadline_ms, error);
}

int worker_run_apart(worker_function *function, worker_attendant *attendant, void *argument, struct error *error)
{
        struct job job = { .parent_pid = getpid(), .function = function, .argument = argument, .error = error };
        siginfo_t end = {};
        char *stack = take_stack();
        int pid;

        if (stack == NULL)
                return fail(error, ENOMEM, "mmap", "a worker's stack");
        /*
         * CLONE_VFORK: this process sleeps until the child has ended, and then nothing needs to wake another processor
         */
        pid = clone(child_main, stack + STACK_SIZE_BYTES, CLONE_VM | CLONE_FILES | CLONE_VFORK | SIGCHLD, &job);
        if (pid < 0) {
                give_stack(stack);
                return fail(error, errno, "clone", "a worker");
        }
        if (attendant != NULL && job.finished && job.result >= 0) {
                int attended = attendant(pid, argument, error);

                if (attended < 0)
                        job.result = attended;
        }
        while (waitid(P_PID, (id_t)pid, &end, WEXITED) < 0 && errno == EINTR)
                ;
        if (job.finished)
                give_stack(stack);
        return conclude(&job, &end, error);
}

void worker_leave_behind(void (*function)(int fd), int fd)
{
        if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) != 0)
                return;
        (void)setsid(); /* cannot fail: it leads no process group */
        if (close_all_but(fd) == 0)
                function(fd);
        (void)syscall(SYS_exit_group, 0);
}

/* ---- ask many things, of which some may not answer: files of a dead NFS server or of a silent FUSE filesystem, a */

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

static int run_asking(struct ask *ask, int64_t end_ms, struct error *error)
{
        struct job job = { .parent_pid = getpid(),
                           .without_fds = ask->without_fds,
                           .kept_fd = ask->kept_fd,
                           .function = ask_some,
                           .argument = ask,
                           .error = error };

        return run(&job, end_ms, error);
}

size_t ask_all(struct ask *ask)
{
        int64_t now_ms;

        ask->next = 0;
        ask->lost = false;
        while (ask->next < ask->count && (now_ms = clock_now_ms()) < ask->deadline_ms) {
                const bool last = now_ms > ask->deadline_ms - ask->share_ms; /* its share is cut */
                const int64_t end_ms = last ? ask->deadline_ms : now_ms + ask->share_ms;
                struct error error = {};
                int r;

                ask->began = false;
                ask->until_ms = now_ms + ask->share_ms / 2;
                if (ask->begin != NULL)
                        ask->begin(ask);
                r = run_asking(ask, end_ms, &error);
                if (r == 0 || ask->next >= ask->count)
                        continue;
                if (r == -ETIMEDOUT && (last || (ask->without_fds && !ask->began))) {
                        ask->lost = ask->began;
                        break;
                }
                if (ask->give_up != NULL)
                        ask->give_up(ask, ask->next, &error);
                ask->next++;
        }
        return ask->next;
}
