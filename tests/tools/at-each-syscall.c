/* SPDX-License-Identifier: Apache-2.0 */
/*
 * at-each-syscall - run a program many times, each time with something done to it before another of its system calls.
 *
 *   at-each-syscall [OPTION...] ACTION [OPTION...] -- STEP ; STEP ; ...
 *
 * A round is the list of STEPs, of which one is `act`. The first round does nothing to the program; it says how many
 * calls there are, and what is watched is remembered after it. Each further round acts before call --from N, then
 * before every --step Sth, until there is no such call any more. The first round that fails ends all: exit status 1,
 * and what was wrong on stdout. Otherwise one line tells how many points were tried, and the last word of it which.
 *
 *   --own, --others, ACTION        as at-syscall has them: --kill, --kill-main, --fail ERRNO, --run CMD, --count
 *   --leave NAME                   a process that executes a program of this name is neither traced nor waited for
 *   --points N,...                 these calls instead; one that the program does not make this time is passed over
 *   --at NAME[:K][?],...           these points instead; each must be there, but for those with ?
 *   --reply json|kubelet|plain|any the replies of the programs: one JSON line and an exit status of 0 to 2; the same as
 *                                  the driver has it (stderr and stdout in one, exit status 0); or nothing on success,
 *                                  one line on stderr on failure; or an exit status, and nothing on stderr if it is 0
 *   --failure-status-max N         a failure has an exit status from 1 to this, and not 2; not of --reply kubelet
 *   --not-undone TEXT              a failure with that text on stderr is one that says that it left something: no
 *                                  `on-failure`
 *   --replies FILE                 gets a line per round, for a JSON parser: call, name, exit status, reply
 *   --watch mounts PID|self        the mounts of a process, less those of other runs of the tests (--mine DIR)
 *   --watch tree DIR               names, types, modes and owners of all that is there, not through mounts
 *   --watch loops PREFIX           the loop devices over files whose paths begin so
 *   --counter NAME START STEP      a variable that grows by STEP each round
 *   --timeout SECONDS              for each program; 60 unless given
 *
 * Steps; each ends with an argument `;`, and may begin with `on-success` or `on-failure`: only if the program that was
 * acted upon said so.
 *   act PROGRAM ARG...             traced; its reply must be what the action allows
 *   call PROGRAM ARG...            must succeed
 *   sh SCRIPT                      exit status 0; its environment has the variables, and STATUS, NAME, REPLY of `act`
 *   mounts PID|self PATH COUNT     so many mounts exactly there
 *   loops PREFIX COUNT             so many loop devices over such files; they may take a moment to go
 *   size FILE BYTES                its size
 *   contains FILE TEXT             the text stands in it
 *   same                           what is watched is as after the first round, and no process is left
 *   remember mounts|tree|loops ARG / unchanged      the same between two steps of a round
 *   background NAME PROGRAM ARG... goes on; the variable NAME is the line that it prints, a pid
 *   end NAME                       that process is killed, and PROGRAM has ended
 *   stdin TEXT                     of all programs from now on
 * @NAME@ in an argument is the variable: N, the number of the call; ROUND; DEVICE, from the last reply that had one;
 * and those of `background` and --counter.
 */
#define _GNU_SOURCE
#include "sweep_steps.h"

static _Noreturn void usage(const char *why)
{
        fprintf(stderr, "at-each-syscall: %s\nusage: at-each-syscall [OPTION...] ACTION -- STEP... (see its source)\n",
                why);
        exit(125);
}

static bool do_round(void)
{
        now.outcome = OUTCOME_NONE;
        variable_set_number("N", now.number);
        variable_set_number("ROUND", now.index);
        variable_set("DEVICE", "");
        for (size_t i = 0; i < variables_len; i++)
                if (variables[i].counter)
                        variable_set_number(variables[i].name, variables[i].start + now.index * variables[i].step);
        for (size_t i = 0; i < plan.steps_len; i++) {
                now.step = &plan.steps[i];
                if (now.step->only_on != OUTCOME_NONE && now.step->only_on != now.outcome)
                        continue;
                if (!carry_out(now.step))
                        return false;
        }
        now.step = NULL;
        if (opt.leave) { /* what went on by itself, and has ended since then, is not there for the next round */
                char left[256];
                find_left(left);
        }
        now.index++;
        return true;
}

