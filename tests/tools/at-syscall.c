/* SPDX-License-Identifier: Apache-2.0 */
/*
 * at-syscall - run a program and do something right before its Nth system call.
 *
 *   at-syscall [--report FILE] [--log FILE] [--run-output FILE]
 *              [--own | --others] [--to-point] [--timeout SECONDS]
 *              [--at N | --at NAME[:K] [--where A=VALUE]...] [ACTION] [--each 'CMD'] [--] PROGRAM [ARG...]
 *
 * Every system call entry of PROGRAM and of all its children (fork, vfork, clone, with or without shared memory)
 * gets a number: 1 is the first one after PROGRAM's own execve. --at NAME:K means the Kth call of that name, with
 * --where of those alone whose argument A (1 to 6) is that number, or points to that text. --own leaves out the calls
 * of children once they have executed another program (PROGRAM may do so and stays counted), and --others counts those
 * alone. --to-point: calls after the action are neither counted nor stopped at, which is faster.
 *
 * ACTION, carried out once, at the call named by --at, before the kernel looks at it:
 *   --count         nothing; the default: only count
 *   --run 'CMD'     run CMD with sh; no tracee makes or completes a system call meanwhile
 *   --kill          SIGKILL every tracee
 *   --kill-main     SIGKILL PROGRAM itself, leave its children alone
 *   --fail ERRNO    the call returns -ERRNO (a number or EIO, ENOMEM, ...) without running; exit and
 *                   rt_sigreturn have no result and are let through
 *   --return N      the call returns N without running
 * --each 'CMD'      run CMD at every call instead; with --at NAME, at every one of that name
 *
 * CMD's environment: AT_PID (the caller), AT_MAIN_PID, AT_SYSCALL (the call's number in this count), AT_NAME.
 * Its output goes to --run-output (appended), or nowhere.
 * --report FILE gets one line when all is over: "TOTAL REACHED NAME": how many calls there were, 1 or 0, and the name
 * of the call that --at met. --log FILE gets one line per call: number, pid, name, six arguments. --timeout kills
 * every tracee that still is there after so long; the exit status is 124 then.
 *
 * stdin, stdout, stderr and the exit status are PROGRAM's own (128+N when a signal ended it); 125 when this program
 * itself failed. When this program dies, every tracee dies.
 */
#define _GNU_SOURCE
#include "tracer_options.h"

static _Noreturn void usage(const char *why)
{
        fprintf(stderr,
                "at-syscall: %s\nusage: at-syscall [--report FILE] [--log FILE] [--run-output FILE] [--at N|NAME[:K]"
                " [--where A=VALUE]...] [--own|--others] [--to-point] [--timeout SECONDS] [--count|--run CMD|--kill|"
                "--kill-main|--fail ERRNO|--return N] [--each CMD] [--] PROGRAM [ARG...]\n",
                why);
        exit(125);
}

/* "3=0x802" or "2=/dev/loop3": a number, or a text. */
static void parse_where(const char *text)
{
        struct where *where = &opt.where[opt.where_len];
        char *end;

        if (opt.where_len == ARRAY_LEN(opt.where) || text[0] < '1' || text[0] > '6' || text[1] != '=')
                usage("--where A=VALUE, A from 1 to 6, four times at most");
        opt.where_len++;
        where->argument = text[0] - '1';
        where->number = strtoull(text + 2, &end, 0);
        where->text = end == text + 2 || *end != '\0' ? text + 2 : NULL;
}

static void parse(int argc, char **argv)
{
        int i;

        for (i = 1; i < argc && argv[i][0] == '-'; i++) {
                const char *a = argv[i];
                if (strcmp(a, "--") == 0) {
                        i++;
                        break;
                }
                if (parse_action(argc, argv, &i))
                        continue;
                if (strcmp(a, "--report") == 0) {
                        opt.report_path = value(argc, argv, &i);
                } else if (strcmp(a, "--log") == 0) {
                        opt.log = fopen(value(argc, argv, &i), "we");
                        if (!opt.log)
                                die("--log");
                } else if (strcmp(a, "--at") == 0) {
                        parse_at((char *)value(argc, argv, &i));
                } else if (strcmp(a, "--where") == 0) {
                        parse_where(value(argc, argv, &i));
                } else if (strcmp(a, "--return") == 0) {
                        opt.action = ACTION_FAIL;
                        opt.result = atol(value(argc, argv, &i));
                } else if (strcmp(a, "--timeout") == 0) {
                        opt.timeout_seconds = atol(value(argc, argv, &i));
                } else if (strcmp(a, "--to-point") == 0) {
                        opt.only_to_point = true;
                } else if (strcmp(a, "--each") == 0) {
                        opt.each = value(argc, argv, &i);
                } else {
                        usage(a);
                }
        }
        if (i >= argc)
                usage("no program");
        opt.argv = argv + i;
}

int main(int argc, char **argv)
{
        parse(argc, argv);
        start();
        if (opt.timeout_seconds > 0)
                set_alarm();
        trace();
        if (opt.report_path) {
                FILE *report = fopen(opt.report_path, "we");
                if (!report)
                        die(opt.report_path);
                fprintf(report, "%ld %d %s\n", run.count, run.reached, run.reached ? run.reached_name : "-");
                fclose(report);
        }
        return run.timed_out ? 124 : run.exit_status;
}
