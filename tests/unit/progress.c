/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/progress.h"

/* What the clock shows: it stands still unless a test moves it. */
static int64_t clock_ms = 1000000;

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
        (void)clock;
        *ret_now = (struct timespec){ .tv_sec = clock_ms / 1000, .tv_nsec = clock_ms % 1000 * 1000000 };
        return 0;
}

/* What standard error is while a test runs, and what was printed there so far. */
static int kept_stderr;
static int reader_fd;

static void take_stderr(int reader, int writer)
{
        kept_stderr = dup(STDERR_FILENO);
        assert_true(dup2(writer, STDERR_FILENO) >= 0 && close(writer) == 0);
        reader_fd = reader;
        assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
}

static void take_pipe(void)
{
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        take_stderr(ends[0], ends[1]);
}

static void take_terminal(void)
{
        int terminal = posix_openpt(O_RDWR | O_NOCTTY);

        assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
        take_stderr(terminal, open(ptsname(terminal), O_RDWR | O_NOCTTY));
}

static const char *printed(void)
{
        static char text[4096];
        ssize_t n = read(reader_fd, text, sizeof text - 1);

        text[n > 0 ? n : 0] = '\0';
        return text;
}

static void give_back(void)
{
        assert_true(dup2(kept_stderr, STDERR_FILENO) >= 0 && close(kept_stderr) == 0 && close(reader_fd) == 0);
}

static void json_is_one_object_on_a_line(void **state)
{
        const char *text;

        (void)state;
        take_pipe();
        progress_begin("volume-delete", "json");
        progress_of("erase", "/dev/vg/a\x1b", 0, 1024);
        progress_of("erase", "/dev/vg/a\x1b", 512, 1024); /* too soon after the first */
        progress_of("erase", "/dev/vg/a\x1b", 1024, 1024);
        progress_of("copy", "a", 7, 0);
        text = printed();
        give_back();
        assert_string_equal(
                text,
                "{\"progress\":{\"program\":\"volume-delete\",\"step\":\"erase\",\"subject\":\"/dev/vg/a\\\\u001b\","
                "\"doneBytes\":0,\"totalBytes\":1024}}\n"
                "{\"progress\":{\"program\":\"volume-delete\",\"step\":\"erase\",\"subject\":\"/dev/vg/a\\\\u001b\","
                "\"doneBytes\":1024,\"totalBytes\":1024}}\n"
                "{\"progress\":{\"program\":\"volume-delete\",\"step\":\"copy\",\"subject\":\"a\",\"doneBytes\":7}}\n");
}

static void a_long_subject_is_cut_between_characters(void **state)
{
        char subject[62 + sizeof "\xc3\xa4"];
        char expected[256];
        const char *text;

        (void)state;
        (void)memset(subject, 'a', 62);
        (void)strcpy(subject + 62, "\xc3\xa4");
        (void)snprintf(expected, sizeof expected,
                       "{\"progress\":{\"program\":\"volume-delete\",\"step\":\"erase\",\"subject\":\"%.62s\","
                       "\"doneBytes\":7}}\n",
                       subject);
        take_pipe();
        progress_begin("volume-delete", "json");
        progress_of("erase", subject, 7, 0);
        text = printed();
        give_back();
        assert_string_equal(text, expected);
}

static void nothing_is_printed_that_was_not_asked_for(void **state)
{
        const char *text;

        (void)state;
        take_pipe();
        progress_begin("volume-delete", NULL);
        progress_of("erase", "a", 0, 1024);
        progress_begin("volume-delete", "none");
        progress_of("erase", "a", 1024, 1024);
        text = printed();
        give_back();
        assert_string_equal(text, "");
}

static void a_terminal_gets_a_bar_after_a_while_and_it_is_taken_away(void **state)
{
        char bar[256];
        const char *end;

        (void)state;
        take_terminal();
        progress_begin("volume-delete", NULL);
        progress_of("wipe", "db", 0, 4096);
        assert_string_equal(printed(), "");
        clock_ms += 499;
        progress_of("wipe", "db", 512, 4096);
        assert_string_equal(printed(), "");
        clock_ms += 701;
        progress_of("wipe", "db", 1024, 4096);
        (void)snprintf(bar, sizeof bar, "%s", printed());
        progress_of("wipe", "db", 4096, 4096);
        end = printed();
        give_back();
        assert_string_equal(bar, "\r\033[Kvolume-delete: wipe db [######                  ] 25% of 4K, 3 s left");
        assert_string_equal(end, "\r\033[K");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(json_is_one_object_on_a_line),
                cmocka_unit_test(a_long_subject_is_cut_between_characters),
                cmocka_unit_test(nothing_is_printed_that_was_not_asked_for),
                cmocka_unit_test(a_terminal_gets_a_bar_after_a_while_and_it_is_taken_away),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
