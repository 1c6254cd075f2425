/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/number_set.h"

static struct number_set set;

static void few_numbers_may_be_added_without_end(void **unused)
{
        (void)unused;
        set.count = 0;
        for (uint64_t i = 0; i < 10 * NUMBER_SET_MAX; i++)
                number_set_add(&set, i % 3);
        assert_true(number_set_is_whole(&set));
        for (uint64_t i = 0; i < 3; i++)
                assert_true(number_set_has(&set, i));
        assert_false(number_set_has(&set, 3));
}

static void many_numbers_in_any_order_are_kept_once(void **unused)
{
        (void)unused;
        set.count = 0;
        for (uint64_t i = 0; i < 3 * NUMBER_SET_MAX; i++)
                number_set_add(&set, i * 2654435761U % 5003);
        assert_true(number_set_is_whole(&set));
        for (uint64_t i = 0; i < 5003; i++)
                assert_true(number_set_has(&set, i));
        assert_false(number_set_has(&set, 5003));
}

static void of_too_many_numbers_it_says_that_it_does_not_have_all(void **unused)
{
        (void)unused;
        set.count = 0;
        for (uint64_t i = 0; i < NUMBER_SET_MAX; i++)
                number_set_add(&set, i);
        assert_true(number_set_is_whole(&set));
        assert_true(number_set_has(&set, NUMBER_SET_MAX - 1));
        number_set_add(&set, NUMBER_SET_MAX);
        assert_false(number_set_is_whole(&set));
        number_set_add(&set, 1);
        assert_false(number_set_is_whole(&set));
}

static void as_many_numbers_as_a_node_has_mount_namespaces_are_all_kept(void **unused)
{
        (void)unused;
        set.count = 0;
        for (int round = 0; round < 2; round++)
                for (uint64_t i = 0; i < 100000; i++)
                        number_set_add(&set, i);
        assert_true(number_set_is_whole(&set));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(few_numbers_may_be_added_without_end),
                cmocka_unit_test(many_numbers_in_any_order_are_kept_once),
                cmocka_unit_test(of_too_many_numbers_it_says_that_it_does_not_have_all),
                cmocka_unit_test(as_many_numbers_as_a_node_has_mount_namespaces_are_all_kept),
        };

        return cmocka_run_group_tests_name("number_set", tests, NULL, NULL);
}
