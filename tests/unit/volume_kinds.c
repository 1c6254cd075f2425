/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "volume/kinds.h"
#include "volume/verbs.h"

static void parse(const char *json, struct volume_request *request)
{
        char *argv[] = { (char *)"getvolumename", (char *)json, NULL };
        struct error error = {};

        *request = (struct volume_request){};
        assert_int_equal(volume_request_parse(request, VERB_GETVOLUMENAME, 2, argv, &error), 0);
}

static const char *requested(const char *json, const char *driver, struct error *error)
{
        struct volume_signs signs;
        struct volume_request request;
        int r;

        *error = (struct error){};
        parse(json, &request);
        r = volume_kind_read(&request, volume_kind_of_driver(driver), &signs, error);
        volume_request_release(&request);
        return r < 0 ? "refused" : signs.requested == NULL ? "none" : signs.requested->word;
}

static const char *guessed(const char *json)
{
        struct volume_signs signs;
        struct volume_request request;
        struct error error;

        parse(json, &request);
        assert_int_equal(volume_kind_read(&request, /* of_driver= */ NULL, &signs, &error), 0);
        volume_request_release(&request);
        return signs.guessed == NULL ? "none" : signs.guessed->word;
}

static void every_row_is_whole(void **state)
{
        (void)state;
        for (size_t i = 0; volume_kinds[i] != NULL; i++) {
                const struct volume_kind *kind = volume_kinds[i];

                assert_ptr_equal(volume_kind_find(kind->word), kind);
                assert_int_equal(kind->has_device, volume_kind_has_device(kind->word));
                assert_int_equal(kind->has_device, kind->attach != NULL && kind->look != NULL && kind->detach != NULL &&
                                                           kind->identify != NULL);
                assert_int_equal(kind->has_device, kind->make == NULL);
                assert_int_equal(kind->unmake != NULL, kind->has_made != NULL);
                assert_int_equal(kind->stage != NULL, kind->publish != NULL && kind->unstage != NULL);
                assert_true(kind->stage == NULL || kind->flag != NULL);
                assert_true(kind->flag == NULL || volume_option_find(kind->flag) != NULL);
                assert_non_null(kind->options);
                for (const struct volume_option *option = kind->options; option->key != NULL; option++) {
                        assert_non_null(volume_option_find(option->key));
                        assert_non_null(option->help);
                        assert_true(strlen(option->help) <= 64);
                }
        }
}

static void a_drivers_name_restricts_it_to_one_type(void **state)
{
        struct error error;

        (void)state;
        assert_string_equal(volume_kind_of_driver("flexgraft~loop")->word, "loop");
        assert_null(volume_kind_of_driver("flexgraft~flexgraft"));
        assert_null(volume_kind_of_driver("flexgraft~kata"));
        assert_null(volume_kind_of_driver(""));
        assert_string_equal(requested("{\"name\": \"a\", \"type\": \"loop\"}", "flexgraft~loop", &error), "loop");
        assert_string_equal(requested("{\"name\": \"a\", \"type\": \"tmpfs\"}", "flexgraft~loop", &error), "refused");
        assert_non_null(strstr(error.reason, "tmpfs"));
}

static void a_type_that_is_none_is_refused_with_the_list(void **state)
{
        static const char *const words[] = { "floppy", "kata", "" };
        struct error error;
        char json[64];

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                (void)snprintf(json, sizeof json, "{\"name\": \"a\", \"type\": \"%s\"}", words[i]);
                assert_string_equal(requested(json, "", &error), "refused");
                assert_non_null(strstr(error.reason, VOLUME_TYPE_LIST));
        }
        assert_string_equal(requested("{\"name\": \"a\"}", "", &error), "none");
}

