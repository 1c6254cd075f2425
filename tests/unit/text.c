/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <limits.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

static void copying_cuts_and_says_so(void **state)
{
        char small[4];

        (void)state;
        assert_true(text_copy(small, sizeof small, "abc"));
        assert_string_equal(small, "abc");
        assert_false(text_copy(small, sizeof small, "abcd"));
        assert_string_equal(small, "abc");
}

static void numbers_are_whole_decimal_and_bounded(void **state)
{
        uint64_t number;

        (void)state;
        assert_true(text_number("0", 10, &number));
        assert_int_equal(number, 0);
        assert_true(text_number("18446744073709551615", UINT64_MAX, &number));
        assert_true(number == UINT64_MAX);
        assert_false(text_number("18446744073709551616", UINT64_MAX, &number));
        assert_true(text_number("10", 10, &number));
        assert_false(text_number("11", 10, &number));
        assert_false(text_number("", 10, &number));
        assert_false(text_number("-1", 10, &number));
        assert_false(text_number("+1", 10, &number));
        assert_false(text_number(" 1", 10, &number));
        assert_false(text_number("1 ", 10, &number));
        assert_false(text_number("0x1", 10, &number));
}

static void a_path_lies_in_a_directory_by_whole_components(void **state)
{
        (void)state;
        assert_true(text_lies_in("/srv", "/srv"));
        assert_true(text_lies_in("/srv/a", "/srv"));
        assert_false(text_lies_in("/srvother", "/srv"));
        assert_false(text_lies_in("/sr", "/srv"));
        assert_true(text_lies_in("/anything", "/"));
}

static void dot_dot_is_seen_as_a_component_only(void **state)
{
        (void)state;
        assert_true(text_climbs("/a/../b"));
        assert_true(text_climbs(".."));
        assert_true(text_climbs("/a/.."));
        assert_false(text_climbs("/a/..b"));
        assert_false(text_climbs("/a../b"));
        assert_false(text_climbs("/..."));
}

static void normal_paths_have_single_slashes_and_no_dots(void **state)
{
        char path[PATH_MAX];
        char name[NAME_MAX + 3];
        char *whole = malloc(PATH_MAX + 2);

        (void)state;
        assert_int_equal(text_path_normal("//a/./b///c/", path), 0);
        assert_string_equal(path, "/a/b/c");
        assert_int_equal(text_path_normal("/", path), 0);
        assert_string_equal(path, "/");
        assert_int_equal(text_path_normal("/a/../b", path), 0);
        assert_string_equal(path, "/a/../b");
        assert_int_equal(text_path_normal("a", path), -EINVAL);
        assert_int_equal(text_path_normal("", path), -EINVAL);
        memset(name, 'x', sizeof name);
        name[0] = '/';
        name[NAME_MAX + 2] = '\0'; /* one more than a component may have */
        assert_int_equal(text_path_normal(name, path), -ENAMETOOLONG);
        name[NAME_MAX + 1] = '\0';
        assert_int_equal(text_path_normal(name, path), 0);
        for (int i = 0; i < PATH_MAX; i++)
                whole[i] = i % 2 == 0 ? '/' : 'y';
        whole[PATH_MAX] = '\0';
        assert_int_equal(text_path_normal(whole, path), -ENAMETOOLONG);
        free(whole);
}

static void control_characters_become_question_marks(void **state)
{
        char text[] = "a\033[31mb\177\n\302\233c\303\244";

        (void)state;
        text_make_printable(text);
        assert_null(strpbrk(text, "\033\177\n\233"));
        assert_non_null(strstr(text, "\303\244"));
        assert_int_equal(text[0], 'a');
}

static void words_are_found_whole(void **state)
{
        static const char *const words[] = { "one", "two", NULL };

        (void)state;
        assert_true(text_among("two", words));
        assert_false(text_among("tw", words));
        assert_false(text_among("", words));
        assert_true(text_same(NULL, NULL));
        assert_false(text_same("", NULL));
        assert_true(text_starts("prefix", "pre"));
        assert_false(text_starts("pr", "pre"));
        assert_true(text_ends("file.json", ".json"));
        assert_false(text_ends("json", ".json"));
        assert_int_equal(text_count("a,b,,c", ','), 3);
}

static void every_errno_has_words(void **state)
{
        struct error error;

        (void)state;
        error_set(&error, 524, "fsconfig", "server:/export"); /* the kernel's ENOTSUPP */
        assert_string_equal(error_why(&error), "Unknown error 524");
        assert_string_equal(error_text(EPERM), "Operation not permitted");
}

/* Its values stand in file names and lock offsets: they may never change. */
static void the_hash_is_fnv_1a(void **state)
{
        (void)state;
        assert_true(hash_bytes(HASH_SEED, "", 0) == 0xcbf29ce484222325ULL);
        assert_true(hash_bytes(HASH_SEED, "a", 1) == 0xaf63dc4c8601ec8cULL);
        assert_true(hash_bytes(HASH_SEED, "foobar", 6) == 0x85944171f73967e8ULL);
        assert_true(hash_bytes(hash_bytes(HASH_SEED, "foo", 3), "bar", 3) == 0x85944171f73967e8ULL);
}

static void assert_escapes(const char *text, const char *expected, size_t size)
{
        char buffer[64];

        assert_true(text_copy(buffer, sizeof buffer, text));
        text_escape(buffer, size);
        assert_string_equal(buffer, expected);
}

static void what_a_terminal_would_not_show_is_escaped(void **state)
{
        (void)state;
        assert_escapes("/data \\ ~", "/data \\ ~", 64);
        assert_escapes("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 64);
        assert_escapes("a\x1b[2J\n\x7f", "a\\u001b[2J\\u000a\\u007f", 64);
        assert_escapes("\xc2\x9b"
                       "31m\xc2\xa0",
                       "\\u009b31m\xc2\xa0", 64);
        assert_escapes("\xe2\x80\xaetxt\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8",
                       "\\u202etxt\\u2066\\u200f\\u061c\\u2028", 64);
        assert_escapes("\x9b\xff\xe2\x80", "\\x9b\\xff\\xe2\\x80", 64);
        assert_escapes("\xe0\x82\x9b\xf8\x80", "\\xe0\\x82\\x9b\\xf8\\x80", 64); /* too long; no such byte */
}

static void what_is_escaped_is_cut_between_characters(void **state)
{
        (void)state;
        assert_escapes("a\n\n", "a\\u000a", 13);
        assert_escapes("a\n\n", "a\\u000a\\u000a", 14);
        assert_escapes("\n\n\n", "", 6);
        assert_escapes("\n\n\n", "\\u000a", 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(copying_cuts_and_says_so),
                cmocka_unit_test(numbers_are_whole_decimal_and_bounded),
                cmocka_unit_test(a_path_lies_in_a_directory_by_whole_components),
                cmocka_unit_test(dot_dot_is_seen_as_a_component_only),
                cmocka_unit_test(what_a_terminal_would_not_show_is_escaped),
                cmocka_unit_test(what_is_escaped_is_cut_between_characters),
                cmocka_unit_test(normal_paths_have_single_slashes_and_no_dots),
                cmocka_unit_test(control_characters_become_question_marks),
                cmocka_unit_test(words_are_found_whole),
                cmocka_unit_test(every_errno_has_words),
                cmocka_unit_test(the_hash_is_fnv_1a),
        };

        return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
