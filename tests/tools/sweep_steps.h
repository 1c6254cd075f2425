/* SPDX-License-Identifier: Apache-2.0 */
/* at-each-syscall: the steps of a round, a function each. */
#pragma once

#include "sweep_run.h"

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
