/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>

#include "base/clock.h"
#include "process/worker.h"

static int do_nothing(void *argument, struct error *error)
{
        (void)argument;
        (void)error;
        return 7;
}

static int run_apart(void *argument, struct error *error)
{
        return worker_run_apart(do_nothing, NULL, argument, error);
}

static int run_apart_twice(void *argument, struct error *error)
{
        int r = run_apart(argument, error);

        return r < 0 ? r : worker_run_apart(run_apart, NULL, argument, error);
}

/* Of this process's addresses. */
static unsigned long pages(void)
{
        FILE *statm = fopen("/proc/self/statm", "re");
        unsigned long count = 0;

        assert_non_null(statm);
        assert_int_equal(fscanf(statm, "%lu", &count), 1);
        (void)fclose(statm);
        return count;
}

static void run(worker_function *function)
{
        struct error error = {};

        assert_int_equal(worker_run(function, NULL, clock_now_ms() + 60000, &error), 7);
}

static void workers_and_their_children_reuse_their_stacks(void **state)
{
        worker_function *const functions[] = { do_nothing, run_apart, run_apart_twice };
        unsigned long before;

        (void)state;
        for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
                run(functions[i]);
        before = pages();
        for (int round = 0; round < 16; round++)
                run(functions[round % 3]);
        assert_int_equal(pages(), before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(workers_and_their_children_reuse_their_stacks),
        };

        return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
