/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_value.h"

static int parse(const char *text, struct error *error)
{
        json_t *value = NULL;
        int r;

        *error = (struct error){};
        r = json_text_parse(text, strlen(text), &value, error);
        assert_true(r == 0 || strcmp(error->operation, OPERATION_PARSE) == 0);
        json_decref(value);
        return r;
}

static void what_is_no_json_is_refused_with_line_and_column(void **state)
{
        struct error error;

        (void)state;
        assert_refused(parse("{\"container\": , }", &error), EINVAL, error, "line 1, column 15");
        assert_refused(parse("{\n\"a\": 1,\n x}", &error), EINVAL, error, "line 3");
        assert_refused(parse("{\"a\": 1} {}", &error), EINVAL, error, "line 1");
        assert_refused(parse("", &error), EINVAL, error, "");
}

static void repeated_keys_are_refused_by_name(void **state)
{
        struct error error;

        (void)state;
        assert_refused(parse("{\"target\": 1, \"target\": 2}", &error), EINVAL, error, "target");
        assert_refused(parse("{\"a\": {\"b\": 1, \"b\": 1}}", &error), EINVAL, error, "b");
}

static void nesting_is_bounded(void **state)
{
        static char deep[200001];
        struct error error;

        (void)state;
        assert_int_equal(parse("[[[[[[[[1]]]]]]]]", &error), 0);
        assert_int_equal(parse("[[[[[[[[[1]]]]]]]]]", &error), -EINVAL);
        memset(deep, '[', sizeof deep - 1);
        assert_int_equal(parse(deep, &error), -EINVAL);
}

static void messages_hold_no_control_characters(void **state)
{
        struct error error;

        (void)state;
        assert_int_equal(parse("{\"a\": \033[31m}", &error), -EINVAL);
        assert_null(strchr(error_why(&error), '\033'));
        assert_null(strchr(error.subject, '\033'));
}

/* The content of a file, as json_file_load_fd() reads it; NULL: it is refused. */
static json_t *load(const char *text)
{
        int fd = memfd_create("file.json", MFD_CLOEXEC);
        json_t *value = NULL;
        struct error error;

        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && lseek(fd, 0, SEEK_SET) == 0);
        if (json_file_load_fd(fd, "file.json", JSON_OBJECT, &value, &error) < 0)
                assert_true(error.errnum == EBADMSG && value == NULL);
        (void)close(fd);
        return value;
}

static void a_number_too_large_for_an_integer_leaves_the_others_of_a_file(void **state)
{
        json_t *value = load("{\"a\": 4711, \"b\": [18446744073709551615, {\"c\": -1}, 1.5, \"2\"]}");
        const json_t *list = json_object_get(value, "b");

        (void)state;
        assert_int_equal(json_integer_value(json_object_get(value, "a")), 4711);
        assert_true(json_real_value(json_array_get(list, 0)) > 1.8e19);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "c")), -1);
        assert_true(json_is_real(json_array_get(list, 2)));
        assert_string_equal(json_string_value(json_array_get(list, 3)), "2");
        json_decref(value);
        assert_null(load("{\"a\": 18446744073709551615, \"a\": 1}"));
        assert_null(load("{\"a\": 1e999}"));
}

/* take(): one value, as the member "key" of a request. */
static json_t *value_of(const char *text)
{
        json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

        assert_non_null(value);
        return value;
}

static void strings_are_whole_bounded_and_not_empty(void **state)
{
        static const char *const refused[] = { "1", "\"\"", "\"a\\u0000b\"", "\"abcdef\"", "null", "[\"a\"]" };
        struct error error;
        const char *text;
        json_t *value = value_of("\"abcde\"");

        (void)state;
        assert_int_equal(json_value_string("key", value, 5, &text, &error), 0);
        assert_string_equal(text, "abcde");
        json_decref(value);
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
                value = value_of(refused[i]);
                assert_refused(json_value_string("key", value, 5, &text, &error), EINVAL, error, "key");
                json_decref(value);
        }
}

static void ids_are_safe_as_file_names(void **state)
{
        static const char *const refused[] = { "\"../x\"", "\".hidden\"", "\"a/b\"", "\"a b\"", "\"\\u00e4\"", "7" };
        struct error error;
        const char *id;
        json_t *value = value_of("\"web-1_2.3:4@5+6\"");

        (void)state;
        assert_int_equal(json_value_id("id", value, &id, &error), 0);
        json_decref(value);
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
                value = value_of(refused[i]);
                assert_refused(json_value_id("id", value, &id, &error), EINVAL, error, "id");
                json_decref(value);
        }
}

static void check_size(const char *text, bool percent, const char *expected)
{
        struct error error;
        char size[32];
        json_t *value = value_of(text);
        int r = json_value_size("size", value, percent, size, sizeof size, &error);

        if (expected == NULL) {
                if (r != -EINVAL)
                        fail_msg("taken as a size: %s", text);
        } else {
                if (r != 0)
                        fail_msg("not taken: %s: %s", text, error_why(&error));
                assert_string_equal(size, expected);
        }
        json_decref(value);
}

static void sizes_have_binary_units_and_do_not_overflow(void **state)
{
        (void)state;
        check_size("1048576", false, "1048576");
        check_size("\"64m\"", false, "67108864");
        check_size("\"64Mi\"", false, "67108864");
        check_size("\"1T\"", false, "1099511627776");
        check_size("\"9223372036854775807\"", false, "9223372036854775807");
        check_size("\"50%\"", true, "50%");
        check_size("\"50%\"", false, NULL);
        check_size("\"101%\"", true, NULL);
        check_size("\"9223372036854775808\"", false, NULL);
        check_size("\"8388608t\"", false, NULL);
        check_size("0", false, NULL);
        check_size("-1", false, NULL);
        check_size("1.5", false, NULL);
        check_size("\"64mb\"", false, NULL);
        check_size("\"m\"", false, NULL);
        check_size("\"\"", false, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_no_json_is_refused_with_line_and_column),
                cmocka_unit_test(repeated_keys_are_refused_by_name),
                cmocka_unit_test(nesting_is_bounded),
                cmocka_unit_test(messages_hold_no_control_characters),
                cmocka_unit_test(a_number_too_large_for_an_integer_leaves_the_others_of_a_file),
                cmocka_unit_test(strings_are_whole_bounded_and_not_empty),
                cmocka_unit_test(ids_are_safe_as_file_names),
                cmocka_unit_test(sizes_have_binary_units_and_do_not_overflow),
        };

        return cmocka_run_group_tests_name("JSON", tests, NULL, NULL);
}
