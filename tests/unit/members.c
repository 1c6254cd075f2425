/* SPDX-License-Identifier: Apache-2.0 */
/* One list of members makes an object and describes it. */
#include "unit.h"

#include "base/schema.h"

#define ONE 1
#define OTHER 2

struct thing {
        const char *name;
        const char *note;
        int size;
};

/* clang-format off */
#define THING(X) \
        X("name", ONE | OTHER, ONE | OTHER, thing->name != NULL ? json_string(thing->name) : NULL, \
          KEY_ANY, .help = "its name") \
        X("size", OTHER, OTHER, json_integer(thing->size), KEY_COUNT, .help = "bytes") \
        X("note", ONE | OTHER, 0, members_text(thing->note), KEY_ANY, .help = "what else there is to say")
/* clang-format on */

static const struct key thing_rows[] = { THING(MEMBER_ROW) };
static const struct key_table thing_keys = KEY_TABLE(thing_rows);

static json_t *thing_object(const struct thing *thing, unsigned programs)
{
        struct members members = { .programs = programs };

        THING(MEMBER_PUT)
        return members_end(&members);
}

static void check_is(json_t *object, const char *json)
{
        json_t *expected = json_loads(json, 0, NULL);

        assert_non_null(expected);
        if (!json_equal(object, expected))
                fail_msg("is no %s", json);
        json_decref(expected);
        json_decref(object);
}

static void an_object_has_the_members_of_its_program(void **state)
{
        const struct thing thing = { .name = "a", .note = "b", .size = 3 };

        (void)state;
        check_is(thing_object(&thing, ONE), "{\"name\": \"a\", \"note\": \"b\"}");
        check_is(thing_object(&thing, OTHER), "{\"name\": \"a\", \"size\": 3, \"note\": \"b\"}");
}

static void what_may_be_missing_is_left_out(void **state)
{
        const struct thing thing = { .name = "a", .note = "" };

        (void)state;
        check_is(thing_object(&thing, ONE), "{\"name\": \"a\"}");
}

static void without_a_member_that_has_to_be_there_is_no_object(void **state)
{
        const struct thing thing = { .note = "b" };

        (void)state;
        assert_null(thing_object(&thing, ONE));
}

static void its_schema_has_the_same_members(void **state)
{
        json_t *schema = schema_of_keys(&thing_keys, OTHER, /* texts= */ false);
        json_t *properties = json_object_get(schema, "properties");

        (void)state;
        assert_int_equal(json_object_size(properties), 3);
        assert_non_null(json_object_get(properties, "size"));
        check_is(json_incref(json_object_get(schema, "required")), "[\"name\", \"size\"]");
        json_decref(schema);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_object_has_the_members_of_its_program),
                cmocka_unit_test(what_may_be_missing_is_left_out),
                cmocka_unit_test(without_a_member_that_has_to_be_there_is_no_object),
                cmocka_unit_test(its_schema_has_the_same_members),
        };

        return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