static void only_a_volume_of_a_pool_is_ephemeral(void **state)
{
        static const char yes[] = "{\"name\": \"a\", \"ephemeral\": true}";
        struct error error;

        (void)state;
        assert_string_equal(requested(yes, "", &error), "ephemeral");
        assert_string_equal(requested(yes, "flexgraft~lvm", &error), "ephemeral");
        assert_string_equal(requested(yes, "flexgraft~ephemeral", &error), "ephemeral");
        assert_string_equal(requested(yes, "flexgraft~tmpfs", &error), "refused");
        assert_string_equal(requested("{\"name\": \"a\", \"type\": \"bind\", \"ephemeral\": true}", "", &error),
                            "refused");
        assert_string_equal(requested("{\"name\": \"a\", \"type\": \"loop\", \"ephemeral\": \"false\"}", "", &error),
                            "loop");
        assert_string_equal(requested("{\"name\": \"a\", \"ephemeral\": \"perhaps\"}", "", &error), "refused");
        assert_non_null(strstr(error.reason, "must be true or false"));
}

static void options_imply_a_kind(void **state)
{
        (void)state;
        assert_string_equal(guessed("{\"name\": \"a\", \"volumegroup\": \"vg\", \"size\": 1}"), "lvm");
        assert_string_equal(guessed("{\"name\": \"a\", \"size\": 1}"), "loop");
        assert_string_equal(guessed("{\"name\": \"a\", \"server\": \"nas\", \"share\": \"/x\"}"), "nfs");
        assert_string_equal(guessed("{\"name\": \"a\", \"server\": \"nas\"}"), "none");
        assert_string_equal(guessed("{\"name\": \"a\", \"source\": \"/x\"}"), "none");
}

static void what_shows_the_kind_counts_in_one_order(void **state)
{
        struct volume_signs signs = { .requested = &kind_lvm,
                                      .of_record = "block",
                                      .of_driver = &kind_bind,
                                      .state_dir = "/nonexistent",
                                      .name = "a",
                                      .guessed = &kind_nfs };

        (void)state;
        assert_ptr_equal(volume_kind_choose(&signs), &kind_lvm);
        signs.requested = NULL;
        assert_ptr_equal(volume_kind_choose(&signs), &kind_block);
        signs.of_record = "floppy";
        assert_ptr_equal(volume_kind_choose(&signs), &kind_bind);
        signs.of_record = NULL;
        assert_ptr_equal(volume_kind_choose(&signs), &kind_bind);
        signs.of_driver = NULL;
        assert_ptr_equal(volume_kind_choose(&signs), &kind_nfs);
        signs.guessed = NULL;
        assert_null(volume_kind_choose(&signs));
}

static void a_type_that_is_refused_leaves_what_else_shows(void **state)
{
        struct volume_request request;
        struct volume_signs signs;
        struct error error = {};

        (void)state;
        parse("{\"name\": \"a\", \"type\": \"floppy\", \"size\": 1}", &request);
        assert_refused(volume_kind_read(&request, &kind_block, &signs, &error), EINVAL, error, "floppy");
        assert_null(signs.requested);
        assert_ptr_equal(signs.of_driver, &kind_block);
        assert_ptr_equal(signs.guessed, &kind_loop);
        volume_request_release(&request);
}

static void kata_wraps_kinds_with_a_device(void **state)
{
        const struct volume_kind *wrapper;
        struct volume_request request;
        struct error error = {};

        (void)state;
        parse("{\"name\": \"a\", \"kataContainers\": \"true\"}", &request);
        assert_int_equal(volume_kind_wrapper(&request, &kind_loop, &wrapper, &error), 0);
        assert_ptr_equal(wrapper, &kind_kata);
        assert_refused(volume_kind_wrapper(&request, &kind_tmpfs, &wrapper, &error), EINVAL, error, "tmpfs");
        volume_request_release(&request);
        parse("{\"name\": \"a\"}", &request);
        assert_int_equal(volume_kind_wrapper(&request, &kind_tmpfs, &wrapper, &error), 0);
        assert_null(wrapper);
        volume_request_release(&request);
}

