/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "volume/exec_helpers.h"
#include "volume/kinds.h"

/* The verbs whose options say which programs run. */
static const enum verb verbs[] = { VERB_MOUNT,        VERB_ATTACH,      VERB_WAITFORATTACH,
                                   VERB_EXPANDVOLUME, VERB_MOUNTDEVICE, VERB_EXPANDFS };

static bool is_clear(enum verb verb, const char *json)
{
        char *argv[] = { (char *)"verb", (char *)"/mnt", (char *)json, NULL };

        return volume_exec_helpers_clearly_none(verb, 3, argv);
}

/* Whether a parser agrees that the verb runs nothing: it refuses the options, or they say such a kind. */
static bool runs_nothing(enum verb verb, const char *json)
{
        char *argv[] = { (char *)"getvolumename", (char *)json, NULL };
        struct volume_request request = {};
        struct volume_signs signs;
        struct error ignored;
        bool nothing = true;

        if (volume_request_parse(&request, VERB_GETVOLUMENAME, 2, argv, &ignored) == 0 &&
            volume_kind_read(&request, /* of_driver= */ NULL, &signs, &ignored) == 0)
                nothing = signs.requested != NULL && volume_exec_helpers_of(signs.requested, verb) == 0;
        volume_request_release(&request);
        return nothing;
}

static void what_is_clear_without_a_parser_is_what_the_parser_says(void **state)
{
        static const char *const forms[] = {
                "{\"name\": \"a\", \"type\": \"%s\"}",
                "{\"type\"\n:\t\"%s\",\"name\":\"a\"}",
                "{\"name\": \"a\", \"type\": \"%s\", \"ephemeral\": true}",
                "{\"name\": \"a\", \"type\": \"%s\", \"ephemeral\": \"false\"}",
                "{\"name\": \"a\", \"type\": \"%s\", \"kataContainers\": \"true\"}",
                "{\"name\": \"a\", \"x\": {\"type\": \"%s\"}}",
                "{\"name\": \"a\", \"x\": [{\"type\": \"%s\"}], \"volumegroup\": \"vg\"}",
                "{\"name\": \"a\", \"x\": \"type\", \"y\": \"%s\"}",
                "{\"name\": \"type\", \"x\": \"%s\"}",
                "{\"name\": \"%s\", \"type\": \"\", \"volumegroup\": \"vg\"}",
                "{\"name\": \"a\", \"type\": \"%s\", \"type\": \"lvm\"}",
                "{\"name\": \"a\", \"type\": \"%s\"",
                "{\"name\": \"a\", \"t\\u0079pe\": \"%s\"}",
                "{\"name\": \"a\", \"typ\": \"%s\"}",
        };
        char json[256];

        (void)state;
        for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++)
                for (size_t i = 0; volume_kinds[i] != NULL; i++)
                        for (size_t j = 0; j < sizeof verbs / sizeof verbs[0]; j++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                                (void)snprintf(json, sizeof json, forms[form], volume_kinds[i]->word);
#pragma GCC diagnostic pop
                                if (is_clear(verbs[j], json) && !runs_nothing(verbs[j], json))
                                        fail_msg("%s is clear to %s without a parser", json,
                                                 volume_verb_word(verbs[j]));
                        }
}

static void a_plain_type_that_runs_nothing_is_clear(void **state)
{
        char *twice[] = { (char *)"verb", (char *)"{\"type\": \"loop\"}", (char *)"{\"name\": \"a\"}", NULL };

        (void)state;
        assert_true(is_clear(VERB_MOUNT, "{\"name\": \"a\", \"type\": \"tmpfs\"}"));
        assert_true(is_clear(VERB_ATTACH, "{\"name\": \"a\", \"type\" : \"loop\", \"size\": \"1Mi\"}"));
        assert_false(is_clear(VERB_ATTACH, "{\"name\": \"a\", \"type\": \"lvm\"}"));
        assert_true(is_clear(VERB_MOUNT, "{\"type\": \"nfs\", \"server\": \"[fe80::1]\", \"share\": \"/{x}\"}"));
        assert_false(is_clear(VERB_ATTACH, "{\"name\": \"a\"}"));
        assert_false(volume_exec_helpers_clearly_none(VERB_ATTACH, 3, twice));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_clear_without_a_parser_is_what_the_parser_says),
                cmocka_unit_test(a_plain_type_that_runs_nothing_is_clear),
        };

        return cmocka_run_group_tests_name("exec helpers", tests, NULL, NULL);
}
