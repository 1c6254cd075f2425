/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "network/nfs_server.h"

static void host_and_path_are_parted_at_the_first_colon(void **state)
{
        struct nfs_export export;

        (void)state;
        assert_int_equal(nfs_export_parse("nas:/export/data", &export), 0);
        assert_string_equal(export.host, "nas");
        assert_string_equal(export.path, "/export/data");
        assert_string_equal(export.source, "nas:/export/data");
        assert_int_equal(nfs_export_parse("nas:/a:b", &export), 0);
        assert_string_equal(export.path, "/a:b");
}

static void ipv6_addresses_stand_in_brackets(void **state)
{
        struct nfs_export export;

        (void)state;
        assert_int_equal(nfs_export_parse("[fd00::1]:/x", &export), 0);
        assert_string_equal(export.host, "fd00::1");
        assert_string_equal(export.source, "[fd00::1]:/x");
        assert_int_equal(nfs_export_join("fd00::1", "/x", &export), 0);
        assert_string_equal(export.source, "[fd00::1]:/x");
        assert_int_equal(nfs_export_join("[fd00::1]", "/x", &export), 0);
        assert_string_equal(export.host, "fd00::1");
}

static void what_is_no_export_is_refused(void **state)
{
        static const char *const refused[] = { "",       "nas",    ":/x",    "nas:",   "nas:x",  "[fd00::1]/x",
                                               "[]:/x",  "a b:/x", "a,b:/x", "a@b:/x", "a/b:/x", "a\tb:/x",
                                               "a\nb:/x" };
        struct nfs_export export;
        char host[400];

        (void)state;
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
                if (nfs_export_parse(refused[i], &export) != -EINVAL)
                        fail_msg("taken: %s", refused[i]);
        memset(host, 'h', sizeof host);
        host[NFS_HOST_SIZE] = '\0';
        assert_int_equal(nfs_export_join(host, "/x", &export), -EINVAL);
        host[NFS_HOST_SIZE - 1] = '\0';
        assert_int_equal(nfs_export_join(host, "/x", &export), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(host_and_path_are_parted_at_the_first_colon),
                cmocka_unit_test(ipv6_addresses_stand_in_brackets),
                cmocka_unit_test(what_is_no_export_is_refused),
        };

        return cmocka_run_group_tests_name("NFS exports", tests, NULL, NULL);
}
