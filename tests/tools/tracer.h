/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run a program under ptrace and do something right before its Nth system call: what at-syscall and at-each-syscall
 * share. The caller fills `opt`, calls start() and trace(), and finds in `run` what happened.
 *
 * A failed call is replaced by close(-1), not by call number -1: a seccomp filter sees the replacement, and an allow
 * list would kill the caller for number -1. brk has no errors: when it fails it returns the break as it was, so it
 * becomes brk(0). close is made, and its answer alone is replaced: whatever Linux answers, the descriptor is gone
 * (close(2)). One that stays is waited for: expandfs waited for the end of a pipe whose other side it had open still.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* After sys/ptrace.h, whose names it would otherwise define away. */
#include <linux/ptrace.h>

#include "syscall_names.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum whose { WHOSE_ALL, WHOSE_OWN, WHOSE_OTHERS };
enum action { ACTION_COUNT, ACTION_RUN, ACTION_KILL, ACTION_KILL_MAIN, ACTION_FAIL };

struct tracee {
        pid_t tid;
        bool failing; /* between the entry and the exit of a call that must fail */
        bool known;   /* PROGRAM itself, or its parent's event has been seen */
        bool held;    /* stopped until it is known */
        bool other;   /* a child that executed another program, or a child of such a one */
        struct user_regs_struct saved;
};

/* What an argument of the call must be: a number, or the address of a text. */
struct where {
        int argument; /* from 0 */
        uint64_t number;
        const char *text; /* NULL: a number */
};

static struct tracee *tracees;
static size_t tracees_len;

static struct {
        enum action action;
        enum whose whose;
        long timeout_seconds;
        long at_number;
        const char *at_name;
        long at_occurrence;
        struct where where[4];
        size_t where_len;
        const char *command;
        const char *each;
        long result; /* of a call that is not made: -errno, or what --return says */
        const char *report_path;
        FILE *log;
        const char *run_output;
        void (*on_call)(long number, pid_t tid, const char *name);
        const char *leave;  /* a process that executes a program of that name goes on by itself */
        bool only_to_point; /* calls after the action are neither counted nor stopped at */
        char **argv;
} opt = { .at_number = -1, .at_occurrence = 1 };

static struct {
        pid_t main_pid;
        bool counting;
        long count;
        long occurrences;
        bool reached;
        bool killing;
        bool timed_out;
        char reached_name[32];
        int exit_status;
} run;

static void die(const char *what)
{
        fprintf(stderr, "at-syscall: %s: %s\n", what, strerror(errno));
        exit(125);
}

static const char *call_name(uint64_t nr, char buffer[32])
{
        for (size_t i = 0; i < ARRAY_LEN(known_calls); i++)
                if ((uint64_t)known_calls[i].nr == nr)
                        return known_calls[i].name;
        snprintf(buffer, 32, "syscall_%lld", (long long)nr);
        return buffer;
}

static struct tracee *tracee_get(pid_t tid)
{
        for (size_t i = 0; i < tracees_len; i++)
                if (tracees[i].tid == tid)
                        return &tracees[i];
        struct tracee *grown = realloc(tracees, (tracees_len + 1) * sizeof(*tracees));
        if (!grown)
                die("realloc");
        tracees = grown;
        tracees[tracees_len] = (struct tracee){ .tid = tid };
        return &tracees[tracees_len++];
}

static void tracee_forget(pid_t tid)
{
        for (size_t i = 0; i < tracees_len; i++)
                if (tracees[i].tid == tid) {
                        tracees[i] = tracees[--tracees_len];
                        return;
                }
}

static volatile sig_atomic_t alarm_rang;

static void on_alarm(int sig)
{
        (void)sig;
        alarm_rang = 1;
}

/* It rings again and again, so that a wait begun just after it rang is ended too. */
static void set_alarm(void)
{
        struct itimerval every = { .it_interval.tv_sec = 1, .it_value.tv_sec = opt.timeout_seconds };
        struct sigaction action = { .sa_handler = on_alarm };

        if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0)
                die("setitimer");
}

static void set_env_number(const char *name, long value)
{
        char text[32];
        snprintf(text, sizeof(text), "%ld", value);
        setenv(name, text, 1);
}

static void run_command(const char *command, pid_t tid, const char *name)
{
        set_env_number("AT_PID", tid);
        set_env_number("AT_MAIN_PID", run.main_pid);
        set_env_number("AT_SYSCALL", run.count);
        setenv("AT_NAME", name, 1);

        pid_t pid = fork();
        if (pid < 0)
                die("fork");
        if (pid == 0) {
                const char *path = opt.run_output ? opt.run_output : "/dev/null";
                int out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
                int in = open("/dev/null", O_RDONLY);
                if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
                        _exit(126);
                close_range(3, ~0U, 0);
                execl("/bin/sh", "sh", "-c", command, (char *)NULL);
                _exit(127);
        }
        /* Only this child is waited for: what the tracees have to tell stays queued, so they stay stopped. */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                if (alarm_rang)
                        (void)kill(pid, SIGKILL);
}

