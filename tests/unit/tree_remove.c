/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/tree_remove.h"

static const char *dir;

static int begin(void **unused)
{
        (void)unused;
        dir = unit_directory();
        return chdir(dir);
}

static int end(void **unused)
{
        (void)unused;
        tree_remove_until(0);
        return chdir("/") < 0 ? -1 : unit_remove(dir);
}

static void a_tree_that_is_larger_than_the_time_for_it_is_left_to_the_next_call(void **unused)
{
        struct error error;
        int fd;

        (void)unused;
        assert_int_equal(mkdir("trash", 0700), 0);
        assert_int_equal(mkdir("trash/tree", 0700), 0);
        assert_int_equal(mkdir("trash/tree/below", 0700), 0);
        fd = open("trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        tree_remove_until(clock_now_ms() - 1);
        assert_refused(tree_empty_trash(fd, "data", &error), ETIME, error, "there was no more time");
        assert_int_equal(access("trash/tree/below", F_OK), 0);
        tree_remove_until(clock_now_ms() + 3600000);
        assert_int_equal(tree_empty_trash(fd, "data", &error), 0);
        assert_int_equal(rmdir("trash"), 0); /* it is empty */
        (void)close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tree_that_is_larger_than_the_time_for_it_is_left_to_the_next_call),
        };

        return cmocka_run_group_tests_name("tree_remove", tests, begin, end);
}
