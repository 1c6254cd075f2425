/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "container/identity.h"
#include "state/wish.h"

#define FULL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *dir;
static struct state state = STATE_NONE;

static int begin(void **unused)
{
        struct error error;

        (void)unused;
        dir = unit_directory();
        return wish_open(dir, /* create= */ true, &state, &error);
}

static int end(void **unused)
{
        (void)unused;
        state_release(&state);
        return unit_remove(dir);
}

static json_t *entry(const char *target, const char *source)
{
        cleanup_json json_t *request = json_pack("{s:s, s:s, s:s}", "type", "bind", "source", source, "target", target);

        return wish_entry("an-id", "web", target, "", request);
}

/* What was wanted there before: its source; "" nothing. */
static const char *put(const char *identity, const char *target, const char *source)
{
        static char before[64];
        cleanup_json json_t *wish = source != NULL ? entry(target, source) : NULL;
        struct wish_change change = {};
        struct error error;
        int r = wish_put(&state, identity, target, wish, &change, &error);
        cleanup_json json_t *old = change.before;

        assert_int_equal(r, 0);
        assert_int_equal(change.begun, !json_equal(old, wish) && (old != NULL || wish != NULL));
        (void)snprintf(before, sizeof before, "%s",
                       old != NULL ? json_string_value(json_object_get(json_object_get(old, "request"), "source"))
                                   : "");
        return before;
}

static size_t count(const char *identity)
{
        cleanup_wish struct wish_record wish = {};
        struct error error;
        int r = wish_read(&state, identity, &wish, &error);

        return r == -ENOENT ? 0 : json_array_size(wish.mounts);
}

static void one_target_has_one_wish_and_the_last_one_counts(void **unused)
{
        (void)unused;
        assert_string_equal(put(FULL, "/a", "/one"), "");
        assert_string_equal(put(FULL, "/b", "/two"), "");
        assert_string_equal(put(FULL, "/a", "/three"), "/one");
        assert_int_equal(count(FULL), 2);
        assert_string_equal(put(FULL, "/a", NULL), "/three");
        assert_string_equal(put(FULL, "/a", NULL), "");
        assert_int_equal(count(FULL), 1);
        assert_true(wish_any(dir));
        assert_string_equal(put(FULL, "/b", NULL), "/two");
        assert_int_equal(count(FULL), 0);
        assert_false(wish_any(dir));
}

static void a_container_has_the_wishes_of_no_other_one(void **unused)
{
        cleanup_wish struct wish_record wish = {};
        char old[128];
        char new[128];
        char key[WISH_KEY_SIZE];
        struct error error;

        (void)unused;
        (void)put("web@1.2.3", "/a", "/one");
        assert_int_equal(count("web@1.2.4"), 0);
        wish_key("web@1.2.3", key);
        (void)snprintf(old, sizeof old, "%s/wanted/%s.json", dir, key);
        wish_key("web@1.2.4", key);
        (void)snprintf(new, sizeof new, "%s/wanted/%s.json", dir, key);
        assert_int_equal(rename(old, new), 0); /* as if both had the same hash */
        assert_int_equal(wish_read(&state, "web@1.2.4", &wish, &error), -ENOENT);
        assert_int_equal(unlink(new), 0);
}

static void a_damaged_file_is_an_error_and_stays(void **unused)
{
        static const char *const texts[] = { "{", "{\"version\": 1, \"container\": \"web@1\", \"mounts\": [{}]}",
                                             "{\"version\": 1, \"container\": \"\", \"mounts\": []}",
                                             "{\"version\": 1, \"container\": \"web@1\", \"mounts\": [{\"target\": "
                                             "\"a\", \"id\": \"b\", \"request\": {}}]}" };
        char path[128];
        char key[WISH_KEY_SIZE];

        (void)unused;
        wish_key("web@1", key);
        (void)snprintf(path, sizeof path, "%s/wanted/%s.json", dir, key);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                cleanup_wish struct wish_record wish = {};
                struct error error;
                struct stat st;

                unit_write(path, texts[i]);
                assert_refused(wish_read(&state, "web@1", &wish, &error), EBADMSG, error, "damaged");
                assert_int_equal(stat(path, &st), 0);
        }
        assert_int_equal(unlink(path), 0);
}

static void more_than_fit_are_refused(void **unused)
{
        cleanup_json json_t *wish = entry("/last", "/one");
        struct wish_change change = {};
        struct error error;
        char target[16];

        (void)unused;
        for (int i = 0; i < WISH_MAX; i++) {
                (void)snprintf(target, sizeof target, "/%d", i);
                (void)put(FULL, target, "/one");
        }
        assert_refused(wish_put(&state, FULL, "/last", wish, &change, &error), E2BIG, error, "256 mounts");
        assert_false(change.begun);
        for (int i = 0; i < WISH_MAX; i++) {
                (void)snprintf(target, sizeof target, "/%d", i);
                (void)put(FULL, target, NULL);
        }
}

