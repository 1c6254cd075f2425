/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "volume/request.h"

#define NAME "\"kubernetes.io/pvOrVolumeName\": \"pvc-1\""

static int parse(enum verb verb, const char *first, const char *second, struct volume_request *request,
                 struct error *error)
{
        char *argv[] = { (char *)"verb", (char *)first, (char *)second, NULL };

        *request = (struct volume_request){};
        *error = (struct error){};
        return volume_request_parse(request, verb, second == NULL ? 2 : 3, argv, error);
}

static void kubelets_options_are_read(void **state)
{
        struct volume_request request;
        struct error error;

        (void)state;
        assert_int_equal(
                parse(VERB_ATTACH,
                      "{" NAME
                      ", \"kubernetes.io/fsType\": \"ext4\", \"kubernetes.io/readwrite\": \"ro\", \"size\": \"1Gi\","
                      " \"mountOptions\": \"noatime,suid\", \"unknown\": \"x\"}",
                      "node-1", &request, &error),
                0);
        assert_string_equal(request.name, "pvc-1");
        assert_string_equal(request.node, "node-1");
        assert_string_equal(request.fs_type, "ext4");
        assert_true(request.read_only);
        volume_request_release(&request);
}

static void kubelets_name_and_filesystem_override_those_of_the_volume(void **state)
{
        struct volume_request request;
        struct error error;

        (void)state;
        assert_int_equal(parse(VERB_GETVOLUMENAME,
                               "{\"name\": \"own\", \"fsType\": \"xfs\", " NAME ", \"kubernetes.io/fsType\": \"ext4\"}",
                               NULL, &request, &error),
                         0);
        assert_string_equal(request.name, "pvc-1");
        assert_string_equal(request.fs_type, "ext4");
        volume_request_release(&request);
        assert_int_equal(parse(VERB_GETVOLUMENAME,
                               "{\"kubernetes.io/fsType\": \"\", \"fsType\": \"xfs\", \"name\": \"own\"}", NULL,
                               &request, &error),
                         0);
        assert_string_equal(request.name, "own");
        assert_string_equal(request.fs_type, "xfs");
        volume_request_release(&request);
}

/* Secrets are dropped before anything can see them, and no message quotes what broken JSON holds. */
static void secrets_are_in_no_request_and_no_message(void **state)
{
        struct volume_request request;
        struct error error;
        const char *value;

        (void)state;
        assert_int_equal(parse(VERB_GETVOLUMENAME, "{" NAME ", \"kubernetes.io/secret/key\": \"c2VjcmV0\"}", NULL,
                               &request, &error),
                         0);
        assert_int_equal(volume_request_option(&request, "kubernetes.io/secret/key", &value, &error), 0);
        assert_null(value);
        volume_request_release(&request);
        assert_int_equal(
                parse(VERB_GETVOLUMENAME, "{" NAME ", \"kubernetes.io/secret/key\": c2VjcmV0}", NULL, &request, &error),
                -EINVAL);
        assert_null(strstr(error_why(&error), "c2Vj"));
        assert_null(strstr(error.subject, "c2Vj"));
        volume_request_release(&request);
        assert_int_equal(parse(VERB_GETVOLUMENAME, "{\"a\": \"b\", \"c2VjcmV0\" 2}", NULL, &request, &error), -EINVAL);
        assert_null(strstr(error_why(&error), "c2Vj"));
        volume_request_release(&request);
}

static void a_volume_needs_a_name(void **state)
{
        static char long_name[1200];
        static char text[1300];
        struct volume_request request;
        struct error error;

        (void)state;
        assert_refused(parse(VERB_GETVOLUMENAME, "{}", NULL, &request, &error), EINVAL, error, "pvOrVolumeName");
        volume_request_release(&request);
        memset(long_name, 'n', sizeof long_name - 1);
        (void)snprintf(text, sizeof text, "{\"name\": \"%s\"}", long_name);
        assert_refused(parse(VERB_GETVOLUMENAME, text, NULL, &request, &error), EINVAL, error, "too long");
        volume_request_release(&request);
}

static void wrong_values_are_refused_by_key(void **state)
{
        static const struct {
                const char *text;
                const char *key;
        } cases[] = {
                { "{" NAME ", \"kubernetes.io/readwrite\": \"maybe\"}", "readwrite" },
                { "{" NAME ", \"readOnly\": \"yes\"}", "readOnly: must be true or false" },
                { "{" NAME ", \"fsType\": \"ext4/../x\"}", "fsType" },
                { "{" NAME ", \"kubernetes.io/fsType\": \"ext4/../x\"}", "fsType" },
                { "{" NAME ", \"kubernetes.io/fsType\": [\"ext4\"]}", "fsType" },
                { "{" NAME ", \"mountOptions\": \"a\\u0000b\"}", "mountOptions" },
                { "[]", "the options" },
        };
        struct volume_request request;
        struct error error;

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                assert_refused(parse(VERB_GETVOLUMENAME, cases[i].text, NULL, &request, &error), EINVAL, error,
                               cases[i].key);
                volume_request_release(&request);
        }
}

static void directories_are_absolute_and_do_not_climb(void **state)
{
        static const char *const refused[] = { "", "pods/x", "/", "/pods/../../etc" };
        struct volume_request request;
        struct error error;

        (void)state;
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
                assert_refused(parse(VERB_UNMOUNT, refused[i], NULL, &request, &error), EINVAL, error, "DIR");
        assert_int_equal(parse(VERB_UNMOUNT, "/pods//x/./y/", NULL, &request, &error), 0);
        assert_string_equal(request.dir, "/pods/x/y");
}

static void a_wrong_number_of_arguments_names_those_of_the_verb(void **state)
{
        struct volume_request request;
        struct error error;

        (void)state;
        assert_refused(parse(VERB_ATTACH, "{" NAME "}", NULL, &request, &error), EINVAL, error, "JSON NODE");
        assert_refused(parse(VERB_UNMOUNT, "/a", "/b", &request, &error), EINVAL, error, "DIR");
}

static void sizes_are_numbers_of_bytes_with_units(void **state)
{
        struct volume_request request;
        struct error error;
        uint64_t bytes;

        (void)state;
        assert_int_equal(parse(VERB_GETVOLUMENAME, "{" NAME ", \"size\": \"1Gi\", \"bad\": \"1x\", \"empty\": \"\"}",
                               NULL, &request, &error),
                         0);
        assert_int_equal(volume_request_size(&request, "size", &bytes, &error), 0);
        assert_true(bytes == 1ULL << 30);
        assert_int_equal(volume_request_size(&request, "empty", &bytes, &error), 0);
        assert_true(bytes == 0);
        assert_int_equal(volume_request_size(&request, "bad", &bytes, &error), -EINVAL);
        volume_request_release(&request);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kubelets_options_are_read),
                cmocka_unit_test(kubelets_name_and_filesystem_override_those_of_the_volume),
                cmocka_unit_test(secrets_are_in_no_request_and_no_message),
                cmocka_unit_test(a_volume_needs_a_name),
                cmocka_unit_test(wrong_values_are_refused_by_key),
                cmocka_unit_test(directories_are_absolute_and_do_not_climb),
                cmocka_unit_test(a_wrong_number_of_arguments_names_those_of_the_verb),
                cmocka_unit_test(sizes_are_numbers_of_bytes_with_units),
        };

        return cmocka_run_group_tests_name("volume requests", tests, NULL, NULL);
}