/* ---- the sweep */

static long tried;
static char tried_text[1 << 20];

static void note_tried(const char *point)
{
        size_t len = strlen(tried_text);

        tried++;
        if (len + strlen(point) + 2 > sizeof(tried_text))
                die("too many points");
        snprintf(tried_text + len, sizeof(tried_text) - len, "%s%s", len > 0 ? "," : "", point);
}

static void note_tried_number(void)
{
        char text[24];

        snprintf(text, sizeof(text), "%ld", now.number);
        note_tried(text);
}

static bool sweep_numbers(void)
{
        int unreached = 0;

        /* A program of few calls has one point at least. */
        if (plan.from > now.calls)
                plan.from = 1 + (plan.from - 1) % now.calls;
        for (now.number = plan.from;; now.number += plan.step) {
                if (!do_round())
                        return false;
                unreached = found->reached ? 0 : unreached + 1;
                if (found->reached)
                        note_tried_number();
                /* Where a program waits for something, it makes more calls one time and fewer another. */
                if (unreached < 2 && (unreached == 0 || now.number < now.calls))
                        continue;
                if (tried > 0 || plan.from == 1)
                        return true;
                /* The only point was among the last calls, which it did not make this time: one before it. */
                plan.from /= 2;
                now.number = plan.from - plan.step;
                unreached = 0;
        }
}

static bool sweep_these_numbers(void)
{
        for (size_t i = 0; i < plan.points_len; i++) {
                now.number = plan.points[i];
                if (!do_round())
                        return false;
                if (found->reached)
                        note_tried_number();
        }
        return true;
}

static bool sweep_places(void)
{
        for (size_t i = 0; i < plan.at_len; i++) {
                size_t length = strlen(plan.at[i]);
                bool optional = length > 0 && plan.at[i][length - 1] == '?';

                if (optional)
                        plan.at[i][length - 1] = '\0';
                now.at = plan.at[i];
                now.number = (long)i + 1;
                if (!do_round())
                        return false;
                if (!found->reached && !optional)
                        return wrong("the point was not there");
                if (found->reached)
                        note_tried(now.at);
        }
        return true;
}

static bool sweep(void)
{
        now.baseline = true;
        if (!do_round())
                return false;
        now.baseline = false;
        now.calls = found->count;
        for (size_t i = 0; i < plan.watches_len; i++)
                plan.watches[i].before = look(&plan.watches[i]);
        if (plan.at_len > 0)
                return sweep_places();
        return plan.points_len > 0 ? sweep_these_numbers() : sweep_numbers();
}

static void parse_step(char **argv, int *i, int argc)
{
        struct step *s = &plan.steps[plan.steps_len++];

        if (plan.steps_len == STEPS_MAX)
                usage("too many steps");
        if (strcmp(argv[*i], "on-success") == 0 || strcmp(argv[*i], "on-failure") == 0)
                s->only_on = strcmp(argv[(*i)++], "on-success") == 0 ? OUTCOME_SUCCESS : OUTCOME_FAILURE;
        if (*i >= argc)
                usage("a step is missing");
        s->word = argv[(*i)++];
        s->argv = &argv[*i];
        for (; *i < argc && strcmp(argv[*i], ";") != 0; (*i)++)
                s->argc++;
        if (*i == argc)
                usage("a step has no end");
        argv[(*i)++] = NULL;
        for (size_t w = 0; w < ARRAY_LEN(words); w++)
                if (strcmp(words[w].word, s->word) == 0 && s->argc >= words[w].argc_min && s->argc <= words[w].argc_max)
                        return;
        usage(s->word);
}

static void parse_counter(int argc, char **argv, int *i)
{
        struct variable *v = variable(value(argc, argv, i));

        v->start = atol(value(argc, argv, i));
        v->step = atol(value(argc, argv, i));
        v->counter = true;
}

static void parse_watch(int argc, char **argv, int *i)
{
        struct watch *w = &plan.watches[plan.watches_len++];

        if (plan.watches_len == WATCHES_MAX)
                usage("too many watches");
        w->kind = (char *)value(argc, argv, i);
        w->arg = (char *)value(argc, argv, i);
        if (strcmp(w->kind, "mounts") != 0 && strcmp(w->kind, "tree") != 0 && strcmp(w->kind, "loops") != 0)
                usage("--watch mounts|tree|loops");
}

