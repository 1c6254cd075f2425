/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "mount/options.h"

static void attributes_are_set_and_cleared_by_name(void **state)
{
        struct mount_options options = {};
        struct error error;

        (void)state;
        assert_int_equal(mount_options_add_list(&options, "nosuid,noexec,suid,rslave", &error), 0);
        assert_true((options.attr_set & MOUNT_ATTR_NOEXEC) != 0);
        assert_true((options.attr_set & MOUNT_ATTR_NOSUID) == 0);
        assert_true((options.attr_clear & MOUNT_ATTR_NOSUID) != 0);
        assert_int_equal(options.fs_count, 0);
        mount_options_release(&options);
}

static void the_last_of_ro_and_rw_wins(void **state)
{
        struct mount_options options = {};
        struct error error;

        (void)state;
        assert_int_equal(mount_options_add_list(&options, "rw,ro", &error), 0);
        assert_true(options.read_only);
        assert_int_equal(mount_options_add(&options, "rw", &error), 0);
        assert_false(options.read_only);
        mount_options_release(&options);
}

static void nosuid_and_nodev_hold_unless_something_else_is_said(void **state)
{
        struct mount_options silent = {};
        struct mount_options said = {};
        struct error error;

        (void)state;
        mount_options_default(&silent);
        assert_true((silent.attr_set & MOUNT_ATTR_NOSUID) != 0);
        assert_true((silent.attr_set & MOUNT_ATTR_NODEV) != 0);
        assert_int_equal(mount_options_add_list(&said, "suid,dev", &error), 0);
        mount_options_default(&said);
        assert_true((said.attr_set & (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)) == 0);
        mount_options_release(&said);
}

static void other_options_are_the_filesystems_in_their_order(void **state)
{
        struct mount_options options = {};
        struct error error;

        (void)state;
        assert_int_equal(mount_options_add_list(&options, "vers=4.2,nosuid,context=\"a,b\",acl", &error), 0);
        assert_int_equal(options.fs_count, 3);
        assert_string_equal(options.fs_options[0], "vers=4.2");
        assert_string_equal(options.fs_options[1], "context=a,b");
        assert_string_equal(options.fs_options[2], "acl");
        mount_options_release(&options);
}

static void options_without_sense_for_a_running_container_are_refused(void **state)
{
        static const char *const refused[] = { "remount", "loop", "move" };
        struct error error;

        (void)state;
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
                struct mount_options options = {};

                error = (struct error){};
                assert_refused(mount_options_add(&options, refused[i], &error), EINVAL, error, refused[i]);
                mount_options_release(&options);
        }
}

static void propagations_have_the_words_of_mount(void **state)
{
        (void)state;
        assert_int_equal(mount_options_propagation("private"), MS_PRIVATE);
        assert_int_equal(mount_options_propagation("slave"), MS_SLAVE);
        assert_int_equal(mount_options_propagation("shared"), MS_SHARED);
        assert_int_equal(mount_options_propagation("unbindable"), MS_UNBINDABLE);
        assert_int_equal(mount_options_propagation("rprivate "), 0);
}

/* MS_RELATIME has the value of another MOUNT_ATTR: flags must never be taken one for the other. */
static void statfs_flags_become_words_and_attributes(void **state)
{
        char text[256];

        (void)state;
        mount_options_text(ST_RDONLY | ST_NOSUID | ST_NODEV | ST_RELATIME, text, sizeof text);
        assert_string_equal(text, "ro,nosuid,nodev,relatime");
        mount_options_text(0, text, sizeof text);
        assert_true(strncmp(text, "rw", 2) == 0);
        assert_true((mount_options_attributes(ST_RDONLY | ST_NOEXEC) & MOUNT_ATTR_RDONLY) != 0);
        assert_true((mount_options_attributes(ST_RDONLY | ST_NOEXEC) & MOUNT_ATTR_NOEXEC) != 0);
        assert_true((mount_options_attributes(ST_RELATIME) & MOUNT_ATTR_NOSYMFOLLOW) == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(attributes_are_set_and_cleared_by_name),
                cmocka_unit_test(the_last_of_ro_and_rw_wins),
                cmocka_unit_test(nosuid_and_nodev_hold_unless_something_else_is_said),
                cmocka_unit_test(other_options_are_the_filesystems_in_their_order),
                cmocka_unit_test(options_without_sense_for_a_running_container_are_refused),
                cmocka_unit_test(propagations_have_the_words_of_mount),
                cmocka_unit_test(statfs_flags_become_words_and_attributes),
        };

        return cmocka_run_group_tests_name("mount options", tests, NULL, NULL);
}
