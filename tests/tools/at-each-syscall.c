/* SPDX-License-Identifier: Apache-2.0 */
/*
 * at-each-syscall - run a program many times, each time with something done to it before another of its system calls.
 *
 *   at-each-syscall [OPTION...] --kill | --kill-main | --fail ERRNO | --run CMD | --count [OPTION...] -- STEP ; STEP ;
 * ...
 *
 * A round is the list of STEPs, of which one is `act`. The first round does nothing to the program; it says how many
 * calls there are, and what is watched is remembered after it. Each further round acts before call --from N, then
 * before every --step Sth, until there is no such call any more. The first round that fails ends all: exit status 1,
 * and what was wrong on stdout. Otherwise one line tells how many points were tried.
 *
 *   --own, --others, --kill, ...   as at-syscall has them
 *   --at NAME[:K],...              these points instead of --from and --step
 *   --reply json|kubelet|plain|any the replies of the programs: one JSON line and an exit status of 0 to 2; the same as
 *                                  the driver has it (stderr and stdout in one, exit status 0); or nothing on success,
 *                                  one line on stderr on failure; or an exit status, and nothing on stderr if it is 0
 *   --failure-status-max 1         a failure of --reply json has this exit status, and not 2
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
#include "tracer.h"

#include <fts.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

enum reply { REPLY_JSON, REPLY_KUBELET, REPLY_PLAIN, REPLY_ANY };
enum outcome { OUTCOME_NONE, OUTCOME_SUCCESS, OUTCOME_FAILURE };
enum { CALLS_MAX = 1 << 17, WATCHES_MAX = 16, VARIABLES_MAX = 16, STEPS_MAX = 64, PATIENCE_MS = 5000 };

struct step {
        enum outcome only_on;
        char *word;
        char **argv; /* up to a NULL */
        int argc;
};

struct watch {
        char *kind, *arg, *before;
};

struct variable {
        char name[16];
        char *value;
        pid_t monitor; /* of a background process */
        long start, step;
        bool counter;
};

struct output {
        char *out, *err; /* as text */
        size_t out_len, err_len;
        int status;
};

/* What the tracing process found, for this one to read. */
struct found {
        bool complete, reached, timed_out;
        long count;
        int status;
        char name[32];
        bool is_libc_start[CALLS_MAX];
};

static struct {
        long from, step, timeout_seconds, failure_status_max;
        char *at[256];
        size_t at_len;
        enum reply reply;
        const char *mine, *not_undone;
        FILE *replies;
        struct step steps[STEPS_MAX];
        size_t steps_len;
        struct watch watches[WATCHES_MAX];
        size_t watches_len;
} plan = { .from = 1, .step = 1, .timeout_seconds = 60, .failure_status_max = 2 };

static struct variable variables[VARIABLES_MAX];
static size_t variables_len;

static struct {
        long number, index, calls;
        bool baseline;
        char *at;
        enum outcome outcome;
        struct watch remembered;
        const struct step *step;
        const char *program; /* that is acted upon */
        char **command;
        struct output acted, last;
        int out_fd, err_fd, in_fd;
} now;

static struct found *found;

static _Noreturn void usage(const char *why)
{
        fprintf(stderr, "at-each-syscall: %s\nusage: at-each-syscall [OPTION...] ACTION -- STEP... (see its source)\n",
                why);
        exit(125);
}

/* ---- what went wrong */

static void show(const char *what, const struct output *o)
{
        printf("%s: exit status %d\n  stdout: %.2000s\n  stderr: %.2000s\n", what, o->status, o->out ? o->out : "",
               o->err ? o->err : "");
}

__attribute__((format(printf, 1, 2))) static bool wrong(const char *format, ...)
{
        va_list ap;

        if (now.baseline)
                printf("with nothing done to it: ");
        else
                printf("at call %s of %ld, %s: ", now.at ? now.at : getenv("N"), now.calls,
                       found->reached ? found->name : "not reached");
        printf("step %td, %s: ", now.step ? now.step - plan.steps + 1 : 0, now.step ? now.step->word : "-");
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        printf("\n");
        for (char **a = now.command; a && *a; a++)
                printf("%s%.300s", a == now.command ? "  command: " : " ", *a);
        printf("\n");
        show("the program that was acted upon", &now.acted);
        show("the last program", &now.last);
        return false;
}

