/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver-lifecycle - how long the driver takes, beside the least that could do the same.
 *
 *   driver-lifecycle lifecycle ROUNDS DRIVER FLOOR WORK POOL   one life of a new loop volume, eight calls of the
 * driver, and driver-floor's one process; then each call by itself driver-lifecycle init ROUNDS DRIVER PRINT `DRIVER
 * init` and a C program that prints the same
 *
 * In turns, the order changing from round to round. Times are from the first spawn to the last child's end, in
 * microseconds. Image files are removed, and kubelet's directories made, between the samples. WORK holds the floor's
 * image and those directories, POOL is the driver's pool, both on one filesystem. Prints one line each:
 *
 *   NAME MEDIAN P99 RATIO_OF_MEDIANS_TO_THE_FIRST
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB "64"
#define CALLS 8

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

static double now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Run a program to its end, as kubelet does: it reads what it says until all have closed the pipe. Returns the time it
 * took. */
static double run(char *const *argv)
{
        posix_spawn_file_actions_t actions;
        int out[2];
        size_t length = 0;
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
        if (waitpid(pid, &status, 0) != pid)
                die("waitpid");
        start = now_us() - start;
        close(out[0]);
        posix_spawn_file_actions_destroy(&actions);
        reply[length] = '\0';
        if (status != 0) {
                fprintf(stderr, "driver-lifecycle: %s failed (status %#x): %s\n", argv[0], (unsigned)status, reply);
                exit(1);
        }
        return start;
}

static int by_size(const void *one, const void *other)
{
        double a = *(const double *)one;
        double b = *(const double *)other;

        return (a > b) - (a < b);
}

static double print_row(const char *name, double *us, int rounds, double first)
{
        double median;

        qsort(us, (size_t)rounds, sizeof *us, by_size);
        median = us[rounds / 2];
        printf("%-22s %9.1f %9.1f", name, median, us[rounds * 99 / 100]);
        if (first >= 0)
                printf(" %6.2f", first > 0 ? median / first : 1.0);
        printf("\n");
        return median;
}

static double *samples(int rounds)
{
        double *us = calloc((size_t)rounds, sizeof *us);

        if (us == NULL)
                die("calloc");
        return us;
}

static double call(char *driver, double **calls_us, int round, int number, char *first, char *second, char *third)
{
        double us = run((char *[]){ driver, (char *)call_names[number], first, second, third, NULL });

        if (strncmp(reply, "{\"status\":\"Success\"", 19) != 0) {
                fprintf(stderr, "driver-lifecycle: %s: %s\n", call_names[number], reply);
                exit(1);
        }
        if (round >= 0)
                calls_us[number][round] = us;
        return us;
}

static void make_dir(const char *path)
{
        if (mkdir(path, 0750) < 0 && errno != EEXIST)
                die(path);
}

static void lifecycle(int rounds, char *driver, char *floor_program, const char *work, const char *pool)
{
        char node[256], global[512], pod[512], image[512], floor_image[512], device[64];
        double *floor_us = samples(rounds);
        double *driver_us = samples(rounds);
        double *calls_us[CALLS];
        double first;

        if (gethostname(node, sizeof node) < 0)
                die("gethostname");
        snprintf(global, sizeof global, "%s/global", work);
        snprintf(pod, sizeof pod, "%s/pod", work);
        snprintf(image, sizeof image, "%s/bench.img", pool);
        snprintf(floor_image, sizeof floor_image, "%s/floor.img", work);
        for (int i = 0; i < CALLS; i++)
                calls_us[i] = samples(rounds);

        for (int round = -3; round < rounds; round++) /* three to warm up */
                for (int i = 0; i < 2; i++) {
                        double us = 0;

                        make_dir(global);
                        make_dir(pod);
                        if ((i + round + 3) % 2 == 0) {
                                us = run((char *[]){ floor_program, floor_image, MIB, global, pod, NULL });
                                if (round >= 0)
                                        floor_us[round] = us;
                                if (unlink(floor_image) < 0)
                                        die(floor_image);
                                continue;
                        }
                        us += call(driver, calls_us, round, 0, spec, NULL, NULL);
                        us += call(driver, calls_us, round, 1, spec, node, NULL);
                        if (sscanf(strstr(reply, "\"device\"") ? strstr(reply, "\"device\"") : "",
                                   "\"device\":\"%63[^\"]", device) != 1) {
                                fprintf(stderr, "driver-lifecycle: attach named no device: %s\n", reply);
                                exit(1);
                        }
                        us += call(driver, calls_us, round, 2, device, spec, NULL);
                        us += call(driver, calls_us, round, 3, global, device, spec);
                        us += call(driver, calls_us, round, 4, pod, spec, NULL);
                        us += call(driver, calls_us, round, 5, pod, NULL, NULL);
                        us += call(driver, calls_us, round, 6, global, NULL, NULL);
                        us += call(driver, calls_us, round, 7, (char *)"bench", node, NULL);
                        if (round >= 0)
                                driver_us[round] = us;
                        if (unlink(image) < 0)
                                die(image);
                }
        first = print_row("unavoidable work", floor_us, rounds, 0);
        (void)print_row("eight calls", driver_us, rounds, first);
        for (int i = 0; i < CALLS; i++)
                (void)print_row(call_names[i], calls_us[i], rounds, -1);
}

static void init(int rounds, char *driver, char *print)
{
        double *us[2] = { samples(rounds), samples(rounds) };
        char *argv[2][3] = { { print, NULL }, { driver, "init", NULL } };
        char said[2][sizeof reply];
        double first;

        for (int round = -3; round < rounds; round++)
                for (int i = 0; i < 2; i++) {
                        int who = (i + round + 3) % 2;
                        double taken = run(argv[who]);

                        strcpy(said[who], reply);
                        if (round >= 0)
                                us[who][round] = taken;
                }
        if (strcmp(said[0], said[1]) != 0) {
                fprintf(stderr, "driver-lifecycle: they do not print the same:\n%s%s", said[0], said[1]);
                exit(1);
        }
        first = print_row("print-init", us[0], rounds, 0);
        (void)print_row("flexdriver init", us[1], rounds, first);
}

int main(int argc, char **argv)
{
        if (argc == 7 && strcmp(argv[1], "lifecycle") == 0)
                lifecycle(atoi(argv[2]), argv[3], argv[4], argv[5], argv[6]);
        else if (argc == 5 && strcmp(argv[1], "init") == 0)
                init(atoi(argv[2]), argv[3], argv[4]);
        else
                return 2;
        return 0;
}
