/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-loop - run programs over and over, as fast as processes start, and count how they ended.
 *
 *   run-loop [--times N] [--seconds S] [--parallel P] -- PROGRAM [ARG...] [-- PROGRAM [ARG...]]...
 *
 * One round runs each program once, in order (--parallel: P such loops at once, which share the N rounds). Ends after N
 * rounds or S seconds. Output of the programs is dropped. Prints "ROUNDS", then for each program "OK FAILED ODD": exit
 * status 0, exit status 1, and everything else; all in one line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROGRAMS_MAX = 8 };

struct counts {
        long rounds;
        long ended[PROGRAMS_MAX][3];
};

static char **programs[PROGRAMS_MAX];
static int programs_len;
static posix_spawn_file_actions_t actions;
extern char **environ;

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run_one(char **argv)
{
        pid_t pid;
        int status;

        if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
                return 2;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return 2;
        if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
                return 2;
        return WEXITSTATUS(status);
}

static void loop(struct counts *counts, long times, double deadline)
{
        while (now() < deadline && __atomic_fetch_add(&counts->rounds, 1, __ATOMIC_RELAXED) < times)
                for (int i = 0; i < programs_len; i++)
                        __atomic_fetch_add(&counts->ended[i][run_one(programs[i])], 1, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
        long times = 1000000000, parallel = 1;
        double seconds = 3600;
        int i;

        for (i = 1; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
                if (strcmp(argv[i], "--times") == 0)
                        times = atol(argv[i + 1]);
                else if (strcmp(argv[i], "--seconds") == 0)
                        seconds = atof(argv[i + 1]);
                else if (strcmp(argv[i], "--parallel") == 0)
                        parallel = atol(argv[i + 1]);
        }
        for (; i < argc && programs_len < PROGRAMS_MAX; i++)
                if (strcmp(argv[i], "--") == 0) {
                        argv[i] = NULL;
                        programs[programs_len++] = argv + i + 1;
                }
        if (programs_len == 0 || !programs[programs_len - 1][0]) {
                fprintf(stderr, "usage: run-loop [--times N] [--seconds S] [--parallel P] -- PROGRAM [ARG...] [-- "
                                "PROGRAM...]\n");
                return 125;
        }
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);

        struct counts *counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (counts == MAP_FAILED)
                return 125;
        double deadline = now() + seconds;
        for (long p = 1; p < parallel; p++)
                if (fork() == 0) {
                        loop(counts, times, deadline);
                        _exit(0);
                }
        loop(counts, times, deadline);
        while (wait(NULL) > 0)
                ;
        printf("%ld", counts->rounds < times ? counts->rounds : times);
        for (int p = 0; p < programs_len; p++)
                printf(" %ld %ld %ld", counts->ended[p][0], counts->ended[p][1], counts->ended[p][2]);
        printf("\n");
        return 0;
}
