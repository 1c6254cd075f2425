/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone-at-pid - start a program under exactly the pid that another process had.
 *
 *   clone-at-pid [--kill] [--snapshot FILE] PID PROGRAM [ARG...]
 *
 * The new process has a mount namespace of its own, a copy of the caller's. --kill first ends the process that has the
 * pid now. While the number is taken (the old process awaits its parent) this tries again, for up to 10 seconds.
 * --snapshot writes the new process's mountinfo to FILE before PROGRAM begins.
 * Returns as soon as the new process runs, leaving it behind; prints its pid. Exit status 1 when the pid could not be
 * had.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
        fprintf(stderr, "clone-at-pid: %s: %s\n", what, strerror(errno));
        exit(1);
}

static int copy(const char *from, const char *to)
{
        char buffer[65536];
        ssize_t n;
        int in = open(from, O_RDONLY | O_CLOEXEC);
        int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (in < 0 || out < 0)
                return -1;
        while ((n = read(in, buffer, sizeof(buffer))) > 0)
                if (write(out, buffer, (size_t)n) != n)
                        return -1;
        return (int)n;
}

int main(int argc, char **argv)
{
        const char *snapshot = NULL;
        int do_kill = 0, i;

        for (i = 1; i < argc && argv[i][0] == '-'; i++) {
                if (strcmp(argv[i], "--kill") == 0)
                        do_kill = 1;
                else if (strcmp(argv[i], "--snapshot") == 0 && i + 1 < argc)
                        snapshot = argv[++i];
                else
                        break;
        }
        if (argc - i < 2 || atoi(argv[i]) <= 0) {
                fprintf(stderr, "usage: clone-at-pid [--kill] [--snapshot FILE] PID PROGRAM [ARG...]\n");
                return 125;
        }
        pid_t wanted = atoi(argv[i]);
        char **program = argv + i + 1;
        int ready[2];
        char byte;

        if (do_kill && kill(wanted, SIGKILL) < 0 && errno != ESRCH)
                die("kill");
        if (pipe2(ready, O_CLOEXEC) < 0)
                die("pipe2");

        struct clone_args args = {
                .flags = CLONE_NEWNS,
                .exit_signal = SIGCHLD,
                .set_tid = (uint64_t)(uintptr_t)&wanted,
                .set_tid_size = 1,
        };
        long pid = -1;
        for (int tries = 0; tries < 10000; tries++) {
                pid = syscall(SYS_clone3, &args, sizeof(args));
                if (pid >= 0 || errno != EEXIST)
                        break;
                nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        }
        if (pid < 0)
                die("clone3");
        if (pid == 0) {
                if (snapshot && copy("/proc/self/mountinfo", snapshot) < 0)
                        die(snapshot);
                int null = open("/dev/null", O_RDWR);
                dup2(null, 0);
                dup2(null, 1);
                dup2(null, 2);
                setsid();
                /* execve closes the pipe, which is the sign for the parent. */
                execvp(program[0], program);
                _exit(127);
        }
        close(ready[1]);
        if (read(ready[0], &byte, 1) < 0)
                die("read");
        printf("%ld\n", pid);
        return 0;
}
