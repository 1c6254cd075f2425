/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "inject/request/request.h"
#include "inject/request/source.h"

/* source: the kind of one mount; NULL: it is another request. */
static int parse(enum request_kind kind, const struct source_kind *source, const char *text, struct request *request,
                 struct error *error)
{
        const struct source_kind *const one[] = { source, NULL };
        char *argv[] = { (char *)"program", (char *)text, NULL };

        *request = (struct request){};
        *error = (struct error){};
        return request_parse(request, kind, source != NULL ? one : source_kinds, 2, argv, error);
}

/* check_refused() - the request is refused as one that cannot be understood, and the key is named. */
static void check_refused(enum request_kind kind, const struct source_kind *source, const char *text, const char *key)
{
        cleanup_request struct request request;
        struct error error;

        assert_int_equal(parse(kind, source, text, &request, &error), -EINVAL);
        assert_string_equal(error.operation, OPERATION_PARSE);
        if (strcmp(error.subject, key) != 0)
                fail_msg("%s: names \"%s\" (%s), not \"%s\"", text, error.subject, error_why(&error), key);
}

static void a_bind_request_has_its_values_and_defaults(void **state)
{
        cleanup_request struct request request;
        struct error error;

        (void)state;
        assert_int_equal(parse(REQUEST_MOUNT, &source_bind,
                               "{\"container\": 4711, \"source\": \"/srv//a/\", \"target\": \"/data/./x/\"}", &request,
                               &error),
                         0);
        assert_int_equal(request.container.pid, 4711);
        assert_string_equal(request.target, "/data/x");
        assert_true(request.mkdir);
        assert_false(request.read_only);
        assert_false(request.replace);
        assert_int_equal(request.ids, IDS_AUTO);
        assert_int_equal(request.timeout_seconds, 30);
}

static void containers_are_named_in_four_ways(void **state)
{
        cleanup_request struct request by_id;
        cleanup_request struct request by_object;
        cleanup_request struct request by_dir;
        struct error error;

        (void)state;
        assert_int_equal(parse(REQUEST_MOUNT_LIST, NULL, "{\"container\": \"web\"}", &by_id, &error), 0);
        assert_string_equal(by_id.container.id, "web");
        assert_int_equal(parse(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"id\": \"web\", \"runtime\": \"crun\"}}",
                               &by_object, &error),
                         0);
        assert_string_equal(by_object.container.runtime, "crun");
        assert_int_equal(
                parse(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"procDir\": \"/proc/7\"}}", &by_dir, &error), 0);
        assert_string_equal(by_dir.container.proc_dir, "/proc/7");
}

static void containers_named_badly_are_refused(void **state)
{
        (void)state;
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": 0}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": -5}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": 4294967297}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": 1.5}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"pid\": 1, \"id\": \"web\"}}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": {}}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"pid\": 1, \"runtime\": \"crun\"}}", "container");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"id\": \"web\", \"runtime\": \"other\"}}",
                      "container.runtime");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"id\": \"web\", \"more\": 1}}", "container.more");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": {\"procDir\": \"proc/7\"}}", "container.procDir");
        check_refused(REQUEST_MOUNT_LIST, NULL, "{\"container\": \"../web\"}", "container");
}

static void a_key_of_another_program_is_unknown(void **state)
{
        (void)state;
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"fsType\": \"ext4\"}", "fsType");
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"colour\": 1}", "colour");
        check_refused(REQUEST_MOUNT_REMOVE, NULL, "{\"id\": \"a\", \"readOnly\": true}", "readOnly");
}

static void what_is_missing_is_named(void **state)
{
        (void)state;
        check_refused(REQUEST_MOUNT, &source_bind, "{\"source\": \"/a\", \"target\": \"/b\"}", "container");
        check_refused(REQUEST_MOUNT, &source_bind, "{\"container\": 1, \"target\": \"/b\"}", "source");
        check_refused(REQUEST_MOUNT, &source_bind, "{\"container\": 1, \"source\": \"/a\"}", "target");
        check_refused(REQUEST_MOUNT_REMOVE, NULL, "{\"container\": 1}", "id");
        check_refused(REQUEST_MOUNT_REMOVE, NULL, "{\"id\": \"a\", \"container\": 1, \"target\": \"/b\"}", "id");
        check_refused(REQUEST_MOUNT, &source_overlay, "{\"container\": 1, \"target\": \"/b\"}", "lower");
}

static void targets_are_absolute_and_not_the_root(void **state)
{
        (void)state;
        check_refused(REQUEST_MOUNT, &source_bind, "{\"container\": 1, \"source\": \"/a\", \"target\": \"b\"}",
                      "target");
        check_refused(REQUEST_MOUNT, &source_bind, "{\"container\": 1, \"source\": \"/a\", \"target\": \"/\"}",
                      "target");
        check_refused(REQUEST_MOUNT, &source_bind, "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\\u0000c\"}",
                      "target");
}

static void flags_are_booleans_and_words_come_from_their_list(void **state)
{
        (void)state;
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"readOnly\": \"true\"}", "readOnly");
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"ids\": \"mine\"}", "ids");
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"propagation\": \"down\"}",
                      "propagation");
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"timeoutSeconds\": 0}",
                      "timeoutSeconds");
        check_refused(REQUEST_MOUNT, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"timeoutSeconds\": 3601}",
                      "timeoutSeconds");
}

static void a_batch_takes_entries_of_an_oci_mounts_array(void **state)
{
        cleanup_request struct request request;
        struct error error;

        (void)state;
        assert_int_equal(parse(REQUEST_MOUNT_BATCH, NULL,
                               "{\"container\": 1, \"mounts\": [{\"destination\": \"/b/c\", \"type\": \"bind\", "
                               "\"source\": \"/a\","
                               " \"options\": [\"rbind\", \"ro\"]}, {\"type\": \"tmpfs\", \"target\": \"/b\"}]}",
                               &request, &error),
                         0);
        assert_int_equal(request.entry_count, 2);
        /* parents come before children */
        assert_string_equal(request.entries[0].target, "/b");
        assert_ptr_equal(request.entries[0].source_kind, &source_tmpfs);
        assert_string_equal(request.entries[1].target, "/b/c");
        assert_true(request.entries[1].read_only);
        assert_true(request.entries[1].recursive);
}

static void one_argument_is_needed(void **state)
{
        char *argv[] = { (char *)"program", (char *)"{}", (char *)"{}", NULL };
        cleanup_request struct request request = {};
        cleanup_request struct request more = {};
        struct error error;

        (void)state;
        assert_int_equal(request_parse(&request, REQUEST_MOUNT_LIST, source_kinds, 1, argv, &error), -EINVAL);
        assert_int_equal(request_parse(&more, REQUEST_MOUNT_LIST, source_kinds, 3, argv, &error), -EINVAL);
        check_refused(REQUEST_MOUNT_LIST, NULL, "[]", "the request");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bind_request_has_its_values_and_defaults),
                cmocka_unit_test(containers_are_named_in_four_ways),
                cmocka_unit_test(containers_named_badly_are_refused),
                cmocka_unit_test(a_key_of_another_program_is_unknown),
                cmocka_unit_test(what_is_missing_is_named),
                cmocka_unit_test(targets_are_absolute_and_not_the_root),
                cmocka_unit_test(flags_are_booleans_and_words_come_from_their_list),
                cmocka_unit_test(a_batch_takes_entries_of_an_oci_mounts_array),
                cmocka_unit_test(one_argument_is_needed),
        };

        return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