/* ---- variables */

static struct variable *variable(const char *name)
{
        for (size_t i = 0; i < variables_len; i++)
                if (strcmp(variables[i].name, name) == 0)
                        return &variables[i];
        if (variables_len == VARIABLES_MAX)
                die("too many variables");
        struct variable *v = &variables[variables_len++];
        snprintf(v->name, sizeof(v->name), "%s", name);
        return v;
}

static void variable_set(const char *name, const char *value)
{
        struct variable *v = variable(name);

        free(v->value);
        v->value = strdup(value);
        setenv(name, value, 1);
}

static void variable_set_number(const char *name, long value)
{
        char text[32];

        snprintf(text, sizeof(text), "%ld", value);
        variable_set(name, text);
}

/* The text with each @NAME@ of a variable replaced; lives until the round after next ends, which is long enough. */
static char *substitute(const char *text)
{
        static char *kept[1024];
        static size_t next;
        size_t len = 0, room = strlen(text) + VARIABLES_MAX * 512;
        char *result = calloc(1, room);

        if (!result)
                die("calloc");
        while (*text) {
                const struct variable *match = NULL;
                for (size_t i = 0; *text == '@' && i < variables_len && !match; i++) {
                        size_t name_len = strlen(variables[i].name);
                        if (variables[i].value && strncmp(text + 1, variables[i].name, name_len) == 0 &&
                            text[1 + name_len] == '@')
                                match = &variables[i];
                }
                const char *from = match ? match->value : text;
                size_t from_len = match ? strlen(match->value) : 1;
                if (len + from_len >= room)
                        die("an argument is too long");
                memcpy(result + len, from, from_len);
                len += from_len;
                text += match ? strlen(match->name) + 2 : 1;
        }
        free(kept[next]);
        kept[next] = result;
        next = (next + 1) % ARRAY_LEN(kept);
        return result;
}

static char **substitute_all(char **argv)
{
        static char *result[64];
        size_t i = 0;

        for (; argv[i]; i++) {
                if (i + 1 == ARRAY_LEN(result))
                        die("too many arguments");
                result[i] = substitute(argv[i]);
        }
        result[i] = NULL;
        return result;
}

/* ---- what can be watched */

static char *read_all(int fd, size_t *ret_len)
{
        size_t len = 0, room = 1 << 14;
        char *text = malloc(room);

        for (;;) {
                if (!text)
                        die("malloc");
                ssize_t n = read(fd, text + len, room - len - 1);
                if (n < 0)
                        die("read");
                if (n == 0)
                        break;
                len += (size_t)n;
                if (room - len < 4096)
                        text = realloc(text, room *= 2);
        }
        text[len] = '\0';
        if (ret_len)
                *ret_len = len;
        return text;
}

static char *read_mountinfo(const char *pid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%s/mountinfo", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return strdup("(there is no such process)\n");
        char *text = read_all(fd, NULL);
        close(fd);
        return text;
}

static char *look_at_mounts(const char *pid)
{
        char *text = read_mountinfo(pid), *kept = calloc(1, strlen(text) + 1), *save = NULL;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (!plan.mine || !strstr(line, "/bats-run-") || strstr(line, plan.mine))
                        strcat(strcat(kept, line), "\n");
        free(text);
        return kept;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
        return strcmp((*a)->fts_name, (*b)->fts_name);
}

