/* SPDX-License-Identifier: Apache-2.0 */
/*
 * side-by-side - how much CPU one injection takes, done by different programs in turn.
 *
 *   side-by-side bind ROUNDS MOUNTS BIN FLOOR WORK          bare steps, floor, mount-bind, nsenter + mount,
 *                                                         mount --namespace
 *   side-by-side block ROUNDS MOUNTS BIN FLOOR WORK DEVICE  bare steps with the lock of nosuid and nodev, and without
 *                                                         it, floor, mount-block told the type, and finding it
 *   side-by-side volume ROUNDS MOUNTS BIN FLOOR WORK DEVICE mount-block told the type, and mount-volume of the volume
 *                                                         "bench", which is staged already
 *   side-by-side container ROUNDS MOUNTS BIN FLOOR WORK     bare steps, mount-container-to-container
 *   side-by-side overlay ROUNDS MOUNTS BIN FLOOR WORK       bare steps, mount-overlay
 *   side-by-side crowd ROUNDS MOUNTS BIN FLOOR WORK         mount-bind with 10 mounts in the container and with MOUNTS
 *   side-by-side workers ROUNDS 0 BIN FLOOR WORK            mount-bind by one worker, and by two at once
 *
 * A container here is a process with a user namespace (0 -> 100000) and a mount namespace that shows the node's own
 * tree, since nsenter and mount need their files in it; it holds MOUNTS more mounts. Of two containers the second has
 * other ids (0 -> 200000); WORK/shared is its. That process looks after each
 * sample, from inside, for the file WORK/source/marker at the target, owned by its uid 0 (by anybody for the programs
 * that cannot map ids), and unmounts it. The order changes from round to round. Times are the CPU, user and system, of
 * the program and of the children that it waited for, in microseconds: other work on the machine makes them last
 * longer, but hardly cost more. Prints one line per program:
 *
 *   NAME MEDIAN P99 MAXRSS_KIB RATIO_OF_MEDIANS_TO_THE_FIRST GOAL_OF_THAT_RATIO
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BASE 100000 /* of the first container's ids on the node */
#define PROGRAMS_MAX 5

struct agent {
        pid_t pid;
        int commands; /* we write here */
        int answers;  /* and read here */
        char number[16];
};

struct contender {
        const char *name;
        char *argv[12];
        char *undo[4]; /* what else has to be taken back, untimed; argv[0] NULL: nothing */
        bool removes;  /* and that unmounts, too */
        struct agent *agent;
        bool mapped;
        double goal; /* of the ratio to the first; 0: none */
        double *us;
        long max_rss_kib;
};

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

static void write_text(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                die(path);
        close(fd);
}

/* In the container: fill it, then answer. 'c': the file is there and ours; 'a': it is there; 'u': unmount. */
static void agent_main(int commands, int answers, const char *work, int mounts)
{
        char target[512];
        char marker[600];
        char command;

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                die("make private");
        snprintf(target, sizeof target, "%s/crowd", work);
        if (mount("crowd", target, "tmpfs", 0, NULL) < 0)
                die("mount tmpfs");
        for (int i = 0; i < mounts; i++) {
                char path[600];

                snprintf(path, sizeof path, "%s/%d", target, i);
                if (mkdir(path, 0755) < 0 || mount(path, path, NULL, MS_BIND, NULL) < 0)
                        die(path);
        }
        snprintf(target, sizeof target, "%s/target", work);
        snprintf(marker, sizeof marker, "%s/marker", target);
        if (write(answers, "r", 1) != 1)
                die("ready");
        while (read(commands, &command, 1) == 1) {
                struct stat st;
                char answer = 'n';

                if (command == 'u' ? umount2(target, MNT_DETACH) == 0
                                   : stat(marker, &st) == 0 && (command == 'a' || st.st_uid == 0))
                        answer = 'y';
                if (write(answers, &answer, 1) != 1)
                        break;
        }
        _exit(0);
}

static void ask(struct agent *agent, char command, const char *name)
{
        char answer;

        if (write(agent->commands, &command, 1) != 1 || read(agent->answers, &answer, 1) != 1 || answer != 'y') {
                fprintf(stderr, "side-by-side: %s: not there, or not owned by uid 0, from inside the container\n",
                        name);
                exit(1);
        }
}

