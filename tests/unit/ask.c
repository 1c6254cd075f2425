/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/worker.h"

#define COUNT 100

static unsigned asked[COUNT];
static unsigned given_up[COUNT];

static void reset(void)
{
        (void)memset(asked, 0, sizeof asked);
        (void)memset(given_up, 0, sizeof given_up);
}

static void one(struct ask *ask, size_t index)
{
        const bool *hangs = ask->argument;

        while (hangs[index])
                (void)pause();
        asked[index]++;
}

static void give_up(struct ask *ask, size_t index, const struct error *error)
{
        (void)ask;
        assert_int_equal(error->errnum, ETIMEDOUT);
        given_up[index]++;
}

static void who_does_not_answer_costs_only_its_own_answer(void **state)
{
        bool hangs[COUNT] = { [0] = true, [42] = true, [COUNT - 1] = true };
        struct ask ask = { .count = COUNT,
                           .argument = hangs,
                           .one = one,
                           .give_up = give_up,
                           .share_ms = 2000,
                           .deadline_ms = INT64_MAX };

        (void)state;
        for (int without_fds = 0; without_fds < 2; without_fds++) {
                reset();
                ask.without_fds = without_fds;
                assert_int_equal(ask_all(&ask), COUNT);
                for (size_t i = 0; i < COUNT; i++) {
                        assert_int_equal(asked[i], !hangs[i]);
                        assert_int_equal(given_up[i], hangs[i]);
                }
        }
}

static void give_up_three(struct ask *ask, size_t index, const struct error *error)
{
        give_up(ask, index, error);
        ask->next += 2;
}

static void who_gives_up_may_pass_over_others(void **state)
{
        bool hangs[COUNT] = { [7] = true };
        struct ask ask = { .count = COUNT,
                           .argument = hangs,
                           .one = one,
                           .give_up = give_up_three,
                           .share_ms = 2000,
                           .deadline_ms = INT64_MAX };

        (void)state;
        reset();
        assert_int_equal(ask_all(&ask), COUNT);
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(asked[i], i < 7 || i > 9);
}

static void who_is_asked_at_the_deadline_is_not_called_silent(void **state)
{
        bool hangs[COUNT] = { [0] = true };
        struct ask ask = { .count = COUNT,
                           .argument = hangs,
                           .one = one,
                           .give_up = give_up,
                           .share_ms = 60000,
                           .deadline_ms = clock_now_ms() + 1000 };

        (void)state;
        reset();
        assert_int_equal(ask_all(&ask), 0);
        assert_int_equal(given_up[0], 0);
}

static void kill_worker(struct ask *ask, size_t index)
{
        (void)ask;
        if (index == 3)
                (void)kill(getpid(), SIGKILL);
        asked[index]++;
}

static void note_killed(struct ask *ask, size_t index, const struct error *error)
{
        (void)ask;
        assert_int_equal(error->errnum, ECANCELED);
        given_up[index]++;
}

static void a_worker_that_is_killed_costs_one_answer(void **state)
{
        struct ask ask = {
                .count = COUNT, .one = kill_worker, .give_up = note_killed, .share_ms = 60000, .deadline_ms = INT64_MAX
        };

        (void)state;
        reset();
        assert_int_equal(ask_all(&ask), COUNT);
        for (size_t i = 0; i < COUNT; i++) {
                assert_int_equal(asked[i], i != 3);
                assert_int_equal(given_up[i], i == 3);
        }
}

static void after_the_deadline_none_is_asked(void **state)
{
        bool hangs[COUNT] = {};
        struct ask ask = {
                .count = COUNT, .argument = hangs, .one = one, .share_ms = 2000, .deadline_ms = clock_now_ms()
        };

        (void)state;
        reset();
        assert_int_equal(ask_all(&ask), 0);
        assert_int_equal(asked[0], 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_does_not_answer_costs_only_its_own_answer),
                cmocka_unit_test(who_gives_up_may_pass_over_others),
                cmocka_unit_test(who_is_asked_at_the_deadline_is_not_called_silent),
                cmocka_unit_test(a_worker_that_is_killed_costs_one_answer),
                cmocka_unit_test(after_the_deadline_none_is_asked),
        };

        return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
