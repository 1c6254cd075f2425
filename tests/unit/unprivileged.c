/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "process/sealed_child.h"

static unsigned say(void *argument)
{
        return *(unsigned *)argument;
}

static unsigned use_memory(void *argument)
{
        char *memory = calloc(1, (size_t)8 << 20);
        unsigned answer = memory != NULL && memory[12345] == 0 ? 1 : 0;

        (void)argument;
        free(memory);
        return answer;
}

static unsigned write_to_us(void *argument)
{
        *(unsigned *)argument = 99;
        return 1;
}

static unsigned open_file(void *argument)
{
        (void)argument;
        return open("/dev/null", O_RDONLY) >= 0;
}

static unsigned make_socket(void *argument)
{
        (void)argument;
        return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static unsigned crash(void *argument)
{
        (void)argument;
        abort();
}

static void its_answer_is_one_byte(void **state)
{
        unsigned number;

        (void)state;
        for (number = 0; number < 255; number += 127)
                assert_int_equal(unprivileged_ask(say, &number), number);
        assert_int_equal(unprivileged_ask(use_memory, NULL), 1);
}

static void it_cannot_touch_what_is_ours(void **state)
{
        unsigned number = 7;

        (void)state;
        assert_int_equal(unprivileged_ask(write_to_us, &number), 1);
        assert_int_equal(number, 7);
}

static void it_dies_of_a_call_that_it_need_not_make(void **state)
{
        (void)state;
        assert_int_equal(unprivileged_ask(open_file, NULL), -1);
        assert_int_equal(unprivileged_ask(make_socket, NULL), -1);
        assert_int_equal(unprivileged_ask(crash, NULL), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(its_answer_is_one_byte),
                cmocka_unit_test(it_cannot_touch_what_is_ours),
                cmocka_unit_test(it_dies_of_a_call_that_it_need_not_make),
        };

        return cmocka_run_group_tests_name("a child without privileges", tests, NULL, NULL);
}