static void kill_all(void)
{
        run.killing = true;
        for (size_t i = 0; i < tracees_len; i++)
                (void)kill(tracees[i].tid, SIGKILL); /* gone already is as good */
}

static void fail_call(struct tracee *t, uint64_t nr)
{
        struct user_regs_struct regs;

        if (nr == SYS_exit || nr == SYS_exit_group || nr == SYS_rt_sigreturn)
                return;
        if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0)
                return; /* it was killed meanwhile */
        t->saved = regs;
        t->failing = true;
        if (nr == SYS_brk) {
                regs.rdi = 0;
        } else if (nr != SYS_close) {
                regs.orig_rax = SYS_close;
                regs.rdi = (unsigned long long)-1;
        }
        (void)ptrace(PTRACE_SETREGS, t->tid, 0, &regs);
}

static void finish_failed_call(struct tracee *t)
{
        struct user_regs_struct regs;

        t->failing = false;
        if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0)
                return;
        if (t->saved.orig_rax != SYS_brk)
                regs.rax = (unsigned long long)opt.result;
        regs.orig_rax = t->saved.orig_rax;
        regs.rdi = t->saved.rdi;
        (void)ptrace(PTRACE_SETREGS, t->tid, 0, &regs);
}

/* Nothing is read beyond the text: it may end where the process's memory does. */
static bool has_text(pid_t tid, uint64_t address, const char *text)
{
        char found[256];
        size_t size = strlen(text) + 1;
        struct iovec local = { .iov_base = found, .iov_len = size };
        struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = size };

        return size <= sizeof(found) && process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size &&
               memcmp(found, text, size) == 0;
}

static bool has_arguments(pid_t tid, const struct ptrace_syscall_info *info)
{
        for (size_t i = 0; i < opt.where_len; i++) {
                const struct where *where = &opt.where[i];
                uint64_t argument = info->entry.args[where->argument];

                if (where->text ? !has_text(tid, argument, where->text) : argument != where->number)
                        return false;
        }
        return true;
}

static bool is_named(const char *name, pid_t tid, const struct ptrace_syscall_info *info)
{
        return strcmp(opt.at_name, name) == 0 && has_arguments(tid, info);
}

static bool is_the_one(const char *name, pid_t tid, const struct ptrace_syscall_info *info)
{
        if (run.reached)
                return false;
        if (opt.at_name)
                return is_named(name, tid, info) && ++run.occurrences == opt.at_occurrence;
        return run.count == opt.at_number;
}

static void on_syscall_stop(struct tracee *t)
{
        struct ptrace_syscall_info info;
        char buffer[32];

        if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) < 0) {
                if (errno == ESRCH)
                        return; /* killed in the middle */
                die("PTRACE_GET_SYSCALL_INFO");
        }
        if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
                if (t->failing)
                        finish_failed_call(t);
                return;
        }
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !run.counting ||
            (opt.whose != WHOSE_ALL && t->other != (opt.whose == WHOSE_OTHERS)))
                return;

        const char *name = call_name(info.entry.nr, buffer);
        run.count++;
        if (opt.log) {
                fprintf(opt.log, "%ld %d %s", run.count, t->tid, name);
                for (int i = 0; i < 6; i++)
                        fprintf(opt.log, " %#llx", (unsigned long long)info.entry.args[i]);
                fprintf(opt.log, "\n");
                fflush(opt.log);
        }
        if (opt.on_call)
                opt.on_call(run.count, t->tid, name);
        if (opt.each && (opt.at_name == NULL || is_named(name, t->tid, &info)))
                run_command(opt.each, t->tid, name);
        if (!is_the_one(name, t->tid, &info))
                return;

        run.reached = true;
        snprintf(run.reached_name, sizeof(run.reached_name), "%s", name);
        switch (opt.action) {
        case ACTION_COUNT:
                break;
        case ACTION_RUN:
                run_command(opt.command, t->tid, name);
                break;
        case ACTION_KILL:
                kill_all();
                break;
        case ACTION_KILL_MAIN:
                (void)kill(run.main_pid, SIGKILL);
                break;
        case ACTION_FAIL:
                fail_call(t, info.entry.nr);
                break;
        }
}

/* Whether someone is there that can still tell of this child: its process, if it is a thread, or its parent. */
static bool has_traced_parent(pid_t tid)
{
        char path[64], line[256];
        pid_t process = tid, parent = 0;

        snprintf(path, sizeof(path), "/proc/%d/status", tid);
        FILE *status = fopen(path, "re");
        if (!status)
                return false;
        while (fgets(line, sizeof(line), status) && sscanf(line, "PPid: %d", &parent) != 1)
                (void)sscanf(line, "Tgid: %d", &process); /* stands before PPid */
        fclose(status);
        if (process != tid)
                parent = process;
        for (size_t i = 0; i < tracees_len; i++)
                if (tracees[i].tid == parent)
                        return true;
        return false;
}

