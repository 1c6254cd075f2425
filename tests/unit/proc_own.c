/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>

#include "container/container.h"
#include "process/proc.h"

/* As in a container's mount namespace: the first that was asked about is of another mount than /proc is now. */
static void a_proc_of_another_mount_is_not_searched(void **state)
{
        const struct container_reference self = { .pid = getpid() };
        const struct namespace_identity none = { .inode = 1 };
        struct container container = CONTAINER_NONE;
        struct error error = {};
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

        (void)state;
        assert_true(root >= 0 && proc >= 0);
        assert_int_equal(proc_check_own(root), 0);
        assert_int_equal(proc_check_own(root), 0);
        assert_int_equal(proc_check_own(proc), -EXDEV);
        assert_refused(container_pin(&self, &container, &error), EXDEV, error, "not that of the node");
        assert_refused(container_pin_namespace(&none, &container, &error), EXDEV, error, "not that of the node");
        (void)close(root);
        (void)close(proc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_proc_of_another_mount_is_not_searched),
        };

        return cmocka_run_group_tests_name("whose /proc it is", tests, NULL, NULL);
}
