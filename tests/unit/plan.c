/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "inject/plan.h"
#include "inject/request/request.h"
#include "inject/request/source.h"

static bool has(const struct plan *plan, enum step step)
{
        for (size_t i = 0; i < plan->count; i++)
                if (plan->steps[i] == step)
                        return true;
        return false;
}

static size_t place_of(const struct plan *plan, enum step step)
{
        for (size_t i = 0; i < plan->count; i++)
                if (plan->steps[i] == step)
                        return i;
        fail_msg("the plan has no step %d", (int)step);
        return 0;
}

static void make(const struct source_kind *kind, const char *text, struct request *request, struct plan *plan)
{
        const struct source_kind *const sources[] = { kind, NULL };
        char *argv[] = { (char *)"program", (char *)text, NULL };
        struct error error = {};

        *request = (struct request){};
        if (request_parse(request, kind != NULL ? REQUEST_MOUNT : REQUEST_MOUNT_REMOVE, sources, 2, argv, &error) < 0)
                fail_msg("%s: %s", text, error_why(&error));
        plan_make(plan, request);
}

#define BIND "\"container\": 1, \"source\": \"/a\", \"target\": \"/b\""

static void the_record_is_written_before_the_mount_is_placed(void **state)
{
        cleanup_request struct request request;
        struct plan plan;

        (void)state;
        make(&source_bind, "{" BIND "}", &request, &plan);
        assert_true(place_of(&plan, STEP_PIN_CONTAINER) == 0);
        assert_true(place_of(&plan, STEP_CLAIM) < place_of(&plan, STEP_LOOK));
        assert_true(place_of(&plan, STEP_SET_ATTRIBUTES) < place_of(&plan, STEP_RECORD));
        assert_true(place_of(&plan, STEP_RECORD) < place_of(&plan, STEP_MAKE_TARGET));
        assert_true(place_of(&plan, STEP_MAKE_TARGET) < place_of(&plan, STEP_PLACE));
        assert_true(place_of(&plan, STEP_CONFIRM) == plan.count - 1);
}

static void a_target_is_not_made_where_mkdir_is_false(void **state)
{
        cleanup_request struct request request;
        struct plan plan;

        (void)state;
        make(&source_bind, "{" BIND ", \"mkdir\": false}", &request, &plan);
        assert_false(has(&plan, STEP_MAKE_TARGET));
}

/* What a container may have written is locked: its device files must not work in another container. */
static void content_that_is_foreign_is_locked(void **state)
{
        static const struct {
                const struct source_kind *kind;
                const char *text;
                bool locked;
        } cases[] = {
                { &source_bind, "{" BIND "}", false },
                { &source_bind, "{" BIND ", \"locked\": true}", true },
                { &source_tmpfs, "{\"container\": 1, \"target\": \"/b\"}", false },
                { &source_block, "{\"container\": 1, \"source\": \"/dev/loop0\", \"target\": \"/b\"}", true },
                { &source_block, "{\"container\": 1, \"source\": \"/dev/loop0\", \"target\": \"/b\", \"raw\": true}",
                  false },
                { &source_image, "{\"container\": 1, \"source\": \"/x\", \"target\": \"/b\"}", true },
                { &source_overlay, "{\"container\": 1, \"lower\": [\"/x\", \"/y\"], \"target\": \"/b\"}", true },
                { &source_nfs, "{\"container\": 1, \"source\": \"nas:/x\", \"target\": \"/b\"}", true },
                { &source_container,
                  "{\"from\": {\"container\": 1, \"path\": \"/x\"}, \"to\": {\"container\": 2, \"path\": \"/b\"}}",
                  true },
        };

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                cleanup_request struct request request;
                struct plan plan;

                make(cases[i].kind, cases[i].text, &request, &plan);
                if (has(&plan, STEP_LOCK) != cases[i].locked)
                        fail_msg("locked or not, against the rule: %s", cases[i].text);
        }
}

