/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "inject/injection.h"
#include "inject/request/request.h"
#include "inject/request/source.h"

/* The digest that a record keeps of a request, to know the same request again. */
static uint64_t digest_of(const char *options)
{
        static const struct source_kind *const sources[] = { &source_block, NULL };
        static struct injection injection;
        cleanup_request struct request request = {};
        struct error error = {};
        char text[256];
        char *argv[] = { (char *)"program", text, NULL };

        (void)snprintf(text, sizeof text,
                       "{\"container\": 1, \"source\": \"/dev/loop0\", \"target\": \"/b\", \"options\": \"%s\"}",
                       options);
        assert_int_equal(request_parse(&request, REQUEST_MOUNT, sources, 2, argv, &error), 0);
        injection = (struct injection){ .request = &request };
        return injection_digest(&injection);
}

static void other_options_are_another_request(void **state)
{
        (void)state;
        assert_true(digest_of("acl") == digest_of("acl"));
        assert_true(digest_of("acl") != digest_of("noacl"));
        assert_true(digest_of("commit=5") != digest_of("commit=6"));
        assert_true(digest_of("ro") != digest_of("noexec"));
}

/* A record can be read by whoever reads the disk: with the hash of a password in it, that could be guessed. */
static void no_secret_goes_into_a_digest(void **state)
{
        static const char *const names[] = { "pass",        "password", "passwd", "secretfile",
                                             "credentials", "keyring",  "token",  "username" };

        (void)state;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                char one[64];
                char other[64];

                (void)snprintf(one, sizeof one, "%s=a", names[i]);
                (void)snprintf(other, sizeof other, "%s=b", names[i]);
                if (digest_of(one) != digest_of(other))
                        fail_msg("the value of %s is in the digest", names[i]);
                assert_true(digest_of(one) != digest_of("acl"));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(other_options_are_another_request),
                cmocka_unit_test(no_secret_goes_into_a_digest),
        };

        return cmocka_run_group_tests_name("injections", tests, NULL, NULL);
}