static void start_agent(struct agent *agent, const char *work, int base, int mounts)
{
        int commands[2];
        int answers[2];
        int go[2];
        char path[64];
        char map[32];
        char byte;

        if (pipe2(commands, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
                die("pipe");
        agent->pid = fork();
        if (agent->pid < 0)
                die("fork");
        if (agent->pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(answers[1], "u", 1) != 1 ||
                    read(go[0], &byte, 1) != 1 || setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 ||
                    setresuid(0, 0, 0) < 0)
                        die("user namespace");
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                agent_main(commands[0], answers[1], work, mounts);
        }
        if (read(answers[0], &byte, 1) != 1)
                die("agent");
        snprintf(path, sizeof path, "/proc/%d/uid_map", agent->pid);
        snprintf(map, sizeof map, "0 %d 65536", base);
        write_text(path, map);
        snprintf(path, sizeof path, "/proc/%d/gid_map", agent->pid);
        write_text(path, map);
        if (write(go[1], "g", 1) != 1 || read(answers[0], &byte, 1) != 1 || byte != 'r')
                die("agent");
        agent->commands = commands[1];
        agent->answers = answers[0];
        snprintf(agent->number, sizeof agent->number, "%d", agent->pid);
}

/* Run a program to its end; its output is dropped. Returns the CPU that it took. */
static double run(char *const *argv, long *max_rss_kib)
{
        static posix_spawn_file_actions_t actions;
        static bool ready;
        extern char **environ;
        struct rusage usage;
        int status;
        pid_t pid;

        if (!ready) {
                posix_spawn_file_actions_init(&actions);
                posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
                ready = true;
        }
        errno = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
        if (errno != 0)
                die(argv[0]);
        if (wait4(pid, &status, 0, &usage) != pid)
                die("wait4");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                fprintf(stderr, "side-by-side: %s failed (status %#x)\n", argv[0], (unsigned)status);
                exit(1);
        }
        if (max_rss_kib != NULL && usage.ru_maxrss > *max_rss_kib)
                *max_rss_kib = usage.ru_maxrss;
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int by_size(const void *one, const void *other)
{
        double a = *(const double *)one;
        double b = *(const double *)other;

        return (a > b) - (a < b);
}

static void compare(struct contender *contenders, int count, int rounds)
{
        for (int i = 0; i < count; i++)
                contenders[i].us = calloc((size_t)rounds, sizeof(double));
        for (int round = -3; round < rounds; round++) /* three to warm up */
                for (int i = 0; i < count; i++) {
                        struct contender *c = &contenders[(i + round + 3) % count];
                        double us = run(c->argv, round < 0 ? NULL : &c->max_rss_kib);

                        if (round >= 0)
                                c->us[round] = us;
                        ask(c->agent, c->mapped ? 'c' : 'a', c->name);
                        if (!c->removes)
                                ask(c->agent, 'u', c->name);
                        if (c->undo[0] != NULL)
                                (void)run(c->undo, NULL);
                }
        for (int i = 0; i < count; i++)
                qsort(contenders[i].us, (size_t)rounds, sizeof(double), by_size);
        for (int i = 0; i < count; i++)
                printf(contenders[i].goal > 0 ? "%-28s %9.1f %9.1f %7ld %6.2f %6.2f\n"
                                              : "%-28s %9.1f %9.1f %7ld %6.2f\n",
                       contenders[i].name, contenders[i].us[rounds / 2], contenders[i].us[rounds * 99 / 100],
                       contenders[i].max_rss_kib, contenders[i].us[rounds / 2] / contenders[0].us[rounds / 2],
                       contenders[i].goal);
}

/* A helper, whose mount mount-remove takes back. */
static struct contender helper(const char *name, char *program, char *request, char *removal, char *undo,
                               struct agent *agent, double goal)
{
        return (struct contender){ .name = name,
                                   .argv = { program, request },
                                   .undo = { removal, undo },
                                   .removes = true,
                                   .agent = agent,
                                   .mapped = true,
                                   .goal = goal };
}

/* steps: those of floor.c, "steps" or "locked". */
static struct contender bare_steps(char *floor, char *steps, char *kind, char *source, char *target,
                                   struct agent *agent)
{
        return (struct contender){ .name = strcmp(steps, "locked") == 0 ? "bare steps, locked" : "bare steps",
                                   .argv = { floor, steps, kind, agent->number, source, target },
                                   .agent = agent,
                                   .mapped = true };
}

static struct contender all_calls(char *floor, char *kind, char *source, char *target, char *record,
                                  struct agent *agent)
{
        return (struct contender){ .name = "floor",
                                   .argv = { floor, "calls", kind, agent->number, source, target },
                                   .undo = { "rm", record },
                                   .agent = agent,
                                   .mapped = true };
}

/* One worker: its own container, rounds mounts on as many targets. */
static void work_through(const char *program, const char *work, struct agent *agent, int worker, int rounds)
{
        for (int i = 0; i < rounds; i++) {
                char request[1024];

                snprintf(request, sizeof request,
                         "{\"container\":%s,\"source\":\"%s/source\",\"target\":\"%s/crowd/w%d-%d\"}", agent->number,
                         work, work, worker, i);
                (void)run((char *[]){ (char *)program, request, NULL }, NULL);
        }
}

/* Mounts a second, by this many workers at once. */
static double throughput(const char *program, const char *work, int workers, int rounds)
{
        struct agent agents[2] = {};
        pid_t pids[2];
        double start;
        int status;

        for (int i = 0; i < workers; i++)
                start_agent(&agents[i], work, BASE, 0);
        start = now_us();
        for (int i = 0; i < workers; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        work_through(program, work, &agents[i], i, rounds);
                        _exit(0);
                }
        }
        for (int i = 0; i < workers; i++)
                if (waitpid(pids[i], &status, 0) < 0 || status != 0)
                        die("worker");
        start = now_us() - start;
        for (int i = 0; i < workers; i++) {
                kill(agents[i].pid, SIGKILL);
                waitpid(agents[i].pid, NULL, 0);
        }
        return workers * rounds / start * 1e6;
}

