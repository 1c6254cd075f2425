/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enter - run a command in a container, as nsenter does, at a fifth of what env(1) and that take to start.
 *
 *   enter PID NAMESPACES [--user UID] COMMAND [ARG...]
 *
 * NAMESPACES: letters of unshare(1)'s short options: m mount, p pid, n net, u uts, i ipc, U user. With U, the command is the root
 * of that user namespace; --user is another user, and group, of it. PATH is all of its environment. With p, it is a child of this
 * process, which has its exit status, or dies of its signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
        char letter;
        int flag;
} kinds[] = { { 'm', CLONE_NEWNS },  { 'p', CLONE_NEWPID }, { 'n', CLONE_NEWNET },
              { 'u', CLONE_NEWUTS }, { 'i', CLONE_NEWIPC }, { 'U', CLONE_NEWUSER } };

static void die(const char *what, int status)
{
        fprintf(stderr, "enter: %s: %s\n", what, strerror(errno));
        exit(status);
}

static int flags_of(const char *letters)
{
        int flags = 0;

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strchr(letters, kinds[i].letter))
                        flags |= kinds[i].flag;
        return flags;
}

static void become(unsigned id)
{
        if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
                die("become the user", 1);
}

static int end_as(int status)
{
        if (WIFSIGNALED(status)) {
                signal(WTERMSIG(status), SIG_DFL);
                kill(getpid(), WTERMSIG(status));
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
        bool other = argc > 5 && strcmp(argv[3], "--user") == 0;
        char **command = argv + (other ? 5 : 3);
        int status, flags, pidfd;

        if (argc < 4) {
                fprintf(stderr, "usage: enter PID NAMESPACES [--user UID] COMMAND [ARG...]\n");
                return 1;
        }
        flags = flags_of(argv[2]);
        pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
        if (pidfd < 0 || setns(pidfd, flags) < 0)
                die(argv[1], 1);
        close(pidfd);
        if (flags & CLONE_NEWPID) {
                pid_t child = fork();

                if (child < 0)
                        die("fork", 1);
                if (child > 0) {
                        while (waitpid(child, &status, 0) < 0)
                                if (errno != EINTR)
                                        die("waitpid", 1);
                        return end_as(status);
                }
        }
        if (other || flags & CLONE_NEWUSER)
                become(other ? (unsigned)strtoul(argv[4], NULL, 10) : 0);
        clearenv();
        setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
        execvp(command[0], command);
        die(command[0], errno == ENOENT ? 127 : 126);
}
