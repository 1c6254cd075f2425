/* SPDX-License-Identifier: Apache-2.0 */
/* The node's own filter of lvm, from its configuration. */
#include "unit.h"

#include <regex.h>

#include "block/loop_guard.h"
#include "block/lvm_filter.h"

static void check(const char *text, const char *expected)
{
        char copy[1024];
        const char *value;

        (void)snprintf(copy, sizeof copy, "%s", text);
        value = lvm_filter_value(copy);
        if (expected == NULL)
                assert_null(value);
        else
                assert_string_equal(value, expected);
}

static void the_filter_of_a_configuration_is_found(void **state)
{
        (void)state;
        check("devices {\n\tglobal_filter = [ \"a|/dev/sd.*|\", \"r|.*|\" ]\n}\n", " \"a|/dev/sd.*|\", \"r|.*|\" ");
        check("devices/global_filter=\"r|/dev/sdb|\"\n", "\"r|/dev/sdb|\"");
        check("global_filter = \"a|.*|\" # all\n", "\"a|.*|\" ");
        check("global_filter = [\n  \"r|[0-9]]|\", # one\n  \"a|.*|\"\n]\n", "\n  \"r|[0-9]]|\", \n  \"a|.*|\"\n");
        check("global_filter = [ # [old] disks of 6\"\n'r|]|', \"a|\\\"]|\" ]", " \n'r|]|', \"a|\\\"]|\" ");
        check("global_filter = [ \"a|.*|\"", " \"a|.*|\"");
        check("global_filter =\n\t[ \"a|.*|\" ]", " \"a|.*|\" ");
        check("devices { global_filter = [ \"a|.*|\" ] }", " \"a|.*|\" ");
}

static void a_comment_or_another_key_is_no_filter(void **state)
{
        (void)state;
        check("", NULL);
        check("# global_filter = [ \"r|.*|\" ]\n", NULL);
        check("\tfilter = [ \"r|.*|\" ]\n", NULL);
        check("global_filter_of_others = \"x\"\n", NULL);
}

/* Whether one of the filter's patterns "r|PATTERN|" matches. */
static bool rejects(const char *filter, const char *path)
{
        const char *end;

        for (const char *at = filter; (at = strstr(at, "\"r|")) != NULL; at = end) {
                char pattern[256];
                regex_t regex;
                bool matches;

                at += strlen("\"r|");
                end = strchr(at, '|');
                (void)snprintf(pattern, sizeof pattern, "%.*s", (int)(end - at), at);
                assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
                matches = regexec(&regex, path, 0, NULL, 0) == 0;
                regfree(&regex);
                if (matches)
                        return true;
        }
        return false;
}

static void every_number_of_a_guard_is_rejected_and_no_other(void **state)
{
        const char *filter = lvm_filter_begin("");

        (void)state;
        for (unsigned number = 0; number < LOOP_GUARD_END; number += number < 12000 ? 1 : 4999) {
                char path[32];

                (void)snprintf(path, sizeof path, "/dev/loop%u", number);
                assert_int_equal(rejects(filter, path), loop_guard_reserves(number));
        }
}

static void the_volumes_of_a_list_are_rejected(void **state)
{
        const char *filter = lvm_filter_begin("7,12,");

        (void)state;
        assert_true(rejects(filter, "/dev/loop7"));
        assert_true(rejects(filter, "/dev/loop12"));
        assert_false(rejects(filter, "/dev/loop1"));
        assert_false(rejects(filter, "/dev/loop127"));
        assert_false(rejects(filter, "/dev/sda"));
        assert_true(rejects(lvm_filter_begin("*"), "/dev/loop1"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_filter_of_a_configuration_is_found),
                cmocka_unit_test(a_comment_or_another_key_is_no_filter),
                cmocka_unit_test(every_number_of_a_guard_is_rejected_and_no_other),
                cmocka_unit_test(the_volumes_of_a_list_are_rejected),
        };

        return cmocka_run_group_tests_name("lvm_filter", tests, NULL, NULL);
}
