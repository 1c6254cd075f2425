/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "remap/operations.h"
#include "remap/shared.h"

static struct shared memory;
struct shared *shared = &memory;

/* What libfuse offers is 256 pages of the kernel, of up to 64 KiB. */
static unsigned written_at_once(unsigned offered)
{
        struct fuse_conn_info connection = { .max_write = offered };

        operations.init(NULL, &connection);
        return connection.max_write;
}

static void no_write_is_longer_than_a_request_may_be(void **state)
{
        (void)state;
        assert_int_equal(written_at_once(1 << 20), 1 << 20);
        assert_int_equal(written_at_once(4 << 20), 1 << 20);
        assert_int_equal(written_at_once(16 << 20), 1 << 20);
        assert_true((1 << 20) < REQUEST_SIZE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_write_is_longer_than_a_request_may_be),
        };

        return cmocka_run_group_tests_name("remap-daemon", tests, NULL, NULL);
}
