/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "mount/fs_usage.h"

static void what_statfs_says_is_told_in_bytes(void **state)
{
        const struct statfs fs = {
                .f_bsize = 4096, .f_blocks = 100, .f_bfree = 50, .f_bavail = 40, .f_files = 7, .f_ffree = 3
        };
        struct fs_usage usage;

        (void)state;
        fs_usage_of(&fs, &usage);
        assert_true(usage.known && usage.size_bytes == 409600 && usage.free_bytes == 204800);
        assert_true(usage.available_bytes == 163840 && usage.files == 7 && usage.files_free == 3);
}

static void a_size_of_more_bytes_than_a_number_holds_is_the_largest_number(void **state)
{
        const struct statfs fs = {
                .f_bsize = 4096, .f_blocks = UINT64_MAX, .f_bfree = UINT64_MAX / 2, .f_bavail = 1ULL << 52
        };
        struct fs_usage usage;

        (void)state;
        fs_usage_of(&fs, &usage);
        assert_true(usage.size_bytes == UINT64_MAX && usage.free_bytes == UINT64_MAX &&
                    usage.available_bytes == UINT64_MAX);
}

static void no_more_is_free_than_all(void **state)
{
        const struct statfs fs = { .f_bsize = 4096, .f_blocks = 10, .f_bfree = 11 };
        struct fs_usage usage;

        (void)state;
        fs_usage_of(&fs, &usage);
        assert_true(usage.size_bytes == 40960 && usage.free_bytes == 40960);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_statfs_says_is_told_in_bytes),
                cmocka_unit_test(a_size_of_more_bytes_than_a_number_holds_is_the_largest_number),
                cmocka_unit_test(no_more_is_free_than_all),
        };

        return cmocka_run_group_tests_name("fs_usage", tests, NULL, NULL);
}