static void let_go(struct tracee *t)
{
        t->known = true;
        if (t->held)
                (void)ptrace(PTRACE_SYSCALL, t->tid, 0, 0);
        t->held = false;
}

/* A child's first stop may be seen before its parent's event, which says whose child it is. */
static void on_birth(pid_t parent)
{
        unsigned long tid;
        struct tracee *child;
        bool other = tracee_get(parent)->other;

        if (ptrace(PTRACE_GETEVENTMSG, parent, 0, &tid) < 0)
                return; /* killed meanwhile */
        child = tracee_get((pid_t)tid);
        child->other = other;
        let_go(child);
}

static bool executes(pid_t tid, const char *name)
{
        char path[64], program[4096], *slash;

        snprintf(path, sizeof(path), "/proc/%d/exe", tid);
        ssize_t n = readlink(path, program, sizeof(program) - 1);
        if (n < 0)
                return false;
        program[n] = '\0';
        slash = strrchr(program, '/');
        return slash != NULL && strcmp(slash + 1, name) == 0;
}

static void on_stop(pid_t tid, int status)
{
        struct tracee *t = tracee_get(tid);
        int sig = WSTOPSIG(status);
        int event = status >> 16;
        int deliver = 0;
        int request = PTRACE_SYSCALL;

        if (run.killing)
                (void)kill(tid, SIGKILL); /* born while the others were being killed */

        if (!t->known && run.reached && (opt.action == ACTION_KILL_MAIN || opt.action == ACTION_RUN))
                t->known = true; /* its parent may be gone, and tell nothing of it */
        if (!t->known && !has_traced_parent(tid))
                t->known = true; /* its parent was killed before it told of it, and its end has been seen */
        if (!t->known) {
                t->held = true;
                return;
        }
        if (sig == (SIGTRAP | 0x80)) {
                on_syscall_stop(t);
        } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
                on_birth(tid);
        } else if (event == PTRACE_EVENT_STOP) {
                /* A group-stop keeps its signal; a new child's first stop and PTRACE_INTERRUPT say SIGTRAP. */
                if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
                        request = PTRACE_LISTEN;
        } else if (event == PTRACE_EVENT_EXEC) {
                if (tid == run.main_pid)
                        run.counting = true;
                else
                        t->other = true;
                if (opt.leave && executes(tid, opt.leave) && !run.killing) {
                        (void)ptrace(PTRACE_DETACH, tid, 0, 0);
                        tracee_forget(tid);
                        return;
                }
        } else if (event == 0) {
                deliver = sig;
        }
        if (opt.only_to_point && run.reached && !t->failing && request == PTRACE_SYSCALL)
                request = PTRACE_CONT;
        (void)ptrace(request, tid, 0, deliver); /* ESRCH: it died, and waitpid will say so */
}

static void trace(void)
{
        for (;;) {
                int status;
                pid_t tid = waitpid(-1, &status, __WALL);

                bool interrupted = tid < 0 && errno == EINTR;

                if (alarm_rang && !run.killing) {
                        run.timed_out = true;
                        kill_all();
                }
                if (interrupted)
                        continue;
                if (tid < 0)
                        return; /* ECHILD: all are gone */
                if (WIFSTOPPED(status)) {
                        on_stop(tid, status);
                        continue;
                }
                tracee_forget(tid);
                /* Whoever was killed before its event was seen will not tell of its child. */
                for (size_t i = 0; i < tracees_len; i++)
                        if (tracees[i].held)
                                let_go(&tracees[i]);
                if (tid == run.main_pid)
                        run.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
}

static void start(void)
{
        int gate[2];
        char byte = 0;

        if (pipe2(gate, O_CLOEXEC) < 0)
                die("pipe2");
        run.main_pid = fork();
        if (run.main_pid < 0)
                die("fork");
        if (run.main_pid == 0) {
                if (read(gate[0], &byte, 1) != 1)
                        _exit(125);
                execvp(opt.argv[0], opt.argv);
                fprintf(stderr, "at-syscall: %s: %s\n", opt.argv[0], strerror(errno));
                _exit(127);
        }
        if (ptrace(PTRACE_SEIZE, run.main_pid, 0,
                   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                           PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0) {
                int saved = errno;
                kill(run.main_pid, SIGKILL);
                errno = saved;
                die("PTRACE_SEIZE");
        }
        tracee_get(run.main_pid)->known = true;
        if (write(gate[1], &byte, 1) != 1)
                die("write");
        close(gate[0]);
        close(gate[1]);
}
