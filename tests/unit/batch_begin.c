/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "inject/request/source.h"
#include "named/batch_begin.h"

static struct batch_asked asked;

static void read_it(const char *request, bool batch)
{
        asked = (struct batch_asked){};
        batch_asked_read(request, batch, &asked);
}

static void a_batch_that_is_clear_has_no_volume_and_tells_of_the_daemon(void **state)
{
        static const char *const entries[] = {
                "{\"type\": \"%s\", \"source\": \"/a\", \"target\": \"/b\"}",
                "{\"type\" :\t\"%s\", \"ids\": \"remap\"}",
                "{\"type\": \"%s\", \"fallback\": \"remap\"}",
                "{\"type\": \"%s\", \"volume\": \"a\", \"replace\": true}",
                "{\"t\\u0079pe\": \"%s\"}",
                "{\"type\": \"\\u0076olume\", \"source\": \"%s\"}",
        };
        char entry[128];
        char request[256];
        bool remap;

        (void)state;
        for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
                for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                        (void)snprintf(entry, sizeof entry, entries[i], (*kind)->word);
#pragma GCC diagnostic pop
                        (void)snprintf(request, sizeof request, "{\"container\": {}, \"mounts\": [%s]}", entry);
                        read_it(request, /* batch= */ true);
                        if (batch_is_clear(request, &remap) &&
                            (asked.count != 0 || asked.all || (asked.remap && !remap)))
                                fail_msg("%s is clear without a parser", request);
                }
        assert_false(batch_is_clear("{\"wanted\": true}", &remap));
        assert_false(batch_is_clear("", &remap));
        assert_true(batch_is_clear("{\"mounts\": [{\"type\": \"bind\"}]}", &remap));
        assert_false(remap);
}

static void a_volume_that_is_clear_is_the_one_that_the_parser_finds(void **state)
{
        static const char *const requests[] = {
                "{\"volume\": \"a\", \"target\": \"/b\"}",
                "{\"target\": \"/b\",\"volume\"\n:\t\"a b\"}",
                "{\"volume\": \"a\", \"replace\": true}",
                "{\"volume\": \"a\\u0062\"}",
                "{\"source\": \"volume\", \"volume\": \"a\"}",
                "{\"target\": \"volume\"}",
                "{\"volume\": 1}",
                "{\"volume\": [\"a\"]}",
        };
        char name[VOLUME_NAME_MAX];
        unsigned clear = 0;

        (void)state;
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
                if (!batch_volume_is_clear(requests[i], name))
                        continue;
                clear++;
                read_it(requests[i], /* batch= */ false);
                assert_int_equal(asked.count, 1);
                assert_false(asked.all || asked.replaces);
                assert_string_equal(asked.names[0], name);
        }
        assert_int_equal(clear, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_batch_that_is_clear_has_no_volume_and_tells_of_the_daemon),
                cmocka_unit_test(a_volume_that_is_clear_is_the_one_that_the_parser_finds),
        };

        return cmocka_run_group_tests_name("helper processes of batches", tests, NULL, NULL);
}
