/* SPDX-License-Identifier: Apache-2.0 */
/* at-each-syscall: runs programs, traced or not, and judges their replies. */
#pragma once

#include "sweep_watch.h"

/* ---- processes */

static void sleep_ms(long ms)
{
        struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

        nanosleep(&t, NULL);
}

static bool is_background(pid_t pid)
{
        for (size_t i = 0; i < variables_len; i++)
                if (variables[i].monitor == pid)
                        return true;
        return false;
}

/* The processes that programs left become this one's children: those that run still, in text; none is "". */
static void find_left(char text[256])
{
        char path[64];
        int pid;

        text[0] = '\0';
        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        FILE *children = fopen(path, "re");
        if (!children)
                die(path);
        while (fscanf(children, "%d", &pid) == 1)
                if (!is_background(pid) && waitpid(pid, NULL, WNOHANG) == 0)
                        snprintf(text + strlen(text), 256 - strlen(text), " %d", pid);
        fclose(children);
}

static void kill_what_is_left(void)
{
        char left[256], *save = NULL;

        do {
                find_left(left);
                for (char *pid = strtok_r(left, " ", &save); pid; pid = strtok_r(NULL, " ", &save))
                        if (kill((pid_t)atol(pid), SIGKILL) == 0)
                                (void)waitpid((pid_t)atol(pid), NULL, 0);
        } while (left[0]);
}

static bool no_process_is_left(void)
{
        char left[256];

        for (long waited = 0; waited <= PATIENCE_MS; waited++) {
                find_left(left);
                if (!left[0])
                        return true;
                sleep_ms(1);
        }
        return wrong("processes are left:%s", left);
}

static void empty_outputs(void)
{
        if (ftruncate(now.out_fd, 0) < 0 || ftruncate(now.err_fd, 0) < 0)
                die("ftruncate");
        lseek(now.out_fd, 0, SEEK_SET);
        lseek(now.err_fd, 0, SEEK_SET);
        lseek(now.in_fd, 0, SEEK_SET);
}

static void take_output(struct output *o, int status)
{
        free(o->out);
        free(o->err);
        lseek(now.out_fd, 0, SEEK_SET);
        lseek(now.err_fd, 0, SEEK_SET);
        o->out = read_all(now.out_fd, &o->out_len);
        o->err = read_all(now.err_fd, &o->err_len);
        o->status = status;
}

/* In the child that becomes a program, or traces one. */
static void redirect(void)
{
        int err_fd = plan.reply == REPLY_KUBELET ? now.out_fd : now.err_fd;

        if (dup2(now.in_fd, 0) < 0 || dup2(now.out_fd, 1) < 0 || dup2(err_fd, 2) < 0)
                _exit(125);
}

static volatile sig_atomic_t running;

static void kill_running(int sig)
{
        (void)sig;
        kill(running, SIGKILL);
}

/* run_program() - exit status as a shell has it. */
static int run_program(char **argv)
{
        int status;

        empty_outputs();
        now.command = argv;
        pid_t pid = fork();
        if (pid < 0)
                die("fork");
        if (pid == 0) {
                redirect();
                execvp(argv[0], argv);
                fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
                _exit(127);
        }
        running = pid;
        alarm((unsigned)plan.timeout_seconds);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        die("waitpid");
        alarm(0);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        take_output(&now.last, status);
        return status;
}

/* Which of the program's calls are libc's, before main() of each program that it executes: without those it cannot
 * begin, and need not say why. */
static void note_call(long number, pid_t tid, const char *name)
{
        static const char *const of_libc[] = { "brk",       "arch_prctl", "set_tid_address", "set_robust_list",
                                               "rseq",      "prlimit64",  "readlink",        "readlinkat",
                                               "getrandom", "mmap",       "mprotect" };
        static bool starting = true;
        bool libc = false;

        if (number >= CALLS_MAX || tid != run.main_pid)
                return;
        for (size_t i = 0; i < ARRAY_LEN(of_libc); i++)
                libc |= strcmp(of_libc[i], name) == 0;
        starting &= libc;
        found->is_libc_start[number] = starting;
        if (strcmp(name, "mprotect") == 0)
                starting = false;
        if (strcmp(name, "execve") == 0)
                starting = true;
}

static void trace_one(char **argv)
{
        redirect();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* that cannot work in a process that is traced already */
        opt.argv = argv;
        opt.only_to_point = true;
        opt.timeout_seconds = plan.timeout_seconds;
        if (now.baseline) {
                opt.at_number = -1;
                opt.on_call = note_call;
        } else if (now.at) {
                parse_at(strdup(now.at));
        } else {
                opt.at_number = now.number;
        }
        start();
        set_alarm();
        trace();
        found->reached = run.reached;
        found->timed_out = run.timed_out;
        found->count = run.count;
        found->status = run.exit_status;
        memcpy(found->name, run.reached_name, sizeof(found->name));
        found->complete = true;
        _exit(0);
}