/* The identities of the files that are looked at. */
static char found[256];

static int note(void *record, const char *file, void *argument, struct error *error)
{
        const struct wish_record *wish = record;

        (void)file;
        (void)argument;
        (void)error;
        (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", wish->container);
        return 0;
}

static const char *called(const char *name)
{
        struct error error;

        found[0] = '\0';
        assert_int_equal(wish_each_called(&state, name, note, NULL, &error), 0);
        return found;
}

static void what_is_wanted_is_found_by_what_its_container_is_called(void **unused)
{
        struct error error;

        (void)unused;
        (void)put(FULL, "/a", "/one");
        (void)put(FULL, "/b", "/one");
        (void)put("db@1.2.3", "/a", "/one");
        (void)put("user/1000/" FULL, "/a", "/one");
        assert_string_equal(called(FULL), FULL " ");
        assert_string_equal(called("0123456789ab"), FULL " ");
        assert_string_equal(called("0123456789a"), "");
        assert_string_equal(called("user/1000/0123456789abcd"), "user/1000/" FULL " ");
        assert_string_equal(called("db"), "db@1.2.3 ");
        assert_true(strlen(called("web")) == 2 * sizeof FULL + strlen("user/1000/") + strlen("db@1.2.3 "));
        found[0] = '\0';
        assert_int_equal(wish_each_of_id(&state, "an-id", note, NULL, &error), 0);
        assert_true(strlen(found) == 2 * sizeof FULL + strlen("user/1000/") + strlen("db@1.2.3 "));
        (void)put(FULL, "/a", NULL);
        assert_string_equal(called(FULL), FULL " ");
        (void)put(FULL, "/b", NULL);
        (void)put("db@1.2.3", "/a", NULL);
        (void)put("user/1000/" FULL, "/a", NULL);
        assert_string_equal(called("web"), "");
}

static void a_full_id_is_an_identity_and_a_name_needs_its_bundle(void **unused)
{
        char bundle[128];
        char one[CONTAINER_IDENTITY_MAX];
        char other[CONTAINER_IDENTITY_MAX];

        (void)unused;
        (void)container_identity_oci(FULL, "", one);
        assert_string_equal(one, FULL);
        (void)container_identity_oci("web", "", one);
        assert_string_equal(one, "");
        (void)container_identity_oci("web", "/nonexistent", one);
        assert_string_equal(one, "");
        (void)snprintf(bundle, sizeof bundle, "%s/bundle", dir);
        assert_int_equal(mkdir(bundle, 0700), 0);
        (void)container_identity_oci("web", bundle, one);
        if (one[0] == '\0')
                skip(); /* this filesystem does not know when a directory was made */
        (void)container_identity_oci("web", bundle, other);
        assert_string_equal(one, other);
        assert_int_equal(rmdir(bundle), 0);
        clock_pause_ms(200); /* the clock of files ticks every 10 ms or less, while its processor is not away */
        assert_int_equal(mkdir(bundle, 0700), 0);
        (void)container_identity_oci("web", bundle, other);
        assert_string_not_equal(one, other);
}

static void a_container_is_called_by_its_name_or_the_beginning_of_a_full_id(void **unused)
{
        (void)unused;
        assert_true(container_identity_called("web@1.2.3", "web"));
        assert_true(container_identity_called("web@4@1.2.3", "web@4"));
        assert_false(container_identity_called("web@1.2.3", "we"));
        assert_false(container_identity_called("web@1.2.3", "web@1.2.3"));
        assert_true(container_identity_called(FULL, FULL));
        assert_true(container_identity_called(FULL, "0123456789ab"));
        assert_false(container_identity_called(FULL, "0123456789a"));
        assert_true(container_identity_called("unit/web.service", "unit/web.service"));
        assert_false(container_identity_called("unit/web.service", "web.service"));
        assert_true(container_identity_called("user/7/" FULL, "user/7/0123456789ab"));
        assert_false(container_identity_called("user/7/" FULL, "0123456789ab"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_target_has_one_wish_and_the_last_one_counts),
                cmocka_unit_test(a_container_has_the_wishes_of_no_other_one),
                cmocka_unit_test(a_damaged_file_is_an_error_and_stays),
                cmocka_unit_test(more_than_fit_are_refused),
                cmocka_unit_test(what_is_wanted_is_found_by_what_its_container_is_called),
                cmocka_unit_test(a_full_id_is_an_identity_and_a_name_needs_its_bundle),
                cmocka_unit_test(a_container_is_called_by_its_name_or_the_beginning_of_a_full_id),
        };

        return cmocka_run_group_tests_name("wishes", tests, begin, end);
}
