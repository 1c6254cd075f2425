/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in words: each says the same as one in JSON. */
#include "unit.h"

#include "base/json.h"
#include "base/nearest.h"
#include "base/words.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "provision/request.h"

#define WORDS_MAX 16

static const struct words bind = { "mount-bind", &source_bind_keys, 1, NULL };
static const struct words nfs = { "mount-nfs", &source_nfs_keys, 1, NULL };
static const struct words overlay = { "mount-overlay", &source_overlay_keys, 1, NULL };
static const struct words batch = { "mount-batch", &request_batch_keys, 1, NULL };
static const struct words between = { "mount-container-to-container", &source_container_keys, 1, NULL };
static const struct words removal = { "mount-remove", &request_remove_keys, 1, NULL };
static const struct words create = { "volume-create", &provision_keys, PROVISION_BIT(PROVISION_CREATE), NULL };

/* take() - the words of a line, as argv has them. */
static int take(const struct words *words, const char *line, json_t **ret_request, struct error *error)
{
        static char text[1024];
        char *argv[WORDS_MAX + 1] = { (char *)"program" };
        char *rest = NULL;
        int argc = 1;

        *error = (struct error){};
        (void)snprintf(text, sizeof text, "%s", line);
        for (char *word = strtok_r(text, " ", &rest); word != NULL && argc < WORDS_MAX;
             word = strtok_r(NULL, " ", &rest))
                argv[argc++] = word;
        return words_take(words, argc, argv, ret_request, error);
}

static void check_says(const struct words *words, const char *line, const char *json)
{
        json_t *expected = json_loads(json, 0, NULL);
        json_t *request = NULL;
        struct error error;

        assert_non_null(expected);
        if (take(words, line, &request, &error) < 0)
                fail_msg("%s: %s", line, error_why(&error));
        if (!json_equal(request, expected))
                fail_msg("%s: is %s", line, json_text_make(request));
        json_decref(request);
        json_decref(expected);
}

static void check_refused(const struct words *words, const char *line, const char *why)
{
        json_t *request = NULL;
        struct error error;

        assert_int_equal(take(words, line, &request, &error), -EINVAL);
        assert_string_equal(error.operation, OPERATION_PARSE);
        if (strcmp(error_why(&error), why) != 0)
                fail_msg("%s: says \"%s\"", line, error_why(&error));
}

static void words_are_keys_in_the_order_of_the_table(void **state)
{
        (void)state;
        check_says(&bind, "web /srv /data", "{\"container\":\"web\",\"source\":\"/srv\",\"target\":\"/data\"}");
        check_says(&removal, "web /data", "{\"container\":\"web\",\"target\":\"/data\"}");
        check_says(&create, "db 10g --pool fast", "{\"name\":\"db\",\"size\":\"10g\",\"pool\":\"fast\"}");
        check_says(&create, "--pool=fast db", "{\"name\":\"db\",\"pool\":\"fast\"}");
}

static void a_key_that_is_an_option_takes_no_word(void **state)
{
        (void)state;
        check_says(&bind, "--source /srv web /data",
                   "{\"container\":\"web\",\"source\":\"/srv\",\"target\":\"/data\"}");
        check_says(&bind, "--container.pod ns/p --container.container c /srv /data",
                   "{\"container\":{\"pod\":\"ns/p\",\"container\":\"c\"},\"source\":\"/srv\",\"target\":\"/data\"}");
        check_refused(&bind, "--container web --container.unit x /srv /data",
                      "--container.unit is given twice, as one word and in parts");
}

static void a_word_that_may_be_missing_gives_way_to_one_that_may_not(void **state)
{
        (void)state;
        check_says(&nfs, "web nas:/x /data", "{\"container\":\"web\",\"source\":\"nas:/x\",\"target\":\"/data\"}");
        check_says(&nfs, "web /data --server nas --share /x",
                   "{\"container\":\"web\",\"server\":\"nas\",\"share\":\"/x\",\"target\":\"/data\"}");
}

static void values_have_the_type_of_their_key(void **state)
{
        (void)state;
        check_says(&bind, "1 /s /t --timeout-seconds=5 --read-only --no-mkdir --locked=false",
                   "{\"container\":\"1\",\"source\":\"/s\",\"target\":\"/t\",\"timeoutSeconds\":5,\"readOnly\":true,"
                   "\"mkdir\":false,\"locked\":false}");
        check_says(&bind, "--container.pid=1x /s /t --timeout-seconds=-5 --read-only=yes",
                   "{\"container\":{\"pid\":\"1x\"},\"source\":\"/s\",\"target\":\"/t\",\"timeoutSeconds\":\"-5\","
                   "\"readOnly\":\"yes\"}"); /* which the parser refuses */
}

static void lists_are_options_given_again(void **state)
{
        (void)state;
        check_says(&overlay, "web /t --lower /a --lower=/b --options a,b --options c",
                   "{\"container\":\"web\",\"target\":\"/t\",\"lower\":[\"/a\",\"/b\"],\"options\":\"a,b,c\"}");
        check_says(&create, "db --parameters type=raid1 --parameters mirrors=1=2",
                   "{\"name\":\"db\",\"parameters\":{\"type\":\"raid1\",\"mirrors\":\"1=2\"}}");
        check_says(&batch, "web --mounts {\"type\":\"tmpfs\"} --mounts {}",
                   "{\"container\":\"web\",\"mounts\":[{\"type\":\"tmpfs\"},{}]}");
        check_refused(&create, "db --parameters type", "--parameters takes NAME=VALUE");
        check_refused(&create, "db --parameters a=b --parameters a=c", "--parameters a is given twice");
        check_refused(&bind, "web /s /t --ids host --ids host", "--ids is given twice");
}

