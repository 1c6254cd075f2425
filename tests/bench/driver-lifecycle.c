/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver-lifecycle - how long the driver takes, beside the least that could do the same.
 *
 *   driver-lifecycle lifecycle ROUNDS DRIVER FLOOR WORK
 *           one life of a new loop volume: eight calls of the driver, and eight programs that do what no call can do
 *           without (driver-floor VERB); then each call by itself, beside its program; and at the end all of the least
 *           in one process (driver-floor all), as FlexVolume cannot have it
 *   driver-lifecycle init ROUNDS DRIVER PRINT
 *           `DRIVER init` and a C program that prints the same
 *
 * In turns, the order changing from round to round. Times are from the first spawn to the last child's end, in
 * microseconds; processor time is that of the program and of all that it waited for. Volumes are deleted, and kubelet's
 * directories made, between the samples. WORK holds the floor's image and those directories, on the filesystem of the
 * pool "default".
 *
 * Why eight programs: where the processor is virtual, a C library that starts asks it what it can do some seventy times,
 * each time by way of the hypervisor. That is what a call costs most of, and no driver that is a program can save it.
 *
 * Prints one line each; a call's ratios are to its own program:
 *
 *   NAME MEDIAN P99 RATIO_OF_MEDIANS_TO_THE_FIRST MEDIAN_OF_PROCESSOR_TIME ITS_RATIO GOAL_OF_THAT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB "64"
#define CALLS 8
#define LIFECYCLE_GOAL 1.80
#define INIT_GOAL 1.30

extern char **environ;

static const char *const call_names[CALLS] = { "getvolumename", "attach",  "waitforattach", "mountdevice",
                                               "mount",         "unmount", "unmountdevice", "detach" };
static char spec[] =
        "{\"kubernetes.io/fsType\":\"\",\"kubernetes.io/pvOrVolumeName\":\"bench\",\"kubernetes.io/readwrite\":\"rw\","
        "\"type\":\"loop\",\"size\":\"" MIB "Mi\"}";
static char reply[4096]; /* of the last program that was run */

static void die(const char *what)
{
        perror(what);
        exit(1);
}

struct cost {
        double us;
        double cpu_us;
};

/* Of each round. */
struct samples {
        double *us;
        double *cpu_us;
};

