/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap ROUNDS MEBIBYTES FILES NAME=DIR... CONTAINER - the same work in several directories of a container, side by
 * side.
 *
 * In each round each directory in turn: a file of MEBIBYTES is written and read, FILES small ones are made, looked at,
 * read and removed by one process, and by four. Prints medians, their sum for the small ones, and what each directory
 * takes as a multiple of the first.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DIRS_MAX = 8, ROUNDS_MAX = 1000, BLOCK = 1 << 20, SMALL = 1024, PROCESSES = 4 };

static int mebibytes, files;
static char block[BLOCK];

static double now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void die(const char *what)
{
        perror(what);
        exit(1);
}

/* The phases: each does its work in the current directory; `who` is the process's number, of `many`. */

static void stream_write(int who, int many)
{
        char name[32];

        snprintf(name, sizeof(name), "large.%d", who);
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
                die("open");
        for (int i = 0; i < mebibytes / many; i++)
                if (write(fd, block, BLOCK) != BLOCK)
                        die("write");
        close(fd);
}

static void stream_read(int who, int many)
{
        char name[32];

        snprintf(name, sizeof(name), "large.%d", who);
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                die("open");
        for (int i = 0; i < mebibytes / many; i++)
                if (read(fd, block, BLOCK) != BLOCK)
                        die("read");
        close(fd);
}

#define EACH_FILE(name)                                                                                                \
        char name[32];                                                                                                 \
        for (int i = who; i < files && snprintf(name, sizeof(name), "small.%d", i) > 0; i += many)

static void create(int who, int many)
{
        EACH_FILE(name)
        {
                int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                if (fd < 0 || write(fd, block, SMALL) != SMALL)
                        die("create");
                close(fd);
        }
}

static void look(int who, int many)
{
        struct stat st;

        EACH_FILE(name)
        if (lstat(name, &st) < 0 || st.st_size != SMALL)
                die("stat");
}

static void read_small(int who, int many)
{
        EACH_FILE(name)
        {
                int fd = open(name, O_RDONLY | O_CLOEXEC);
                if (fd < 0 || read(fd, block, BLOCK) != SMALL)
                        die("read");
                close(fd);
        }
}

static void list(int who, int many)
{
        struct stat st;
        DIR *dir = opendir(".");
        int count = 0;

        (void)who;
        (void)many;
        if (!dir)
                die("opendir");
        for (struct dirent *entry; (entry = readdir(dir)); count++)
                if (lstat(entry->d_name, &st) < 0)
                        die("stat");
        closedir(dir);
        if (count < files)
                die("names are missing");
}

static void rename_all(int who, int many)
{
        char other[32];

        EACH_FILE(name)
        {
                snprintf(other, sizeof(other), "other.%d", i);
                if (rename(name, other) < 0 || rename(other, name) < 0)
                        die("rename");
        }
}

static void delete (int who, int many)
{
        EACH_FILE(name)
        if (unlink(name) < 0)
                die("unlink");
}

static const struct phase {
        const char *name;
        void (*work)(int who, int many);
        int processes;
        bool large; /* MiB/s, else us a file */
        bool cold;  /* what the kernel knows of names and inodes is dropped before */
} phases[] = {
        { "write, MiB/s", stream_write, 1, true, false },
        { "read, warm, MiB/s", stream_read, 1, true, false },
        { "create, write 1 KiB, close, us", create, 1, false, false },
        { "stat, warm, us", look, 1, false, false },
        { "stat, cold, us", look, 1, false, true },
        { "list and stat, cold, us", list, 1, false, true },
        { "open, read 1 KiB, close, us", read_small, 1, false, false },
        { "rename twice, us", rename_all, 1, false, false },
        { "unlink, us", delete, 1, false, false },
        { "create, 4 processes, us", create, PROCESSES, false, false },
        { "stat, cold, 4 processes, us", look, PROCESSES, false, true },
        { "read, 4 processes, us", read_small, PROCESSES, false, false },
        { "unlink, 4 processes, us", delete, PROCESSES, false, false },
};
enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

static double results[PHASES][DIRS_MAX][ROUNDS_MAX];

static void drop(void)
{
        sync();
        int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "2", 1) != 1)
                die("drop_caches");
        close(fd);
}

/* In the container, in the directory: a phase by several processes that begin together; the time until the last ends.
 */
