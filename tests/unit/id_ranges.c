/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>

#include "process/id_ranges.h"

static const char *dir;

static int make_directory(void **state)
{
        (void)state;
        dir = unit_directory();
        return 0;
}

static int remove_directory(void **state)
{
        char path[96];

        (void)state;
        (void)snprintf(path, sizeof path, "%s/uid_map", dir);
        (void)unlink(path);
        return rmdir(dir);
}

static int read_map(const char *text, struct id_range *ranges)
{
        char path[96];
        int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int count;

        (void)snprintf(path, sizeof path, "%s/uid_map", dir);
        unit_write(path, text);
        count = id_ranges_read(fd, "uid_map", ranges);
        (void)close(fd);
        return count;
}

static void lines_of_a_map_are_ranges(void **state)
{
        struct id_range ranges[ID_RANGES_MAX];

        (void)state;
        assert_int_equal(read_map("         0     100000      65536\n     70000         7          1\n", ranges), 2);
        assert_int_equal(ranges[0].inside, 0);
        assert_int_equal(ranges[0].outside, 100000);
        assert_int_equal(ranges[0].count, 65536);
        assert_int_equal(ranges[1].inside, 70000);
        assert_int_equal(ranges[1].outside, 7);
        assert_int_equal(read_map("", ranges), 0);
        assert_int_equal(read_map("0 0 4294967295\n", ranges), 1);
        assert_true(ranges[0].count == UINT32_MAX);
}

static void a_map_of_a_process_that_is_gone_is_esrch(void **state)
{
        struct id_range ranges[ID_RANGES_MAX];
        int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

        (void)state;
        assert_int_equal(id_ranges_read(fd, "gid_map", ranges), -ESRCH);
        (void)close(fd);
}

static void joining_maps_outside_to_outside_through_the_inside(void **state)
{
        const struct id_range one[] = { { 0, 100000, 65536 } };
        const struct id_range other[] = { { 0, 200000, 1000 }, { 2000, 500000, 100000 } };
        struct id_range joined[ID_RANGES_MAX];

        (void)state;
        assert_int_equal(id_ranges_join(one, 1, other, 2, joined), 2);
        assert_int_equal(joined[0].inside, 100000);
        assert_int_equal(joined[0].outside, 200000);
        assert_int_equal(joined[0].count, 1000);
        assert_int_equal(joined[1].inside, 102000);
        assert_int_equal(joined[1].outside, 500000);
        assert_int_equal(joined[1].count, 65536 - 2000);
}

static void what_only_one_maps_is_in_no_join(void **state)
{
        const struct id_range one[] = { { 0, 100000, 10 } };
        const struct id_range other[] = { { 10, 200000, 10 } };
        struct id_range joined[ID_RANGES_MAX];

        (void)state;
        assert_int_equal(id_ranges_join(one, 1, other, 1, joined), 0);
}

static void ranges_at_the_end_of_the_ids_do_not_wrap(void **state)
{
        const struct id_range one[] = { { 4294967000U, 1000, 295 } };
        const struct id_range other[] = { { 4294967200U, 9000, 95 } };
        struct id_range joined[ID_RANGES_MAX];

        (void)state;
        assert_int_equal(id_ranges_join(one, 1, other, 1, joined), 1);
        assert_int_equal(joined[0].inside, 1200);
        assert_int_equal(joined[0].outside, 9000);
        assert_int_equal(joined[0].count, 95);
}

static void more_ranges_than_the_kernel_takes_are_e2big(void **state)
{
        static struct id_range one[ID_RANGES_MAX + 1];
        static struct id_range joined[ID_RANGES_MAX];
        const struct id_range other[] = { { 0, 0, UINT32_MAX } };

        (void)state;
        for (int i = 0; i <= ID_RANGES_MAX; i++)
                one[i] = (struct id_range){ (uint32_t)i * 2, (uint32_t)i * 2 + 5000, 1 };
        assert_int_equal(id_ranges_join(one, ID_RANGES_MAX, other, 1, joined), ID_RANGES_MAX);
        assert_int_equal(id_ranges_join(one, ID_RANGES_MAX + 1, other, 1, joined), -E2BIG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_of_a_map_are_ranges),
                cmocka_unit_test(a_map_of_a_process_that_is_gone_is_esrch),
                cmocka_unit_test(joining_maps_outside_to_outside_through_the_inside),
                cmocka_unit_test(what_only_one_maps_is_in_no_join),
                cmocka_unit_test(ranges_at_the_end_of_the_ids_do_not_wrap),
                cmocka_unit_test(more_ranges_than_the_kernel_takes_are_e2big),
        };

        return cmocka_run_group_tests_name("id ranges", tests, make_directory, remove_directory);
}
