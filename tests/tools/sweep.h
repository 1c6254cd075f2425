/* SPDX-License-Identifier: Apache-2.0 */
/* at-each-syscall: its plan, where it is, what it says when something is wrong, and its variables. */
#pragma once

#include "tracer_options.h"

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
        char *at[4096];
        size_t at_len;
        long points[512];
        size_t points_len;
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