static double run(const struct phase *phase)
{
        int go[2];
        char byte;

        if (pipe(go) < 0)
                die("pipe");
        for (int i = 0; i < phase->processes; i++) {
                pid_t pid = fork();
                if (pid < 0)
                        die("fork");
                if (pid == 0) {
                        close(go[1]);
                        (void)!read(go[0], &byte, 1);
                        phase->work(i, phase->processes);
                        _exit(0);
                }
        }
        close(go[0]);
        usleep(1000);
        double start = now_us();
        close(go[1]);
        int code;
        for (int i = 0; i < phase->processes; i++)
                if (wait(&code) < 0 || code != 0)
                        exit(1);
        return now_us() - start;
}

static void enter(const char *container, const char *dir)
{
        int pidfd = (int)syscall(SYS_pidfd_open, atoi(container), 0);

        if (pidfd < 0 || setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
                die("setns");
        if (setgid(0) < 0 || setuid(0) < 0 || chdir(dir) < 0)
                die(dir);
        umask(022);
}

/* One turn: a process in the container, told by a byte when to begin each phase. */
static void turn(const char *container, const char *dir, int number, int round)
{
        int go[2], done[2];
        double us;
        char byte = 0;

        if (pipe2(go, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
                die("pipe");
        pid_t pid = fork();
        if (pid == 0) {
                close(go[1]);
                enter(container, dir);
                for (int i = 0; i < PHASES; i++) {
                        if (read(go[0], &byte, 1) != 1)
                                _exit(1);
                        us = run(&phases[i]);
                        if (write(done[1], &us, sizeof(us)) != sizeof(us))
                                _exit(1);
                }
                unlink("large.0");
                _exit(0);
        }
        close(go[0]);
        close(done[1]);
        for (int i = 0; i < PHASES; i++) {
                if (phases[i].cold)
                        drop();
                if (write(go[1], &byte, 1) != 1 || read(done[0], &us, sizeof(us)) != sizeof(us))
                        die(dir);
                results[i][number][round] = phases[i].large ? (double)mebibytes * 1e6 / us : us / files;
        }
        close(go[1]);
        close(done[0]);
        waitpid(pid, NULL, 0);
        sync();
}

static int by_size(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;
        return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
        const char *names[DIRS_MAX], *dirs[DIRS_MAX];
        int count = argc - 5, rounds = argc > 5 ? atoi(argv[1]) : 0;

        if (count < 1 || count > DIRS_MAX || rounds < 1 || rounds > ROUNDS_MAX) {
                fprintf(stderr, "usage: remap ROUNDS MEBIBYTES FILES NAME=DIR... CONTAINER\n");
                return 125;
        }
        mebibytes = atoi(argv[2]);
        files = atoi(argv[3]);
        memset(block, 'b', sizeof(block));
        for (int i = 0; i < count; i++) {
                char *equals = strchr(argv[4 + i], '=');
                if (!equals)
                        return 125;
                *equals = 0;
                names[i] = argv[4 + i];
                dirs[i] = equals + 1;
        }
        for (int round = -1; round < rounds; round++) /* the first is for practice */
                for (int i = 0; i < count; i++)
                        turn(argv[argc - 1], dirs[i], i, round < 0 ? 0 : round);

        printf("%-32s", "");
        for (int i = 0; i < count; i++)
                printf(" %12s %7s", names[i], i ? "ratio" : "");
        printf("\n");
        double all[DIRS_MAX] = { 0 };
        for (int phase = 0; phase < PHASES; phase++) {
                double first = 0;
                printf("%-32s", phases[phase].name);
                for (int i = 0; i < count; i++) {
                        qsort(results[phase][i], (size_t)rounds, sizeof(double), by_size);
                        double median = results[phase][i][rounds / 2];
                        printf(phases[phase].large ? " %12.0f" : " %12.1f", median);
                        if (!phases[phase].large)
                                all[i] += median;
                        if (i == 0)
                                first = median, printf(" %7s", "");
                        else
                                printf(" %7.2f", phases[phase].large ? first / median : median / first);
                }
                printf("\n");
        }
        printf("%-32s", "all of the small ones, us");
        for (int i = 0; i < count; i++) {
                printf(" %12.1f", all[i]);
                if (i)
                        printf(" %7.2f", all[i] / all[0]);
                else
                        printf(" %7s", "");
        }
        printf("\n");
        return 0;
}