/* ---- replies */

static bool is_one_line(const char *text, size_t len)
{
        return len > 1 && strlen(text) == len && strchr(text, '\n') == text + len - 1;
}

static bool begins(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_json_line(const struct output *o)
{
        return is_one_line(o->out, o->out_len) && begins(o->out, "{\"status\":\"") && o->out[o->out_len - 2] == '}';
}

static bool is_plain_complaint(const struct output *o)
{
        const char *program = strrchr(now.program, '/');
        size_t len = strlen(program ? ++program : (program = now.program));

        if (o->out_len != 0 || !is_one_line(o->err, o->err_len) || strncmp(o->err, program, len) != 0 ||
            strncmp(o->err + len, ": ", 2) != 0)
                return false;
        for (const unsigned char *c = (unsigned char *)o->err; c[1]; c++)
                if (*c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f))
                        return false;
        return true;
}

static bool is_plain_failure(const struct output *o)
{
        return o->status >= 1 && o->status <= plan.failure_status_max;
}

static enum outcome outcome_of(const struct output *o)
{
        if (plan.not_undone && strstr(o->err, plan.not_undone))
                return OUTCOME_NONE;
        if (plan.reply >= REPLY_PLAIN)
                return o->status == 0 ? OUTCOME_SUCCESS : is_plain_failure(o) ? OUTCOME_FAILURE : OUTCOME_NONE;
        return begins(o->out, "{\"status\":\"Success\"")   ? OUTCOME_SUCCESS
               : begins(o->out, "{\"status\":\"Failure\"") ? OUTCOME_FAILURE
                                                           : OUTCOME_NONE;
}

static bool is_success(const struct output *o)
{
        if (plan.reply >= REPLY_PLAIN)
                return o->status == 0 && o->err_len == 0 && (plan.reply == REPLY_ANY || o->out_len == 0);
        return o->status == 0 && o->err_len == 0 && outcome_of(o) == OUTCOME_SUCCESS && is_json_line(o);
}

static bool is_failure(const struct output *o)
{
        if (plan.reply == REPLY_ANY)
                return is_plain_failure(o);
        if (plan.reply == REPLY_PLAIN)
                return is_plain_failure(o) && is_plain_complaint(o);
        if (o->err_len != 0 || outcome_of(o) != OUTCOME_FAILURE || !is_json_line(o))
                return false;
        return plan.reply == REPLY_KUBELET ? o->status == 0 : o->status >= 1 && o->status <= plan.failure_status_max;
}

/* What a caller may find after a program that could not do its work: nothing, or a whole reply. */
static bool is_clean(const struct output *o)
{
        if (plan.reply == REPLY_ANY)
                return true;
        if (plan.reply == REPLY_PLAIN)
                return o->out_len == 0 && (o->err_len == 0 || is_plain_complaint(o));
        return o->out_len == 0 || is_json_line(o);
}

static void note_device(const struct output *o)
{
        char device[256];
        const char *at = strstr(o->out, "\"device\":\"");

        if (at && sscanf(at, "\"device\":\"%255[^\"]", device) == 1)
                variable_set("DEVICE", device);
}

static bool is_start_of_libc(void)
{
        return opt.action == ACTION_FAIL && !now.at && now.number < CALLS_MAX && found->is_libc_start[now.number];
}

static bool check_reply(void)
{
        const struct output *o = &now.acted;

        if (found->timed_out)
                return wrong("it did not end in %ld s", plan.timeout_seconds);
        if (now.baseline || !found->reached)
                return is_success(o) || wrong("it failed with nothing done to it");
        if (opt.action == ACTION_KILL || opt.action == ACTION_KILL_MAIN)
                return is_clean(o) || wrong("a reply that is not whole after a kill");
        if (opt.action == ACTION_RUN && o->status > 128) /* CMD killed it */
                return is_clean(o) || wrong("a reply that is not whole after a kill");
        if (is_start_of_libc())
                return plan.reply != REPLY_JSON || is_clean(o) || wrong("not a clean reply");
        /* What cannot be written is nobody's to tell. */
        if (opt.action == ACTION_FAIL && begins(found->name, "write") && o->out_len == 0)
                return true;
        return is_success(o) || is_failure(o) || wrong("neither a success nor a clean failure");
}