static void a_side_is_a_container_and_a_path(void **state)
{
        (void)state;
        check_says(
                &between, "a:b:/x c:/y/:/z",
                "{\"from\":{\"container\":\"a:b\",\"path\":\"/x\"},\"to\":{\"container\":\"c\",\"path\":\"/y/:/z\"}}");
        check_says(&between, "--from.container.unit u --from.path /x c:/y",
                   "{\"from\":{\"container\":{\"unit\":\"u\"},\"path\":\"/x\"},\"to\":{\"container\":\"c\","
                   "\"path\":\"/y\"}}");
}

static void two_dashes_end_the_options(void **state)
{
        (void)state;
        check_says(&bind, "--read-only -- --web {s -",
                   "{\"container\":\"--web\",\"source\":\"{s\",\"target\":\"-\",\"readOnly\":true}");
}

static void what_is_missing_or_too_much_is_named_with_the_usage(void **state)
{
        (void)state;
        check_refused(&bind, "web /srv", "target is missing; usage: mount-bind CONTAINER SOURCE TARGET [OPTION...]");
        check_refused(&bind, "", "container is missing; usage: mount-bind CONTAINER SOURCE TARGET [OPTION...]");
        check_refused(&removal, "web /data x",
                      "x is one word too many; usage: mount-remove [CONTAINER] [TARGET] [OPTION...]");
        check_refused(&batch, "web x", "x is one word too many; usage: mount-batch [CONTAINER] [OPTION...]");
        check_refused(&bind, "--ids", "--ids must be followed by a value; --ids=VALUE takes any");
        check_refused(&bind, "--ids --locked", "--ids must be followed by a value; --ids=VALUE takes any");
        check_refused(&bind, "--no-locked=true", "--no-locked takes no value");
}

static void an_unknown_option_names_the_nearest(void **state)
{
        (void)state;
        check_refused(&bind, "--readonly", "unknown option --readonly (the nearest is --read-only)");
        check_refused(&bind, "--no-mkdri", "unknown option --no-mkdri (the nearest is --no-mkdir)");
        check_refused(&bind, "--timeout=5", "unknown option --timeout (the nearest is --timeout-seconds)");
        check_refused(&bind, "--container.unti=x", "unknown option --container.unti (the nearest is --container.unit)");
        check_refused(&bind, "--readOnly", "unknown option --readOnly (the nearest is --read-only)");
        check_refused(&bind, "--lower=/x", "unknown option --lower");
        check_refused(&bind, "--no-ids", "unknown option --no-ids");
        check_refused(&bind, "--source.x=y", "unknown option --source.x (the nearest is --source)");
        check_refused(&bind, "--container..unit=x",
                      "unknown option --container..unit (the nearest is --container.unit)");
        check_refused(&bind, "--container.=x", "unknown option --container. (the nearest is --container)");
        check_refused(&bind, "-r", "unknown option -r");
        check_refused(&bind, "--=", "unknown option --");
}

static void letters_that_changed_places_are_one_change(void **state)
{
        struct nearest nearest = { .asked = "--tabel" };

        (void)state;
        nearest_offer(&nearest, "--tab");
        assert_string_equal(nearest_found(&nearest), "--tab");
        nearest_offer(&nearest, "--table");
        assert_string_equal(nearest_found(&nearest), "--table");
        nearest_offer(&nearest, "--schema");
        assert_string_equal(nearest_found(&nearest), "--table");
}

static void a_brace_a_bracket_a_dash_or_nothing_is_json(void **state)
{
        static const char *const json[] = { "{}", "-", "", " \n{", "[", "\t", "\"db\"" };
        static const char *const others[] = { "web", "--", "}", "5", "null", "-x", "a{" };

        (void)state;
        for (size_t i = 0; i < sizeof json / sizeof json[0]; i++) {
                char *argv[] = { (char *)"program", (char *)json[i], NULL };
                char *late[] = { (char *)"program", (char *)others[i], (char *)json[i], NULL };

                assert_true(words_are_json(2, argv));
                assert_false(words_are_json(3, late));
        }
        assert_false(words_are_json(1, (char *[]){ (char *)"program", NULL }));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(words_are_keys_in_the_order_of_the_table),
                cmocka_unit_test(a_key_that_is_an_option_takes_no_word),
                cmocka_unit_test(a_word_that_may_be_missing_gives_way_to_one_that_may_not),
                cmocka_unit_test(values_have_the_type_of_their_key),
                cmocka_unit_test(lists_are_options_given_again),
                cmocka_unit_test(a_side_is_a_container_and_a_path),
                cmocka_unit_test(two_dashes_end_the_options),
                cmocka_unit_test(what_is_missing_or_too_much_is_named_with_the_usage),
                cmocka_unit_test(an_unknown_option_names_the_nearest),
                cmocka_unit_test(letters_that_changed_places_are_one_change),
                cmocka_unit_test(a_brace_a_bracket_a_dash_or_nothing_is_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
