/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code-run - which code a program runs, for scripts/link-order.
 *
 *   code-run FILE PROGRAM [ARG...]
 *
 * Runs PROGRAM and its children one instruction after the other, which takes a thousand times as long, and writes to FILE
 * the address of each first instruction of sixteen bytes, in the order in which they were run. For programs without
 * position-independent code: addresses below 64 MiB. Exits as PROGRAM does.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* After sys/ptrace.h, whose names it would otherwise define away. */
#include <linux/ptrace.h>

#define CHUNK 16
#define CHUNKS ((uint64_t)64 * 1024 * 1024 / CHUNK)

static bool seen[CHUNKS];

static void die(const char *what)
{
        perror(what);
        exit(125);
}

static uint64_t program_counter(pid_t pid)
{
        struct user_regs_struct registers;
        struct iovec where = { &registers, sizeof registers };

        if (ptrace(PTRACE_GETREGSET, pid, 1 /* NT_PRSTATUS */, &where) < 0)
                return UINT64_MAX; /* it was killed just now */
#if defined(__x86_64__)
        return registers.rip;
#else
        return registers.pc;
#endif
}

/* One stop of a process; returns the signal that it gets. */
static int note(pid_t pid, int status, FILE *file)
{
        const int number = WSTOPSIG(status);
        const uint64_t at = program_counter(pid);

        if (at / CHUNK < CHUNKS && !seen[at / CHUNK]) {
                seen[at / CHUNK] = true;
                fprintf(file, "%llx\n", (unsigned long long)at);
        }
        return status >> 16 != 0 || number == SIGTRAP || number == SIGSTOP ? 0 : number;
}

int main(int argc, char **argv)
{
        FILE *file = argc > 2 ? fopen(argv[1], "we") : NULL;
        int exit_status = 125;
        int status;
        pid_t first;
        pid_t pid;

        if (file == NULL)
                die("usage: code-run FILE PROGRAM [ARG...]");
        first = fork();
        if (first == 0) {
                if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
                        (void)execv(argv[2], argv + 2);
                die(argv[2]);
        }
        if (first < 0 || waitpid(first, &status, 0) != first || !WIFSTOPPED(status) ||
            ptrace(PTRACE_SETOPTIONS, first, NULL,
                   PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL) < 0 ||
            ptrace(PTRACE_SINGLESTEP, first, NULL, 0) < 0)
                die(argv[2]);
        while ((pid = waitpid(-1, &status, __WALL)) > 0)
                if (WIFSTOPPED(status))
                        (void)ptrace(PTRACE_SINGLESTEP, pid, NULL, note(pid, status, file)); /* it may be gone */
                else if (pid == first)
                        exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (fclose(file) != 0)
                die(argv[1]);
        return exit_status;
}
