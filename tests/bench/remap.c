/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap ROUNDS MEBIBYTES FILES NAME=DIR[@PID]... CONTAINER - the same work in several directories of a container, side
 * by side.
 *
 * In each round each directory in turn: a file of MEBIBYTES is written and read, FILES small ones are made, looked at,
 * read and removed by one process, and by four. Prints three tables of medians: time, with the sum for the small ones and
 * what each directory takes as a multiple of the first; processor time of the clients and of process PID, which serves
 * the directory, with what the second directory takes as a multiple of each after it, whose goal is GOAL; and how often
 * the clients wait (for an answer; four processes also for each other).
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DIRS_MAX = 8, ROUNDS_MAX = 1000, BLOCK = 1 << 20, SMALL = 1024, PROCESSES = 4 };

#define GOAL 1.00

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
        { "stat, once more, us", look, 1, false, false },
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

/* What a phase took. */
struct cost {
        double us;
        double cpu_us;
        double waits;
};

static double results[PHASES][DIRS_MAX][ROUNDS_MAX];
static double cpu[PHASES][DIRS_MAX][ROUNDS_MAX];
static double waits[PHASES][DIRS_MAX][ROUNDS_MAX];

static void drop(void)
{
        sync();
        int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "2", 1) != 1)
                die("drop_caches");
        close(fd);
}

/* The processor time that a process has had; 0: no process. */
static double cpu_us_of(pid_t pid)
{
        struct timespec used = { 0 };
        clockid_t clock;

        if (pid > 0 && (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0))
                die("the server's processor time");
        return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static double us_of(struct timeval time)
{
        return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

/*
 * In the container, in the directory: a phase by several processes that begin together; the time until the last ends,
 * and the processor time of all.
 */
static struct cost run(const struct phase *phase)
{
        struct cost cost = { 0 };
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
        for (int i = 0; i < phase->processes; i++) {
                struct rusage usage;
                int code;

                if (wait4(-1, &code, 0, &usage) < 0 || code != 0)
                        exit(1);
                cost.cpu_us += us_of(usage.ru_utime) + us_of(usage.ru_stime);
                cost.waits += (double)usage.ru_nvcsw;
        }
        cost.us = now_us() - start;
        return cost;
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
static void turn(const char *container, const char *dir, pid_t server, int number, int round)
{
        int go[2], done[2];
        struct cost cost;
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
                        cost = run(&phases[i]);
                        if (write(done[1], &cost, sizeof(cost)) != sizeof(cost))
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
                double before = cpu_us_of(server);
                if (write(go[1], &byte, 1) != 1 || read(done[0], &cost, sizeof(cost)) != sizeof(cost))
                        die(dir);
                cost.cpu_us += cpu_us_of(server) - before;
                results[i][number][round] = phases[i].large ? (double)mebibytes * 1e6 / cost.us : cost.us / files;
                cpu[i][number][round] = cost.cpu_us / (phases[i].large ? mebibytes : files);
                waits[i][number][round] = cost.waits / (phases[i].large ? mebibytes : files);
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

static double median_of(double *values, int count)
{
        qsort(values, (size_t)count, sizeof(double), by_size);
        return values[count / 2];
}

/* The name of a phase without its unit, and with another. */
static void print_label(const struct phase *phase, const char *unit)
{
        char label[64];

        snprintf(label, sizeof(label), "%.*s%s%s", (int)(strrchr(phase->name, ',') - phase->name), phase->name, unit,
                 phase->large ? " a MiB" : "");
        printf("%-32s", label);
}

static void print_cpu(const char *const *names, int count, int rounds)
{
        printf("\n%-32s", "processor time, client and server");
        for (int i = 0; i < count; i++)
                printf(" %12s", names[i]);
        if (count > 2)
                printf(" %7s", "goal");
        for (int i = 2; i < count; i++)
                printf(" %s/%s", names[1], names[i]);
        printf("\n");
        for (int phase = 0; phase < PHASES; phase++) {
                double medians[DIRS_MAX];

                print_label(&phases[phase], ", us");
                for (int i = 0; i < count; i++)
                        printf(" %12.1f", medians[i] = median_of(cpu[phase][i], rounds));
                if (count > 2)
                        printf(" %7.2f", GOAL);
                for (int i = 2; i < count; i++)
                        printf(" %*.2f", (int)(strlen(names[1]) + 1 + strlen(names[i])), medians[1] / medians[i]);
                printf("\n");
        }
}

static void print_waits(const char *const *names, int count, int rounds)
{
        printf("\n%-32s", "waits of the client, a file");
        for (int i = 0; i < count; i++)
                printf(" %12s", names[i]);
        printf("\n");
        for (int phase = 0; phase < PHASES; phase++) {
                print_label(&phases[phase], "");
                for (int i = 0; i < count; i++)
                        printf(" %12.2f", median_of(waits[phase][i], rounds));
                printf("\n");
        }
}

int main(int argc, char **argv)
{
        const char *names[DIRS_MAX], *dirs[DIRS_MAX];
        pid_t servers[DIRS_MAX];
        int count = argc - 5, rounds = argc > 5 ? atoi(argv[1]) : 0;

        if (count < 1 || count > DIRS_MAX || rounds < 1 || rounds > ROUNDS_MAX) {
                fprintf(stderr, "usage: remap ROUNDS MEBIBYTES FILES NAME=DIR[@PID]... CONTAINER\n");
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
                char *at = strrchr(dirs[i], '@');
                servers[i] = at ? atoi(at + 1) : 0;
                if (at)
                        *at = 0;
        }
        for (int round = -1; round < rounds; round++) /* the first is for practice */
                for (int i = 0; i < count; i++)
                        turn(argv[argc - 1], dirs[i], servers[i], i, round < 0 ? 0 : round);

        printf("%-32s", "");
        for (int i = 0; i < count; i++)
                printf(" %12s %7s", names[i], i ? "ratio" : "");
        printf("\n");
        double all[DIRS_MAX] = { 0 };
        for (int phase = 0; phase < PHASES; phase++) {
                double first = 0;
                printf("%-32s", phases[phase].name);
                for (int i = 0; i < count; i++) {
                        double median = median_of(results[phase][i], rounds);
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
        print_cpu(names, count, rounds);
        print_waits(names, count, rounds);
        return 0;
}