static void only_a_raw_device_is_allowed_in_the_control_group(void **state)
{
        cleanup_request struct request raw;
        cleanup_request struct request mounted;
        struct plan plan;

        (void)state;
        make(&source_block, "{\"container\": 1, \"source\": \"/dev/loop0\", \"target\": \"/b\", \"raw\": true}", &raw,
             &plan);
        assert_string_equal(step_text(STEP_MAKE, raw.source_kind), "create a device node for it, detached");
        assert_true(place_of(&plan, STEP_ALLOW_DEVICE) < place_of(&plan, STEP_PLACE));
        make(&source_block, "{\"container\": 1, \"source\": \"/dev/loop0\", \"target\": \"/b\"}", &mounted, &plan);
        assert_false(has(&plan, STEP_ALLOW_DEVICE));
        assert_string_equal(step_text(STEP_MAKE, mounted.source_kind), "mount the filesystem, detached");
}

static void a_removal_forgets_last(void **state)
{
        cleanup_request struct request request;
        struct plan plan;

        (void)state;
        make(/* kind= */ NULL, "{\"id\": \"x\"}", &request, &plan);
        assert_true(place_of(&plan, STEP_FIND_RECORD) < place_of(&plan, STEP_UNPLACE));
        assert_true(place_of(&plan, STEP_UNPLACE) < place_of(&plan, STEP_UNMAKE_TARGET));
        assert_true(place_of(&plan, STEP_FORGET) == plan.count - 1);
}

/* A dry run takes the steps that only look, and those alone: none may have an undo. */
static void steps_that_only_look_have_nothing_to_undo(void **state)
{
        (void)state;
        for (enum step step = STEP_PIN_CONTAINER; step <= STEP_FORGET; step++) {
                assert_true(step_text(step, &source_bind)[0] != '\0');
                if (step_looks(step))
                        assert_string_equal(step_undo(step, &source_bind), "");
        }
        assert_false(step_looks(STEP_PLACE));
        assert_false(step_looks(STEP_RECORD));
        assert_true(step_phase(STEP_PLACE, &source_bind) == PHASE_PLACE);
        assert_true(step_phase(STEP_SET_ATTRIBUTES, &source_bind) == PHASE_PREPARE);
}

/* What finds a volume runs under the volume's lock, before those of mounts are taken. */
static void the_steps_of_each_kind_have_words(void **state)
{
        (void)state;
        for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++) {
                assert_true((*kind)->open == NULL || step_text(STEP_OPEN, *kind)[0] != '\0');
                assert_true(step_text(STEP_MAKE, *kind)[0] != '\0');
                assert_true(step_undo(STEP_MAKE, *kind)[0] != '\0');
                assert_true(step_phase(STEP_OPEN, *kind) == (*kind == &source_volume ? PHASE_LOOK : PHASE_PREPARE));
        }
}

static void in_a_batch_a_target_below_another_is_looked_at_after_it(void **state)
{
        cleanup_request struct request request = {};
        struct plan plans[2];
        struct error error = {};
        char *argv[] = { (char *)"program",
                         (char *)"{\"container\": 1, \"mounts\": [{\"type\": \"tmpfs\", \"target\": \"/b\"},"
                                 " {\"type\": \"tmpfs\", \"target\": \"/b/c\"}]}",
                         NULL };

        (void)state;
        assert_int_equal(request_parse(&request, REQUEST_MOUNT_BATCH, source_kinds, 2, argv, &error), 0);
        plan_make_batch(plans, &request);
        assert_true(has(&plans[0], STEP_LOOK));
        assert_false(has(&plans[1], STEP_LOOK));
        assert_true(place_of(&plans[1], STEP_LOOK_AGAIN) < place_of(&plans[1], STEP_PLACE));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_record_is_written_before_the_mount_is_placed),
                cmocka_unit_test(a_target_is_not_made_where_mkdir_is_false),
                cmocka_unit_test(content_that_is_foreign_is_locked),
                cmocka_unit_test(only_a_raw_device_is_allowed_in_the_control_group),
                cmocka_unit_test(a_removal_forgets_last),
                cmocka_unit_test(steps_that_only_look_have_nothing_to_undo),
                cmocka_unit_test(the_steps_of_each_kind_have_words),
                cmocka_unit_test(in_a_batch_a_target_below_another_is_looked_at_after_it),
        };

        return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