static char *look_at_tree(char *dir)
{
        char *text = NULL;
        size_t len;
        FILE *into = open_memstream(&text, &len);
        FTS *fts = fts_open((char *[]){ dir, NULL }, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, by_name);

        if (!into || !fts)
                die("fts_open");
        for (FTSENT *e; (e = fts_read(fts));)
                if (e->fts_info != FTS_DP && e->fts_info != FTS_NS && e->fts_info != FTS_ERR)
                        fprintf(into, "%s %o %u:%u\n", e->fts_path, e->fts_statp->st_mode, e->fts_statp->st_uid,
                                e->fts_statp->st_gid);
        fts_close(fts);
        fclose(into);
        return text;
}

static char *look_at_loops(const char *prefix)
{
        char *text = NULL, path[64], file[4096];
        size_t len;
        FILE *into = open_memstream(&text, &len);

        FTS *fts = fts_open((char *[]){ "/sys/block", NULL }, FTS_PHYSICAL | FTS_NOSTAT | FTS_NOCHDIR, by_name);
        if (!into || !fts)
                die("fts_open");
        for (FTSENT *e; (e = fts_read(fts));) {
                if (e->fts_level != 1 || strncmp(e->fts_name, "loop", 4) != 0)
                        continue;
                snprintf(path, sizeof(path), "/sys/block/%.20s/loop/backing_file", e->fts_name);
                FILE *from = fopen(path, "re");
                if (from && fgets(file, sizeof(file), from) && strncmp(file, prefix, strlen(prefix)) == 0)
                        fprintf(into, "%s %s", e->fts_name, file);
                if (from)
                        fclose(from);
        }
        fts_close(fts);
        fclose(into);
        return text;
}

static char *look(const struct watch *w)
{
        if (strcmp(w->kind, "mounts") == 0)
                return look_at_mounts(w->arg);
        return strcmp(w->kind, "tree") == 0 ? look_at_tree(w->arg) : look_at_loops(w->arg);
}

static void show_lines_not_in(const char *sign, const char *text, const char *other)
{
        char *copy = strdup(text), *all, *save = NULL, *wanted;

        if (!copy || asprintf(&all, "\n%s", other) < 0)
                die("malloc");
        for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (asprintf(&wanted, "\n%s\n", line) < 0)
                        die("malloc");
                if (!strstr(all, wanted))
                        printf("%s %s\n", sign, line);
                free(wanted);
        }
        free(all);
        free(copy);
}

static bool is_unchanged(const struct watch *w)
{
        char *after = look(w);
        bool same = strcmp(w->before, after) == 0;

        if (!same) {
                wrong("%s %s: not as before", w->kind, w->arg);
                show_lines_not_in("<", w->before, after);
                show_lines_not_in(">", after, w->before);
        }
        free(after);
        return same;
}

static size_t count_lines(const char *text)
{
        size_t count = 0;

        for (; *text; text++)
                count += *text == '\n';
        return count;
}

/* What mountinfo escapes, in place. */
static void decode(char *path)
{
        char *to = path;

        for (; *path; path++) {
                if (path[0] == '\\' && path[1] >= '0' && path[1] <= '3' && path[2] && path[3]) {
                        *to++ = (char)((path[1] - '0') * 64 + (path[2] - '0') * 8 + (path[3] - '0'));
                        path += 3;
                } else {
                        *to++ = *path;
                }
        }
        *to = '\0';
}

static long count_mounts(const char *pid, const char *target)
{
        char *text = read_mountinfo(pid), *save = NULL, at[4096];
        long count = 0;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1)
                        continue;
                decode(at);
                count += strcmp(at, target) == 0;
        }
        free(text);
        return count;
}

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