static double us_of(struct timeval time)
{
        return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

static double now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Run a program to its end, as kubelet does: it reads what it says until all have closed the pipe. Returns the time it
 * took. */
static struct cost run(char *const *argv)
{
        posix_spawn_file_actions_t actions;
        int out[2];
        size_t length = 0;
        struct rusage usage;
        double start;
        ssize_t n;
        int status;
        pid_t pid;

        if (pipe2(out, O_CLOEXEC) < 0)
                die("pipe");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
        start = now_us();
        errno = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
        if (errno != 0)
                die(argv[0]);
        close(out[1]);
        while ((n = read(out[0], reply + length, sizeof reply - 1 - length)) > 0)
                length += (size_t)n;
        if (wait4(pid, &status, 0, &usage) != pid)
                die("wait4");
        start = now_us() - start;
        close(out[0]);
        posix_spawn_file_actions_destroy(&actions);
        reply[length] = '\0';
        if (status != 0) {
                fprintf(stderr, "driver-lifecycle: %s failed (status %#x): %s\n", argv[0], (unsigned)status, reply);
                exit(1);
        }
        return (struct cost){ start, us_of(usage.ru_utime) + us_of(usage.ru_stime) };
}

static int by_size(const void *one, const void *other)
{
        double a = *(const double *)one;
        double b = *(const double *)other;

        return (a > b) - (a < b);
}

static double median_of(double *us, int rounds)
{
        qsort(us, (size_t)rounds, sizeof *us, by_size);
        return us[rounds / 2];
}

/* first: what the ratios are to; NULL: they are not of interest. goal 0: none. */
static struct cost print_row(const char *name, const struct samples *samples, int rounds, const struct cost *first,
                             double goal)
{
        struct cost medians = { median_of(samples->us, rounds), median_of(samples->cpu_us, rounds) };

        printf("%-22s %9.1f %9.1f", name, medians.us, samples->us[rounds * 99 / 100]);
        if (first != NULL)
                printf(" %6.2f %9.1f %6.2f", medians.us / first->us, medians.cpu_us, medians.cpu_us / first->cpu_us);
        else
                printf(" %6s %9.1f %6s", "", medians.cpu_us, "");
        if (goal > 0)
                printf(" %5.2f", goal);
        printf("\n");
        return medians;
}

static double *numbers(int rounds)
{
        double *us = calloc((size_t)rounds, sizeof *us);

        if (us == NULL)
                die("calloc");
        return us;
}

static struct samples make_samples(int rounds)
{
        return (struct samples){ numbers(rounds), numbers(rounds) };
}

/* The rounds before the first are to warm up. */
static void note(struct samples *samples, int round, struct cost cost)
{
        if (round < 0)
                return;
        samples->us[round] = cost.us;
        samples->cpu_us[round] = cost.cpu_us;
}

/* One life's calls by one program, each its own argv. */
struct contender {
        struct samples life;
        struct samples calls[CALLS];
        struct cost sum;
};

static void call(struct contender *contender, int round, int number, char **argv)
{
        struct cost cost = run(argv);

        if (strncmp(reply, "{\"status\":\"Success\"", 19) != 0) {
                fprintf(stderr, "driver-lifecycle: %s %s: %s\n", argv[0], call_names[number], reply);
                exit(1);
        }
        note(&contender->calls[number], round, cost);
        contender->sum.us += cost.us;
        contender->sum.cpu_us += cost.cpu_us;
}

static void make_dir(const char *path)
{
        if (mkdir(path, 0750) < 0 && errno != EEXIST)
                die(path);
}

/* What attach answered. */
static void take_device(char *ret_device)
{
        const char *found = strstr(reply, "\"device\"");

        if (found == NULL || sscanf(found, "\"device\":\"%63[^\"]", ret_device) != 1) {
                fprintf(stderr, "driver-lifecycle: attach named no device: %s\n", reply);
                exit(1);
        }
}

struct places {
        char node[256];
        char global[512];
        char pod[512];
        char image[512];
};

static void live(struct contender *driver, int round, char *program, struct places *at)
{
        char device[64] = "";
        char *arguments[CALLS][4] = { { spec },          { spec, at->node },
                                      { device, spec },  { at->global, device, spec },
                                      { at->pod, spec }, { at->pod },
                                      { at->global },    { (char *)"bench", at->node } };

        driver->sum = (struct cost){ 0 };
        for (int i = 0; i < CALLS; i++) {
                char **more = arguments[i];

                call(driver, round, i, (char *[]){ program, (char *)call_names[i], more[0], more[1], more[2], NULL });
                if (i == 1)
                        take_device(device);
        }
        note(&driver->life, round, driver->sum);
}

static void live_least(struct contender *least, int round, char *program, struct places *at)
{
        char device[64] = "";

        least->sum = (struct cost){ 0 };
        for (int i = 0; i < CALLS; i++) {
                call(least, round, i,
                     (char *[]){ program, (char *)call_names[i], at->image, MIB, at->global, at->pod, device, NULL });
                if (i == 1)
                        take_device(device);
        }
        note(&least->life, round, least->sum);
}

static struct contender make_contender(int rounds)
{
        struct contender contender = { .life = make_samples(rounds) };

        for (int i = 0; i < CALLS; i++)
                contender.calls[i] = make_samples(rounds);
        return contender;
}

static void print_lives(struct contender *least, struct contender *driver, struct samples *one, int rounds)
{
        struct cost first = print_row("unavoidable work", &least->life, rounds, NULL, 0);
        struct cost of_call;

        (void)print_row("eight calls", &driver->life, rounds, &first, LIFECYCLE_GOAL);
        for (int i = 0; i < CALLS; i++) {
                of_call = (struct cost){ median_of(least->calls[i].us, rounds),
                                         median_of(least->calls[i].cpu_us, rounds) };
                (void)print_row(call_names[i], &driver->calls[i], rounds, &of_call, 0);
        }
        (void)print_row("least, in one process", one, rounds, &first, 0);
}

static void lifecycle(int rounds, char *program, char *floor_program, const char *work)
{
        struct contender driver = make_contender(rounds);
        struct contender least = make_contender(rounds);
        struct samples one = make_samples(rounds);
        struct places at;
        char removal[512];

        if (gethostname(at.node, sizeof at.node) < 0)
                die("gethostname");
        snprintf(at.global, sizeof at.global, "%s/global", work);
        snprintf(at.pod, sizeof at.pod, "%s/pod", work);
        snprintf(at.image, sizeof at.image, "%s/floor.img", work);
        snprintf(removal, sizeof removal, "%.*svolume-delete", (int)(strrchr(program, '/') + 1 - program), program);

        for (int round = -3; round < rounds; round++) /* three to warm up */
                for (int i = 0; i < 3; i++) {
                        int who = (i + round + 3) % 3;

                        make_dir(at.global);
                        make_dir(at.pod);
                        if (who == 0) {
                                live(&driver, round, program, &at);
                                (void)run((char *[]){ removal, "{\"name\": \"bench\", \"reclaimPolicy\": \"delete\"}",
                                                      NULL });
                                continue;
                        }
                        if (who == 1)
                                live_least(&least, round, floor_program, &at);
                        else
                                note(&one, round,
                                     run((char *[]){ floor_program, "all", at.image, MIB, at.global, at.pod, NULL }));
                        if (unlink(at.image) < 0)
                                die(at.image);
                }
        print_lives(&least, &driver, &one, rounds);
}

static void init(int rounds, char *driver, char *print)
{
        struct samples samples[2] = { make_samples(rounds), make_samples(rounds) };
        char *argv[2][3] = { { print, NULL }, { driver, "init", NULL } };
        char said[2][sizeof reply];
        struct cost first;

        for (int round = -3; round < rounds; round++)
                for (int i = 0; i < 2; i++) {
                        int who = (i + round + 3) % 2;

                        note(&samples[who], round, run(argv[who]));
                        strcpy(said[who], reply);
                }
        if (strcmp(said[0], said[1]) != 0) {
                fprintf(stderr, "driver-lifecycle: they do not print the same:\n%s%s", said[0], said[1]);
                exit(1);
        }
        first = print_row("print-init", &samples[0], rounds, NULL, 0);
        (void)print_row("flexdriver init", &samples[1], rounds, &first, INIT_GOAL);
}

int main(int argc, char **argv)
{
        if (argc == 6 && strcmp(argv[1], "lifecycle") == 0)
                lifecycle(atoi(argv[2]), argv[3], argv[4], argv[5]);
        else if (argc == 5 && strcmp(argv[1], "init") == 0)
                init(atoi(argv[2]), argv[3], argv[4]);
        else
                return 2;
        return 0;
}
