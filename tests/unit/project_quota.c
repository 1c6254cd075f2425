/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/random.h>

#include "base/project_quota.h"

/* The C library's functions for project_choose(): ids in turn, of which no filesystem has any, and the node's two files. */
static uint32_t next_id;

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
        uint32_t bits = next_id++;

        (void)flags;
        assert_int_equal(size, sizeof bits);
        memcpy(buffer, &bits, sizeof bits);
        return (ssize_t)size;
}

long syscall(long number, ...)
{
        (void)number;
        errno = ENOENT; /* Q_GETQUOTA: it was never used */
        return -1;
}

FILE *fopen(const char *path, const char *mode)
{
        static char projects[] = "# 1073741825:/srv/comment\n1073741826:/srv/one\n1073741828:/srv/two\n";
        static char projid[] = "#none:1073741825\nthree:1073741827\nnothing\n";
        char *text = strcmp(path, "/etc/projects") == 0 ? projects : strcmp(path, "/etc/projid") == 0 ? projid : NULL;

        return text != NULL ? fmemopen(text, strlen(text), mode) : NULL;
}

static uint32_t chosen_from(uint32_t first)
{
        uint32_t project = PROJECT_NONE;

        next_id = first;
        assert_int_equal(project_choose(-1, &project), 0);
        return project - PROJECT_FIRST;
}

static void an_id_that_the_nodes_files_name_is_passed_over(void **state)
{
        (void)state;
        assert_int_equal(chosen_from(0), 0);
        assert_int_equal(chosen_from(1), 1); /* comments */
        assert_int_equal(chosen_from(2), 5);
        assert_int_equal(chosen_from(3), 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_id_that_the_nodes_files_name_is_passed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
