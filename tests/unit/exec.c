/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "process/exec.h"
#include "process/exec_helper.h"

static void run(const char *script, struct exec_end *ret_end)
{
        const char *const arguments[] = { "sh", "-c", script, NULL };
        /* privileged: there are no capabilities to give up */
        const struct exec command = {
                .name = "sh", .arguments = arguments, .timeout_seconds = 60, .privileged = true, .report_fd = -EBADF
        };

        *ret_end = (struct exec_end){};
        exec_run(&command, ret_end);
}

static void a_short_output_is_kept_whole(void **state)
{
        struct exec_end end;

        (void)state;
        run("echo one; echo two >&2; exit 3", &end);
        assert_int_equal(end.errnum, 0);
        assert_int_equal(end.status, 3);
        assert_string_equal(end.output, "one two");
}

static void of_a_long_output_the_first_lines_and_the_last_are_kept(void **state)
{
        struct exec_end end;

        (void)state;
        run("echo the reason; i=0; while [ $i -lt 500 ]; do echo usage $i; i=$((i + 1)); done; echo the end; exit 1",
            &end);
        assert_int_equal(end.errnum, 0);
        assert_int_equal(strncmp(end.output, "the reason usage 0 ", 19), 0);
        assert_non_null(strstr(end.output, " ... "));
        assert_string_equal(end.output + strlen(end.output) - 18, " usage 499 the end");
        assert_true(strlen(end.output) < sizeof end.output);
}

static void an_output_without_line_ends_is_cut_in_the_middle(void **state)
{
        struct exec_end end;

        (void)state;
        run("printf %0399d 1; printf %0100d 2", &end);
        assert_int_equal(strlen(end.output), sizeof end.output - 1);
        assert_non_null(strstr(end.output, "0 ... 0"));
        assert_int_equal(end.output[sizeof end.output - 2], '2');
}

static void a_command_that_is_killed_says_what_it_printed_if_anything(void **state)
{
        struct exec_end end;
        struct error error;

        (void)state;
        run("kill -9 $$", &end);
        assert_int_equal(exec_check("sh", &end, 60, &error), -ECANCELED);
        assert_string_equal(error_why(&error), "sh was killed by a signal");
        run("echo half; kill -9 $$", &end);
        assert_int_equal(exec_check("sh", &end, 60, &error), -ECANCELED);
        assert_string_equal(error_why(&error), "sh was killed by a signal: half");
}

/* What a program's report is taken for, by a helper as lvm has one. */
static int report_of(const char *script, json_t **ret_report, struct error *error)
{
        static const char *const known[] = { "-c", NULL };
        static const struct exec_json shell = { .name = "sh", .known = known };
        struct exec_helper helper = { .name = "the shell" };
        int fds[2];
        pid_t pid;
        int r;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                fd_close(&fds[0]);
                exec_json_serve(fds[1], &shell);
                _exit(0);
        }
        fd_close(&fds[1]);
        helper.fd = fds[0];
        r = exec_json_run(&helper, &shell, (const char *const[]){ "-c", script, NULL }, ret_report, error);
        fd_close(&fds[0]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        return r;
}

static void a_report_is_json(void **state)
{
        json_t *report = NULL;
        struct error error;

        (void)state;
        assert_int_equal(report_of("echo '{\"report\":[{\"vg\":[]}]}'", &report, &error), 0);
        assert_true(json_is_array(json_object_get(report, "report")));
        json_decref(report);
        assert_int_equal(report_of("echo no", &report, &error), -EPROTO);
        assert_int_equal(report_of("true", &report, &error), -EPROTO);
}

static void a_report_with_a_key_twice_is_refused(void **state)
{
        json_t *report = NULL;
        struct error error;

        (void)state;
        assert_int_equal(report_of("echo '{\"report\":[],\"report\":[{\"vg\":[]}]}'", &report, &error), -EPROTO);
        assert_null(report);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_short_output_is_kept_whole),
                cmocka_unit_test(of_a_long_output_the_first_lines_and_the_last_are_kept),
                cmocka_unit_test(an_output_without_line_ends_is_cut_in_the_middle),
                cmocka_unit_test(a_command_that_is_killed_says_what_it_printed_if_anything),
                cmocka_unit_test(a_report_is_json),
                cmocka_unit_test(a_report_with_a_key_twice_is_refused),
        };

        return cmocka_run_group_tests_name("an external program", tests, NULL, NULL);
}
