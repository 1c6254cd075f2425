/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/sysmacros.h>

#include "mount/mountinfo.h"

static const char *dir;

static int make_directory(void **state)
{
        (void)state;
        dir = unit_directory();
        return 0;
}

static int remove_directory(void **state)
{
        char path[96];

        (void)state;
        (void)snprintf(path, sizeof path, "%s/mountinfo", dir);
        (void)unlink(path);
        return rmdir(dir);
}

static void begin(const char *text, struct mountinfo *table)
{
        char path[96];
        int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

        (void)snprintf(path, sizeof path, "%s/mountinfo", dir);
        unit_write(path, text);
        assert_int_equal(mountinfo_open(table, fd), 0);
        (void)close(fd);
}

static void lines_give_id_device_mount_point_and_source(void **state)
{
        cleanup_mount_table struct mountinfo table;

        (void)state;
        begin("36 35 98:1 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
              "4294967296 36 0:7 / /mnt2/sub rw shared:2 propagate_from:3 - tmpfs tmpfs rw\n",
              &table);
        assert_true(mountinfo_next(&table));
        assert_int_equal(table.id, 36);
        assert_true(table.device == makedev(98, 1));
        assert_string_equal(table.root, "/mnt1");
        assert_string_equal(table.mount_point, "/mnt2");
        assert_string_equal(table.source, "/dev/root");
        assert_true(mountinfo_next(&table));
        assert_true(table.id == 4294967296ULL);
        assert_string_equal(table.mount_point, "/mnt2/sub");
        assert_string_equal(table.source, "tmpfs");
        assert_false(mountinfo_next(&table));
}

static void a_table_that_stays_open_is_read_as_it_is_then(void **state)
{
        char path[96];
        int fd;

        (void)state;
        (void)snprintf(path, sizeof path, "%s/mountinfo", dir);
        unit_write(path, "36 35 98:1 / /mnt rw - nfs nas:/one rw\n");
        fd = open(path, O_RDONLY | O_CLOEXEC);
        for (int i = 0; i < 2; i++) {
                cleanup_mount_table struct mountinfo table = {};

                assert_int_equal(mountinfo_open_again(&table, &fd), 0);
                assert_true(mountinfo_next(&table));
                assert_string_equal(table.source, i == 0 ? "nas:/one" : "nas:/two");
                assert_false(mountinfo_next(&table));
                unit_write(path, "36 35 98:1 / /mnt rw - nfs nas:/two rw\n");
        }
        (void)close(fd);
}

static void blanks_and_backslashes_are_unescaped(void **state)
{
        cleanup_mount_table struct mountinfo table;

        (void)state;
        begin("1 2 0:1 / /a\\040b\\011c\\012d\\134e rw - tmpfs a\\040source rw\n", &table);
        assert_true(mountinfo_next(&table));
        assert_string_equal(table.mount_point, "/a b\tc\nd\\e");
        assert_string_equal(table.source, "a source");
}

/* What a FUSE server is called stands behind the dot. */
static void a_type_is_unescaped(void **state)
{
        cleanup_mount_table struct mountinfo table;

        (void)state;
        begin("1 2 0:1 / /a rw - fuse.a\\040b\\134c source rw\n", &table);
        assert_true(mountinfo_next(&table));
        assert_string_equal(table.type, "fuse.a b\\c");
        assert_string_equal(table.source, "source");
}

static void a_name_with_a_dash_in_it_does_not_end_the_optional_fields(void **state)
{
        cleanup_mount_table struct mountinfo table;

        (void)state;
        begin("1 2 0:1 / /a-b rw shared:1 - fuse.x-y x-y rw\n", &table);
        assert_true(mountinfo_next(&table));
        assert_string_equal(table.mount_point, "/a-b");
        assert_string_equal(table.source, "x-y");
}

static void a_line_that_is_cut_ends_the_table(void **state)
{
        static const char *const lines[] = { "", "\n", "36\n", "36 35 98:1 /mnt1\n", "36 35" };

        (void)state;
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                cleanup_mount_table struct mountinfo table;

                begin(lines[i], &table);
                assert_false(mountinfo_next(&table));
        }
}

