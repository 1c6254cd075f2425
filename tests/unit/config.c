/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "state/config.h"

static const char *dir;
static char path[96];

static int begin(void **state)
{
        (void)state;
        dir = unit_directory();
        (void)snprintf(path, sizeof path, "%s/config.json", dir);
        return setenv("FLEXGRAFT_CONFIG", path, 1);
}

static int end(void **state)
{
        (void)state;
        return unit_remove(dir);
}

static void what_the_file_says_wins_over_the_defaults(void **state)
{
        struct config config;
        struct error error;

        (void)state;
        unit_write(path, "{\"stateDir\": \"/srv//state/\", \"nodeName\": \"n1\", \"log\": \"none\", \"timeouts\": "
                         "{\"unmount\": 3}}");
        assert_int_equal(config_load(&config, &error), 0);
        assert_string_equal(config.state_dir, "/srv/state");
        assert_string_equal(config.node_name, "n1");
        assert_string_equal(config.log, "none");
        assert_int_equal(config.unmount_seconds, 3);
        assert_int_equal(config.call_seconds, 120);
        assert_int_equal(config.command_seconds, 600);
        assert_int_equal(config.device_seconds, 20);
}

static void a_broken_file_is_one_error_that_names_the_key_or_the_line(void **state)
{
        static const struct {
                const char *text;
                const char *named;
        } broken[] = {
                { "{\"statedir\": \"/srv\"}", "statedir" },
                { "{\"stateDir\": \"srv\"}", "stateDir" },
                { "{\"stateDir\": 7}", "stateDir" },
                { "{\"nodeName\": 7}", "nodeName" },
                { "{\"log\": \"stderr\"}", "log" },
                { "{\"timeouts\": {\"calls\": 3}}", "calls" },
                { "{\"timeouts\": {\"call\": 0}}", "call" },
                { "{\"timeouts\": {\"call\": \"3\"}}", "call" },
                { "{\"runtimes\": {\"rkt\": []}}", "runtimes" },
                { "{\"runtimes\": {\"runc\": [\"srv\"]}}", "runtimes" },
                { "{\"log\": \"none\",\n \"log\": \"none\"}", "line 2" },
                { "{\n\n", "line 3" },
                { "[]", "" },
        };
        struct config config;
        struct error error;

        (void)state;
        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
                error = (struct error){};
                unit_write(path, broken[i].text);
                assert_refused(config_load(&config, &error), EBADMSG, error, broken[i].named);
        }
}

/* A file that was named and is not there is a mistake; /etc/flexgraft/config.json may be absent. */
static void a_file_that_the_environment_names_must_exist(void **state)
{
        struct config config;
        struct error error;

        (void)state;
        (void)unlink(path);
        assert_int_equal(config_load(&config, &error), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_the_file_says_wins_over_the_defaults),
                cmocka_unit_test(a_broken_file_is_one_error_that_names_the_key_or_the_line),
                cmocka_unit_test(a_file_that_the_environment_names_must_exist),
        };

        return cmocka_run_group_tests_name("configuration", tests, begin, end);
}