static enum outcome outcome_of(const struct output *o)
{
        if (plan.not_undone && strstr(o->err, plan.not_undone))
                return OUTCOME_NONE;
        if (plan.reply >= REPLY_PLAIN)
                return o->status == 0                     ? OUTCOME_SUCCESS
                       : o->status == 1 || o->status == 2 ? OUTCOME_FAILURE
                                                          : OUTCOME_NONE;
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
                return outcome_of(o) == OUTCOME_FAILURE;
        if (plan.reply == REPLY_PLAIN)
                return (o->status == 1 || o->status == 2) && is_plain_complaint(o);
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

/* ---- steps */

static bool do_act(char **argv)
{
        int status;

        empty_outputs();
        now.command = argv;
        now.program = argv[0];
        found->complete = false;
        found->reached = false;
        pid_t pid = fork();
        if (pid < 0)
                die("fork");
        if (pid == 0)
                trace_one(argv);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        die("waitpid");
        take_output(&now.acted, found->status);
        if (!found->complete)
                return wrong("the tracer died");
        now.outcome = outcome_of(&now.acted);
        variable_set("NAME", found->reached ? found->name : "-");
        variable_set_number("STATUS", now.acted.status);
        variable_set("REPLY", now.acted.out);
        if (plan.replies && now.acted.out_len > 0 && !(is_start_of_libc() && !is_json_line(&now.acted)))
                fprintf(plan.replies, "%ld\t%s\t%d\t%s%s", now.number, found->name, now.acted.status, now.acted.out,
                        strchr(now.acted.out, '\n') ? "" : "\n");
        if (plan.reply < REPLY_PLAIN)
                note_device(&now.acted);
        return check_reply();
}

static bool do_call(char **argv)
{
        run_program(argv);
        if (!is_success(&now.last))
                return wrong("it should have succeeded");
        if (plan.reply < REPLY_PLAIN)
                note_device(&now.last);
        return true;
}

static bool do_sh(char **argv)
{
        static char *command[] = { "/bin/sh", "-c", NULL, NULL };

        command[2] = argv[0];
        int status = run_program(command);

        return status == 0 || wrong("exit status %d", status);
}

static bool do_mounts(char **argv)
{
        long count = count_mounts(argv[0], argv[1]);

        return count == atol(argv[2]) || wrong("%ld mounts at %s, not %s", count, argv[1], argv[2]);
}

/* Whoever asked the device something just then may keep it for a moment. */
static bool do_loops(char **argv)
{
        size_t count = 0, expected = (size_t)atol(argv[1]);

        for (long waited = 0; waited <= PATIENCE_MS; waited += 2) {
                char *text = look_at_loops(argv[0]);
                count = count_lines(text);
                free(text);
                if (count <= expected)
                        break;
                sleep_ms(2);
        }
        return count == expected || wrong("%zu loop devices over %s, not %zu", count, argv[0], expected);
}

static bool do_size(char **argv)
{
        struct stat st;

        if (stat(argv[0], &st) < 0)
                return wrong("%s: %s", argv[0], strerror(errno));
        return st.st_size == atol(argv[1]) || wrong("%s has %ld bytes, not %s", argv[0], (long)st.st_size, argv[1]);
}

static bool do_contains(char **argv)
{
        int fd = open(argv[0], O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return wrong("%s: %s", argv[0], strerror(errno));
        char *text = read_all(fd, NULL);
        bool contains = strstr(text, argv[1]);
        close(fd);
        if (!contains)
                wrong("%s lacks %s: %.500s", argv[0], argv[1], text);
        free(text);
        return contains;
}

static bool do_same(char **argv)
{
        (void)argv;
        if (!no_process_is_left())
                return false;
        for (size_t i = 0; i < plan.watches_len && !now.baseline; i++)
                if (!is_unchanged(&plan.watches[i]))
                        return false;
        return true;
}

static bool do_remember(char **argv)
{
        free(now.remembered.before);
        now.remembered.kind = argv[0];
        now.remembered.arg = argv[1];
        now.remembered.before = look(&now.remembered);
        return true;
}

static bool do_unchanged(char **argv)
{
        (void)argv;
        return is_unchanged(&now.remembered);
}

static bool do_background(char **argv)
{
        int ends[2];
        char line[64] = "";

        if (pipe2(ends, O_CLOEXEC) < 0)
                die("pipe2");
        pid_t pid = fork();
        if (pid < 0)
                die("fork");
        if (pid == 0) {
                if (dup2(now.in_fd, 0) < 0 || dup2(ends[1], 1) < 0)
                        _exit(125);
                execvp(argv[1], argv + 1);
                _exit(127);
        }
        close(ends[1]);
        FILE *from = fdopen(ends[0], "r");
        bool told = from && fgets(line, sizeof(line), from);
        fclose(from);
        line[strcspn(line, "\n")] = '\0';
        variable(argv[0])->monitor = pid;
        variable_set(argv[0], line);
        return told || wrong("%s told no pid", argv[1]);
}

static void end_background(struct variable *v)
{
        if (v->monitor > 0) {
                if (v->value && atol(v->value) > 1)
                        kill((pid_t)atol(v->value), SIGKILL);
                (void)waitpid(v->monitor, NULL, 0);
        }
        v->monitor = 0;
}

static bool do_end(char **argv)
{
        end_background(variable(argv[0]));
        return true;
}

static bool do_stdin(char **argv)
{
        size_t len = strlen(argv[0]);

        if (ftruncate(now.in_fd, 0) < 0 || pwrite(now.in_fd, argv[0], len, 0) != (ssize_t)len)
                die("stdin");
        return true;
}

static const struct {
        const char *word;
        int argc_min, argc_max;
        bool (*carry_out)(char **argv);
} words[] = {
        { "act", 1, 1000, do_act },
        { "call", 1, 1000, do_call },
        { "sh", 1, 1, do_sh },
        { "mounts", 3, 3, do_mounts },
        { "loops", 2, 2, do_loops },
        { "size", 2, 2, do_size },
        { "contains", 2, 2, do_contains },
        { "same", 0, 0, do_same },
        { "remember", 2, 2, do_remember },
        { "unchanged", 0, 0, do_unchanged },
        { "background", 2, 1000, do_background },
        { "end", 1, 1, do_end },
        { "stdin", 1, 1, do_stdin },
};

static bool carry_out(const struct step *s)
{
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (strcmp(words[i].word, s->word) == 0)
                        return words[i].carry_out(substitute_all(s->argv));
        return false;
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
        now.index++;
        return true;
}

/* ---- the sweep */

static long tried;

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
                tried += found->reached;
                /* Where a program waits for something, it makes more calls one time and fewer another. */
                if (unreached == 2 || (unreached > 0 && now.number >= now.calls))
                        return true;
        }
}

