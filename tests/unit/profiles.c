/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "provision/profile.h"

static const char *dir;
static char path[96];

static int begin(void **state)
{
        (void)state;
        dir = unit_directory();
        (void)snprintf(path, sizeof path, "%s/profiles.json", dir);
        (void)setenv("FLEXGRAFT_CONFIG", "/nonexistent", 1);
        return setenv("FLEXGRAFT_PROFILES", path, 1);
}

static int end(void **state)
{
        (void)state;
        return unit_remove(dir);
}

#define SELECTS                                                                                                        \
        "\"resource_provider_selector\": {\"resource_providers\": [{\"type\": \"org.flexgraft.loop\", \"name\": "      \
        "\"ssd\"}]}"
#define MOUNTS                                                                                                         \
        "\"volume_capabilities\": {\"mount\": {\"fs_type\": \"xfs\", \"mount_flags\": [\"noatime\"]}, "                \
        "\"access_mode\": "                                                                                            \
        "{\"mode\": \"SINGLE_NODE_WRITER\"}}"
#define GOOD                                                                                                           \
        "{\"profile_matrix\": {\"fast\": {" SELECTS ", " MOUNTS                                                        \
        ", \"create_parameters\": {\"preallocate\": \"true\"}}}}"

static void load(const char *text, struct profiles *profiles)
{
        struct error error;

        *profiles = (struct profiles){};
        unit_write(path, text);
        assert_int_equal(profiles_load(dir, profiles, &error), 0);
}

static void a_profile_says_filesystem_flags_mode_and_parameters(void **state)
{
        cleanup_profiles struct profiles profiles;
        const json_t *profile;
        struct error error;

        (void)state;
        load(GOOD, &profiles);
        assert_string_equal(profiles.problem, "");
        assert_int_equal(profiles_find(&profiles, "fast", &profile, &error), 0);
        assert_string_equal(profile_fs_type(profile), "xfs");
        assert_string_equal(json_string_value(json_array_get(profile_mount_flags(profile), 0)), "noatime");
        assert_string_equal(profile_access_mode(profile), "SINGLE_NODE_WRITER");
        assert_string_equal(json_string_value(json_object_get(profile_parameters(profile), "preallocate")), "true");
        assert_false(profile_is_block(profile));
        assert_int_equal(profiles_find(&profiles, "slow", &profile, &error), -ENOENT);
}

static void a_selector_picks_pools_by_type_and_name(void **state)
{
        cleanup_profiles struct profiles profiles;
        const struct pool pool = { .name = "ssd", .kind = &pool_loop };
        const struct pool other_name = { .name = "hdd", .kind = &pool_loop };
        const struct pool other_type = { .name = "ssd", .kind = &pool_lvm };
        const json_t *profile;
        struct error error;

        (void)state;
        load(GOOD, &profiles);
        assert_int_equal(profiles_find(&profiles, "fast", &profile, &error), 0);
        assert_true(profile_selects(profile, &pool));
        assert_false(profile_selects(profile, &other_name));
        assert_false(profile_selects(profile, &other_type));
}

static void one_bad_profile_rejects_the_file_and_the_set_before_stays(void **state)
{
        static const char *const bad[] = {
                "{\"profile_matrix\": {\"fast\": {" MOUNTS "}}}",
                "{\"profile_matrix\": {\"fast\": {" SELECTS "}}}",
                "{\"profile_matrix\": {\"fast\": {" SELECTS ", \"volume_capabilities\": {}}}}",
                "{\"profile_matrix\": {\"fast\": {" SELECTS ", " MOUNTS ", \"create_parameters\": {\"a\": 1}}}}",
                "{\"profile_matrix\": []}",
                "{}",
                "{",
        };

        (void)state;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                cleanup_profiles struct profiles first;
                cleanup_profiles struct profiles second;
                const json_t *profile;
                struct error error;

                load(GOOD, &first);
                load(bad[i], &second);
                if (second.problem[0] == '\0')
                        fail_msg("taken: %s", bad[i]);
                assert_int_equal(profiles_find(&second, "fast", &profile, &error), 0);
        }
}

static void a_profile_that_left_the_file_is_inactive(void **state)
{
        cleanup_profiles struct profiles first;
        cleanup_profiles struct profiles second;
        const json_t *profile;
        struct error error;

        (void)state;
        load(GOOD, &first);
        load("{\"profile_matrix\": {}}", &second);
        assert_int_equal(profiles_find(&second, "fast", &profile, &error), -ESTALE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_profile_says_filesystem_flags_mode_and_parameters),
                cmocka_unit_test(a_selector_picks_pools_by_type_and_name),
                cmocka_unit_test(one_bad_profile_rejects_the_file_and_the_set_before_stays),
                cmocka_unit_test(a_profile_that_left_the_file_is_inactive),
        };

        return cmocka_run_group_tests_name("profiles", tests, begin, end);
}