int main(int argc, char **argv)
{
        static char source[512], target[512], origin[600], other[600], bind[512], block[512], removal[512], record[512],
                request[4][2048], undo[4][2048], typed[2200];
        struct contender contenders[PROGRAMS_MAX] = {};
        struct agent agents[2] = {};
        int count = 0;

        if (argc < 7)
                return 2;
        const char *mode = argv[1];
        int rounds = atoi(argv[2]);
        int mounts = atoi(argv[3]);
        const char *bin = argv[4];
        char *floor = argv[5];
        const char *work = argv[6];
        char *device = argc > 7 ? argv[7] : NULL;

        snprintf(source, sizeof source, "%s/source", work);
        snprintf(target, sizeof target, "%s/target", work);
        snprintf(bind, sizeof bind, "%s/mount-bind", bin);
        snprintf(block, sizeof block, "%s/mount-block", bin);
        snprintf(removal, sizeof removal, "%s/mount-remove", bin);
        if (strcmp(mode, "workers") == 0) {
                double one = 0;
                double two = 0;

                for (int i = 0; i < 3; i++) { /* in turn, the best of each: a machine's noise only takes away */
                        double rate = throughput(bind, work, 1, rounds);

                        one = rate > one ? rate : one;
                        rate = throughput(bind, work, 2, rounds);
                        two = rate > two ? rate : two;
                }
                printf("one worker %.0f mounts/s, two %.0f mounts/s, ratio %.2f\n", one, two, two / one);
                return 0;
        }

        start_agent(&agents[0], work, BASE, strcmp(mode, "crowd") == 0 ? 10 : mounts);
        if (strcmp(mode, "crowd") == 0 || strcmp(mode, "container") == 0)
                start_agent(&agents[1], work, strcmp(mode, "crowd") == 0 ? BASE : 2 * BASE, mounts);
        for (int i = 0; i < 2 && agents[i].pid != 0; i++) {
                snprintf(request[i], sizeof request[i],
                         "{\"container\":%s,\"source\":\"%s\",\"target\":\"%s\",\"propagation\":\"private\"}",
                         agents[i].number, strcmp(mode, "block") == 0 || strcmp(mode, "volume") == 0 ? device : source,
                         target);
                snprintf(undo[i], sizeof undo[i], "{\"container\":%s,\"target\":\"%s\"}", agents[i].number, target);
        }
        snprintf(record, sizeof record, "%s/mounts/floor.json", getenv("FLOOR_STATE"));
        if (strcmp(mode, "block") == 0) {
                contenders[count++] = bare_steps(floor, "locked", "block", device, target, &agents[0]);
                contenders[count++] = bare_steps(floor, "steps", "block", device, target, &agents[0]);
                contenders[count++] = all_calls(floor, "block", device, target, record, &agents[0]);
                snprintf(typed, sizeof typed, "%.*s,\"fsType\":\"ext4\"}", (int)strlen(request[0]) - 1, request[0]);
                contenders[count++] = helper("mount-block, fsType", block, typed, removal, undo[0], &agents[0], 1.6);
                contenders[count++] =
                        helper("mount-block, probing", block, request[0], removal, undo[0], &agents[0], 0);
        } else if (strcmp(mode, "volume") == 0) {
                snprintf(typed, sizeof typed, "%.*s,\"fsType\":\"ext4\"}", (int)strlen(request[0]) - 1, request[0]);
                snprintf(request[2], sizeof request[2],
                         "{\"container\":%s,\"volume\":\"bench\",\"target\":\"%s\",\"propagation\":\"private\"}",
                         agents[0].number, target);
                snprintf(other, sizeof other, "%s/mount-volume", bin);
                contenders[count++] = helper("mount-block, fsType", block, typed, removal, undo[0], &agents[0], 0);
                contenders[count++] =
                        helper("mount-volume, attached", other, request[2], removal, undo[0], &agents[0], 1.15);
        } else if (strcmp(mode, "container") == 0) {
                snprintf(origin, sizeof origin, "%s%s/shared", agents[1].number, work);
                snprintf(request[2], sizeof request[2],
                         "{\"from\":{\"container\":%s,\"path\":\"%s/shared\"},"
                         "\"to\":{\"container\":%s,\"path\":\"%s\"}}",
                         agents[1].number, work, agents[0].number, target);
                snprintf(other, sizeof other, "%s/mount-container-to-container", bin);
                contenders[count++] = bare_steps(floor, "steps", "container", origin, target, &agents[0]);
                contenders[count++] =
                        helper("mount-container-to-container", other, request[2], removal, undo[0], &agents[0], 2.2);
        } else if (strcmp(mode, "overlay") == 0) {
                snprintf(origin, sizeof origin, "%s/layers", work);
                snprintf(request[2], sizeof request[2],
                         "{\"container\":%s,\"lower\":[\"%s/lower\"],\"upper\":\"%s/upper\",\"work\":\"%s/work\","
                         "\"target\":\"%s\"}",
                         agents[0].number, origin, origin, origin, target);
                snprintf(other, sizeof other, "%s/mount-overlay", bin);
                contenders[count++] = bare_steps(floor, "steps", "overlay", origin, target, &agents[0]);
                contenders[count++] = helper("mount-overlay", other, request[2], removal, undo[0], &agents[0], 2.2);
        } else if (strcmp(mode, "crowd") == 0) {
                for (int i = 0; i < 2; i++)
                        contenders[count++] = helper(i == 0 ? "10 mounts" : "many mounts", bind, request[i], removal,
                                                     undo[i], &agents[i], i == 0 ? 0 : 1.2);
        } else {
                static char ns[64];

                snprintf(ns, sizeof ns, "/proc/%s/ns/mnt", agents[0].number);
                contenders[count++] = bare_steps(floor, "steps", "bind", source, target, &agents[0]);
                contenders[count++] = all_calls(floor, "bind", source, target, record, &agents[0]);
                contenders[count++] = helper("mount-bind", bind, request[0], removal, undo[0], &agents[0], 1.6);
                contenders[count++] = (struct contender){ .name = "nsenter+mount",
                                                          .argv = { "nsenter", "-t", agents[0].number, "-m", "mount",
                                                                    "--bind", source, target },
                                                          .agent = &agents[0] };
                contenders[count++] =
                        (struct contender){ .name = "mount --namespace",
                                            .argv = { "mount", "--namespace", ns, "--bind", source, target },
                                            .agent = &agents[0] };
        }
        compare(contenders, count, rounds);
        return 0;
}