static bool sweep_points(void)
{
        for (size_t i = 0; i < plan.at_len; i++) {
                now.at = plan.at[i];
                now.number = (long)i + 1;
                if (!do_round())
                        return false;
                tried += found->reached;
        }
        return tried > (long)plan.at_len / 2 || wrong("only %ld of %zu points were there", tried, plan.at_len);
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
        return plan.at_len > 0 ? sweep_points() : sweep_numbers();
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
        int i;

        for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
                const char *a = argv[i];
                if (parse_action(argc, argv, &i))
                        continue;
                if (strcmp(a, "--from") == 0)
                        plan.from = atol(value(argc, argv, &i));
                else if (strcmp(a, "--step") == 0)
                        plan.step = atol(value(argc, argv, &i));
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
                else if (strcmp(a, "--at") == 0)
                        for (char *at = strtok((char *)value(argc, argv, &i), ","); at; at = strtok(NULL, ",")) {
                                if (plan.at_len == ARRAY_LEN(plan.at))
                                        usage("too many points");
                                plan.at[plan.at_len++] = at;
                        }
                else if (strcmp(a, "--replies") == 0) {
                        plan.replies = fopen(value(argc, argv, &i), "we");
                        if (!plan.replies)
                                die("--replies");
                } else
                        usage(a);
        }
        for (i++; i < argc;)
                parse_step(argv, &i, argc);
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
        if (good && tried == 0)
                good = (printf("no point was tried\n"), false);
        double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
        if (good)
                printf("points tried %ld (every %ld. of %ld calls), %.1f ms each\n", tried, plan.step, now.calls,
                       ms / (double)(tried + 1));
        return good ? 0 : 1;
}