static void a_backslash_without_three_octal_digits_is_kept(void **state)
{
        cleanup_mount_table struct mountinfo table;

        (void)state;
        begin("1 2 0:1 / /a\\04 rw - tmpfs b\\ rw\n1 2 0:1 / /a\\3\377\3779\\089 rw - tmpfs b rw\n", &table);
        assert_true(mountinfo_next(&table));
        assert_string_equal(table.mount_point, "/a\\04");
        assert_true(mountinfo_next(&table));
        assert_string_equal(table.mount_point, "/a\\3\377\3779\\089");
}

static void assert_same(const json_t *line, const char *key, const char *ours)
{
        const char *theirs = json_string_value(json_object_get(line, key));

        assert_string_equal(ours, theirs != NULL ? theirs : "");
}

/* Line by line. Returns how many there are. */
static size_t compare(const char *directory)
{
        cleanup_mount_table struct mountinfo table;
        char path[96];
        int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        json_t *answer;
        json_t *line;
        size_t i;

        (void)snprintf(path, sizeof path, "%s/mountinfo", directory);
        answer = unit_ask_libmount(path, "ID,MAJ:MIN,FSTYPE,SOURCE,TARGET,FS-OPTIONS");
        if (answer == NULL)
                skip();
        assert_int_equal(mountinfo_open(&table, fd), 0);
        (void)close(fd);
        json_array_foreach (json_object_get(answer, "filesystems"), i, line) {
                char number[32];
                char options[4096];

                assert_true(mountinfo_next(&table));
                assert_int_equal(table.id, json_integer_value(json_object_get(line, "id")));
                (void)snprintf(number, sizeof number, "%u:%u", major(table.device), minor(table.device));
                assert_same(line, "maj:min", number);
                assert_same(line, "fstype", table.type);
                assert_same(line, "source", table.source);
                assert_same(line, "target", table.mount_point);
                (void)snprintf(options, sizeof options, "%.*s", (int)strcspn(table.options, "\n"), table.options);
                assert_same(line, "fs-options", options);
        }
        assert_false(mountinfo_next(&table));
        json_decref(answer);
        return i;
}

static void libmount_sees_the_same_on_this_machine(void **state)
{
        char path[96];
        char *text = NULL;
        size_t size = 0;
        FILE *file = fopen("/proc/self/mountinfo", "re");

        (void)state;
        /* a copy: another process may mount something before libmount reads it, too */
        assert_non_null(file);
        assert_true(getdelim(&text, &size, '\0', file) > 0);
        assert_int_equal(fclose(file), 0);
        (void)snprintf(path, sizeof path, "%s/mountinfo", dir);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
        free(text);
        assert_true(compare(dir) > 0);
}

/* Each field made of pieces that are escaped, look like escapes, or like the ends of fields. */
static void libmount_sees_the_same_in_odd_tables(void **state)
{
        static const char *const pieces[] = { "a",        "\\040", "\\134", "\\011",    "\\012", "-",
                                              "\\134040", "#",     ":",     "\303\244", "\"" };
        enum { COUNT = sizeof pieces / sizeof pieces[0] };
        char path[96];
        FILE *file;

        (void)state;
        (void)snprintf(path, sizeof path, "%s/mountinfo", dir);
        file = fopen(path, "we");
        assert_non_null(file);
        for (unsigned i = 0; i < COUNT * COUNT; i++)
                assert_true(fprintf(file, "%u 1 0:%u / /m%s%s rw,relatime%s - type%u%s s%s%s rw,x=%s\n", i + 10,
                                    i % 255 + 1, pieces[i % COUNT], pieces[i / COUNT],
                                    i % 2 != 0 ? " shared:3 master:4" : "", i, pieces[i / COUNT], pieces[i / COUNT],
                                    pieces[i % COUNT], i % 3 != 0 ? "1" : "a:b") > 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(compare(dir), COUNT * COUNT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_give_id_device_mount_point_and_source),
                cmocka_unit_test(a_table_that_stays_open_is_read_as_it_is_then),
                cmocka_unit_test(blanks_and_backslashes_are_unescaped),
                cmocka_unit_test(a_type_is_unescaped),
                cmocka_unit_test(a_name_with_a_dash_in_it_does_not_end_the_optional_fields),
                cmocka_unit_test(a_line_that_is_cut_ends_the_table),
                cmocka_unit_test(a_backslash_without_three_octal_digits_is_kept),
                cmocka_unit_test(libmount_sees_the_same_on_this_machine),
                cmocka_unit_test(libmount_sees_the_same_in_odd_tables),
        };

        return cmocka_run_group_tests_name("mountinfo", tests, make_directory, remove_directory);
}
