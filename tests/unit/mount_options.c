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
        static const char *const refused[] = { "remount", "loop", "loop=/dev/loop3", "move" };
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

/* Of the superblock: mount(8) has flags for them, and fsconfig() the names. */
static bool is_flag_of_superblock(const char *option)
{
        static const char *const flags[] = { "sync", "async", "dirsync", "mand", "nomand", "lazytime", "nolazytime" };

        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
                if (strcmp(option, flags[i]) == 0)
                        return true;
        return false;
}

static void parse(struct mount_options *options, const char *list)
{
        struct error error;

        *options = (struct mount_options){};
        assert_int_equal(mount_options_add_list(options, list != NULL ? list : "", &error), 0);
}

/* Those of the mount are the same, read from the whole list and from libmount's part of it; so are the filesystem's. */
static void assert_divided(const char *list, const char *of_mount, const char *of_filesystem)
{
        struct mount_options all;
        struct mount_options mount;
        struct mount_options filesystem;
        size_t at = 0;

        parse(&all, list);
        parse(&mount, of_mount);
        parse(&filesystem, of_filesystem);
        if (all.attr_set != mount.attr_set || all.attr_clear != mount.attr_clear ||
            all.propagation != mount.propagation || all.read_only != mount.read_only ||
            all.recursive != mount.recursive)
                fail_msg("of %s libmount gives the mount %s", list, of_mount != NULL ? of_mount : "nothing");
        for (size_t i = 0; i < mount.fs_count; i++)
                if (!is_flag_of_superblock(mount.fs_options[i]))
                        fail_msg("of %s libmount gives the mount %s", list, mount.fs_options[i]);
        assert_true(filesystem.attr_set == 0 && filesystem.attr_clear == 0 && filesystem.propagation == 0);
        for (size_t i = 0; i < all.fs_count; i++) {
                if (is_flag_of_superblock(all.fs_options[i]))
                        continue;
                if (at == filesystem.fs_count)
                        fail_msg("of %s libmount gives the filesystem no %s", list, all.fs_options[i]);
                assert_string_equal(all.fs_options[i], filesystem.fs_options[at++]);
        }
        if (at != filesystem.fs_count)
                fail_msg("of %s libmount gives the filesystem %s", list, filesystem.fs_options[at]);
        mount_options_release(&all);
        mount_options_release(&mount);
        mount_options_release(&filesystem);
}

/* Every word alone, and every pair of them with something between. */
static void libmount_divides_options_between_mount_and_filesystem_likewise(void **state)
{
        char text[] = "ro rw suid nosuid dev nodev exec noexec atime noatime relatime norelatime "
                      "strictatime nostrictatime diratime nodiratime symfollow nosymfollow private "
                      "rprivate slave rslave shared rshared unbindable runbindable bind rbind sync "
                      "async dirsync mand nomand lazytime nolazytime silent loud defaults auto noauto "
                      "nofail _netdev user nouser users nousers owner noowner group nogroup comment=a "
                      "x-a.b=c X-a x.y acl size=1 rox context=\"a,ro\" nodev=1 privat";
        enum { COUNT = 60 };
        const char *words[COUNT];
        const char *directory = unit_directory();
        static char lists[COUNT * COUNT][96];
        char *rest;
        json_t *answer;
        json_t *line;
        char path[96];
        FILE *file;
        size_t i;

        (void)state;
        words[0] = strtok_r(text, " ", &rest);
        for (i = 1; i < COUNT; i++)
                words[i] = strtok_r(NULL, " ", &rest);
        assert_null(strtok_r(NULL, " ", &rest));
        (void)snprintf(path, sizeof path, "%s/fstab", directory);
        file = fopen(path, "we");
        assert_non_null(file);
        for (i = 0; i < COUNT * COUNT; i++) {
                (void)snprintf(lists[i], sizeof lists[i], "%s,,data=%zu,%s", words[i % COUNT], i, words[i / COUNT]);
                assert_true(fprintf(file, "source /m%zu ext4 %s 0 0\n", i, lists[i]) > 0);
        }
        assert_int_equal(fclose(file), 0);
        answer = unit_ask_libmount(path, "VFS-OPTIONS,FS-OPTIONS");
        assert_int_equal(unit_remove(directory), 0);
        if (answer == NULL)
                skip();
        assert_int_equal(json_array_size(json_object_get(answer, "filesystems")), COUNT * COUNT);
        json_array_foreach (json_object_get(answer, "filesystems"), i, line)
                assert_divided(lists[i], json_string_value(json_object_get(line, "vfs-options")),
                               json_string_value(json_object_get(line, "fs-options")));
        json_decref(answer);
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
                cmocka_unit_test(libmount_divides_options_between_mount_and_filesystem_likewise),
        };

        return cmocka_run_group_tests_name("mount options", tests, NULL, NULL);
}