static void parse_points(char *text)
{
        for (char *end; *text; text = end + (*end == ',')) {
                long number = strtol(text, &end, 10);
                if (end == text || number < 1 || (*end && *end != ','))
                        usage("--points N,...");
                if (plan.points_len == ARRAY_LEN(plan.points))
                        usage("too many points");
                plan.points[plan.points_len++] = number;
        }
}

static void parse_reply(const char *text)
{
        static const char *const words_of[] = { "json", "kubelet", "plain", "any" };

        for (size_t i = 0; i < ARRAY_LEN(words_of); i++)
                if (strcmp(words_of[i], text) == 0) {
                        plan.reply = (enum reply)i;
                        return;
                }
        usage("--reply json|kubelet|plain|any");
}

static void parse(int argc, char **argv)
{
        bool at_given = false;
        int i;

        for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
                const char *a = argv[i];
                if (parse_action(argc, argv, &i))
                        continue;
                if (strcmp(a, "--from") == 0)
                        plan.from = atol(value(argc, argv, &i));
                else if (strcmp(a, "--step") == 0)
                        plan.step = atol(value(argc, argv, &i));
                else if (strcmp(a, "--points") == 0)
                        parse_points((char *)value(argc, argv, &i));
                else if (strcmp(a, "--timeout") == 0)
                        plan.timeout_seconds = atol(value(argc, argv, &i));
                else if (strcmp(a, "--failure-status-max") == 0)
                        plan.failure_status_max = atol(value(argc, argv, &i));
                else if (strcmp(a, "--reply") == 0)
                        parse_reply(value(argc, argv, &i));
                else if (strcmp(a, "--mine") == 0)
                        plan.mine = value(argc, argv, &i);
                else if (strcmp(a, "--not-undone") == 0)
                        plan.not_undone = value(argc, argv, &i);
                else if (strcmp(a, "--watch") == 0)
                        parse_watch(argc, argv, &i);
                else if (strcmp(a, "--counter") == 0)
                        parse_counter(argc, argv, &i);
                else if (strcmp(a, "--at") == 0) {
                        at_given = true;
                        for (char *at = strtok((char *)value(argc, argv, &i), ","); at; at = strtok(NULL, ",")) {
                                if (plan.at_len == ARRAY_LEN(plan.at))
                                        usage("too many points");
                                plan.at[plan.at_len++] = at;
                        }
                } else if (strcmp(a, "--replies") == 0) {
                        plan.replies = fopen(value(argc, argv, &i), "we");
                        if (!plan.replies)
                                die("--replies");
                } else
                        usage(a);
        }
        for (i++; i < argc;)
                parse_step(argv, &i, argc);
        if (at_given && plan.at_len == 0)
                usage("--at without a point");
        if (plan.steps_len == 0 || plan.from < 1 || plan.step < 1)
                usage("no steps, or no points");
}

int main(int argc, char **argv)
{
        struct timespec begin, end;
        struct sigaction on_alarm_kill = { .sa_handler = kill_running };

        setvbuf(stdout, NULL, _IOLBF, 0);
        parse(argc, argv);
        found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        now.out_fd = memfd_create("stdout", MFD_CLOEXEC);
        now.err_fd = memfd_create("stderr", MFD_CLOEXEC);
        now.in_fd = memfd_create("stdin", MFD_CLOEXEC);
        if (found == MAP_FAILED || now.out_fd < 0 || now.err_fd < 0 || now.in_fd < 0)
                die("memfd_create");
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || sigaction(SIGALRM, &on_alarm_kill, NULL) < 0)
                die("prctl");
        clock_gettime(CLOCK_MONOTONIC, &begin);
        bool good = sweep();
        clock_gettime(CLOCK_MONOTONIC, &end);
        for (size_t i = 0; i < variables_len; i++)
                end_background(&variables[i]);
        kill_what_is_left();
        if (good && tried == 0)
                good = (printf("no point was tried\n"), false);
        double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
        if (good)
                printf("points tried %ld of %ld calls, %.1f ms each: %s\n", tried, now.calls, ms / (double)(tried + 1),
                       tried_text);
        return good ? 0 : 1;
}
