/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "process/exec.h"

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_short_output_is_kept_whole),
                cmocka_unit_test(of_a_long_output_the_first_lines_and_the_last_are_kept),
                cmocka_unit_test(an_output_without_line_ends_is_cut_in_the_middle),
                cmocka_unit_test(a_command_that_is_killed_says_what_it_printed_if_anything),
        };

        return cmocka_run_group_tests_name("an external program", tests, NULL, NULL);
}
