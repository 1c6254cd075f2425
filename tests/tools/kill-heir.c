/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill-heir - run remap-upgrade, and kill one of those that hand a mount over before its Nth system call.
 *
 *   kill-heir ROLE NUMBER KEEPER COMMAND...
 *
 * ROLE: keeper, the process KEEPER, from its order on; reserve, the child that it starts for the time; heir, the new
 * program, from its execve on; daemon, that which the heir starts, but for its other threads. COMMAND is waited for.
 * Prints the name of the call that was not made, or "none" if there were fewer; COMMAND's output goes to standard error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* After sys/ptrace.h, whose names it would otherwise define away. */
#include <linux/ptrace.h>

#include "syscall_names.h"

#define OPTIONS                                                                                                        \
        (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

enum role { KEEPER, RESERVE, HEIR, DAEMON };

static enum role role;
static long number;
static pid_t keeper;
static pid_t meant; /* 0: not there yet */
static pid_t heir;  /* likewise */
static pid_t command;
static long calls;
static pid_t traced[4096];
static size_t traced_len;

static void die(const char *what)
{
        perror(what);
        exit(125);
}

static void add(pid_t pid)
{
        for (size_t i = 0; i < traced_len; i++)
                if (traced[i] == pid)
                        return;
        if (traced_len == sizeof(traced) / sizeof(traced[0]))
                die("too many processes");
        traced[traced_len++] = pid;
}

static void drop(pid_t pid)
{
        for (size_t i = 0; i < traced_len; i++)
                if (traced[i] == pid)
                        traced[i] = traced[--traced_len];
}

static void name_of(pid_t pid, char *name, size_t size)
{
        char path[64];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        name[0] = '\0';
        file = fopen(path, "r");
        if (file == NULL)
                return;
        if (fgets(name, (int)size, file) != NULL)
                name[strcspn(name, "\n")] = '\0';
        fclose(file);
}

static const char *call_name(unsigned long nr)
{
        for (size_t i = 0; i < sizeof(known_calls) / sizeof(known_calls[0]); i++)
                if ((unsigned long)known_calls[i].nr == nr)
                        return known_calls[i].name;
        return "another";
}

/* Those that go on are not traced any more: also when they are stopped only later. */
static void let_go(pid_t pid)
{
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
        drop(pid);
}

static void report(const char *call)
{
        puts(call);
        fflush(stdout);
}

int main(int argc, char **argv)
{
        bool killed = false;
        bool ended = false;
        int status = 0;
        int code = 0;

        if (argc < 5)
                return 125;
        role = strcmp(argv[1], "keeper") == 0    ? KEEPER
               : strcmp(argv[1], "reserve") == 0 ? RESERVE
               : strcmp(argv[1], "daemon") == 0  ? DAEMON
                                                 : HEIR;
        number = atol(argv[2]);
        keeper = atoi(argv[3]);
        if (role == KEEPER || role == RESERVE) {
                if (ptrace(PTRACE_SEIZE, keeper, NULL, (void *)OPTIONS) < 0 ||
                    ptrace(PTRACE_INTERRUPT, keeper, NULL, NULL) < 0)
                        die("seize");
                add(keeper);
        }
        meant = role == KEEPER ? keeper : 0;
        command = fork();
        if (command == 0) {
                raise(SIGSTOP);
                dup2(STDERR_FILENO, STDOUT_FILENO);
                execv(argv[4], argv + 4);
                _exit(127);
        }
        if (waitpid(command, &status, WUNTRACED) != command)
                die("wait");
        if (role == HEIR || role == DAEMON) {
                if (ptrace(PTRACE_SEIZE, command, NULL, (void *)OPTIONS) < 0)
                        die("seize");
                add(command);
        }
        kill(command, SIGCONT);
        while (!ended) {
                unsigned event;
                int stop;
                pid_t pid = waitpid(-1, &status, __WALL);

                if (pid < 0)
                        die("wait");
                if (WIFEXITED(status) || WIFSIGNALED(status)) {
                        drop(pid);
                        if (pid == command) {
                                ended = true;
                                code = WIFEXITED(status) ? WEXITSTATUS(status) : 126;
                        }
                        continue;
                }
                add(pid);
                stop = WSTOPSIG(status);
                event = (unsigned)status >> 16;
                if (killed) {
                        let_go(pid);
                        continue;
                }
                if (event == PTRACE_EVENT_EXEC) {
                        char name[32];

                        name_of(pid, name, sizeof(name));
                        if (heir == 0 && strcmp(name, "remap-daemon") == 0)
                                heir = pid;
                        if (role == HEIR && meant == 0)
                                meant = heir;
                }
                if (stop == (SIGTRAP | 0x80) && !killed && pid == meant) {
                        struct ptrace_syscall_info info = { 0 };

                        ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info);
                        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && ++calls == number) {
                                killed = true;
                                report(call_name(info.entry.nr));
                                kill(pid, SIGKILL);
                                continue;
                        }
                }
                /* what these start first is the reserve, or the daemon; threads of that, and later ones, are not meant */
                if (event == PTRACE_EVENT_STOP && pid != command && pid != meant && pid != keeper && pid != heir &&
                    (role == KEEPER || role == RESERVE || heir != 0)) {
                        if ((role != RESERVE && role != DAEMON) || meant != 0) {
                                let_go(pid);
                                continue;
                        }
                        meant = pid;
                }
                /* a signal is handed on; a stop of ptrace's own, or of a group, is none */
                ptrace(PTRACE_SYSCALL, pid, NULL,
                       (void *)(long)(event != 0 || stop == (SIGTRAP | 0x80) || stop == SIGTRAP ? 0 : stop));
        }
        if (!killed)
                report("none");
        return code;
}