static void a_hint_is_one_of_the_kind_of_a_pool_or_of_all(void **state)
{
        static const struct {
                const char *json;
                const char *operation;
                int errnum;
                const char *hint; /* a part of it; NULL: none */
        } cases[] = {
                { "{\"name\": \"a\", \"type\": \"nfs\"}", "fsconfig", EACCES, "exports(5)" },
                { "{\"name\": \"a\", \"server\": \"nas\", \"share\": \"/x\"}", "fsconfig", EACCES, "exports(5)" },
                { "{\"name\": \"a\", \"type\": \"loop\"}", "fsconfig", EACCES, NULL },
                { "{\"name\": \"a\", \"type\": \"block\"}", "find device", ENOENT, "lsblk" },
                { "{\"name\": \"a\", \"type\": \"tmpfs\"}", "find device", ENOENT, NULL },
                { "{\"name\": \"a\", \"source\": \"/x\"}", "find device", ENOENT, "lsblk" },
                { "{\"name\": \"a\", \"type\": \"loop\"}", "open pool", ENODEV, ".flexgraft-pool" },
                { "{\"name\": \"a\", \"type\": \"lvm\"}", "find volume group", ENOENT, "vgs" },
                { "{\"name\": \"a\", \"type\": \"pmem\"}", "find region", ENODEV, "ndctl" },
                { "{\"name\": \"a\", \"type\": \"tmpfs\"}", "check policy", EACCES, "policy.json" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct error error = { .operation = "", .errnum = cases[i].errnum };
                struct volume_request request;
                const char *hint;

                (void)snprintf(error.operation, sizeof error.operation, "%s", cases[i].operation);
                parse(cases[i].json, &request);
                hint = volume_kind_hint(&request, &error);
                if (cases[i].hint == NULL)
                        assert_null(hint);
                else
                        assert_true(hint != NULL && strstr(hint, cases[i].hint) != NULL);
                volume_request_release(&request);
        }
}

static void a_hint_is_none_of_a_kind_that_the_driver_does_not_have(void **state)
{
        struct error error = { .operation = OPERATION_FIND_DEVICE, .errnum = ENOENT };
        struct volume_request request;

        (void)state;
        parse("{\"name\": \"a\"}", &request);
        (void)snprintf(request.driver, sizeof request.driver, "flexgraft~block");
        assert_non_null(volume_kind_hint(&request, &error));
        (void)snprintf(request.driver, sizeof request.driver, "flexgraft~tmpfs");
        assert_null(volume_kind_hint(&request, &error));
        volume_request_release(&request);
}

static void numbers_and_booleans_are_texts(void **state)
{
        static const char *const expected[][2] = {
                { "a", "1" }, { "b", "22" }, { "c", "333" }, { "d", "4444" }, { "e", "true" }, { "f", "false" },
        };
        const char *texts[6];
        struct volume_request request;
        struct error error = {};

        (void)state;
        parse("{\"name\": \"n\", \"a\": 1, \"b\": 22, \"c\": 333, \"d\": 4444, \"e\": true, \"f\": false, \"g\": [1]}",
              &request);
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(volume_request_option(&request, expected[i][0], &texts[i], &error), 0);
        for (size_t i = 0; i < 6; i++)
                assert_string_equal(texts[i], expected[i][1]);
        assert_refused(volume_request_option(&request, "g", &texts[0], &error), EINVAL, error, "must be a string");
        volume_request_release(&request);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_is_whole),
                cmocka_unit_test(a_drivers_name_restricts_it_to_one_type),
                cmocka_unit_test(a_type_that_is_none_is_refused_with_the_list),
                cmocka_unit_test(only_a_volume_of_a_pool_is_ephemeral),
                cmocka_unit_test(options_imply_a_kind),
                cmocka_unit_test(what_shows_the_kind_counts_in_one_order),
                cmocka_unit_test(a_type_that_is_refused_leaves_what_else_shows),
                cmocka_unit_test(kata_wraps_kinds_with_a_device),
                cmocka_unit_test(a_hint_is_one_of_the_kind_of_a_pool_or_of_all),
                cmocka_unit_test(a_hint_is_none_of_a_kind_that_the_driver_does_not_have),
                cmocka_unit_test(numbers_and_booleans_are_texts),
        };

        return cmocka_run_group_tests_name("kinds of volumes", tests, NULL, NULL);
}
