/* SPDX-License-Identifier: Apache-2.0 */
/* A container's mountinfo: what it mounts where is its own choice. libmount reads the kernel's lines likewise. */
#include "fuzz.h"

#include <libmount/libmount.h>
#include <sys/mount.h>

#include "mount/mountinfo.h"

enum where {
        LINE,
        MOUNT_POINT,
        TYPE,
        SOURCE,
};

/* Where both differ on purpose: such a line is not compared, or not that field of it. */
static const struct {
        enum where where;
        const char *text; /* the line has it in it, the mount point ends with it, another field is it */
        const char *why;
} on_purpose[] = {
        { LINE, "\t", "a blank to libmount; the kernel writes \\011" },
        { LINE, "\r", "before the line's end libmount drops it; the kernel writes it as it is" },
        { MOUNT_POINT, " (deleted)", "libmount drops it; we have the kernel's words" },
        { TYPE, "swap", "an area of swap to libmount, not a filesystem" },
        { SOURCE, "none", "no source to libmount; we have the kernel's word" },
        { SOURCE, "/dev/root", "libmount looks for the device; we have the kernel's word" },
};

static bool differs_on_purpose(enum where where, const char *text)
{
        for (size_t i = 0; i < sizeof on_purpose / sizeof on_purpose[0]; i++) {
                const char *found = strstr(text, on_purpose[i].text);

                if (on_purpose[i].where != where || found == NULL)
                        continue;
                if (where == LINE || (where == MOUNT_POINT && found[strlen(on_purpose[i].text)] == '\0') ||
                    strcmp(text, on_purpose[i].text) == 0)
                        return true;
        }
        return false;
}

/* A number of as many digits as both have room for, and what ends it. */
static const char *number(const char *at, char end)
{
        size_t digits = at != NULL ? strspn(at, "0123456789") : 0;

        return digits > 0 && digits < 10 && at[digits] == end ? at + digits + 1 : NULL;
}

/* A field that is not empty, and the blank behind it. */
static const char *field(const char *at)
{
        const char *blank = at != NULL ? strchr(at, ' ') : NULL;

        return blank != NULL && blank > at ? blank + 1 : NULL;
}

static bool is_optional(const char *at)
{
        static const char *const names[] = { "shared:", "master:", "propagate_from:" };

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strncmp(at, names[i], strlen(names[i])) == 0)
                        return number(at + strlen(names[i]), ' ') != NULL;
        return strncmp(at, "unbindable ", strlen("unbindable ")) == 0;
}

/* Its fields are those that the kernel writes (proc(5)): a process chooses what the names of them are, and no more. */
static bool is_line_of_the_kernel(const char *line)
{
        const char *at = number(number(number(number(line, ' '), ' '), ':'), ' ');

        at = field(field(at)); /* root, mount point */
        if (at == NULL || (strncmp(at, "rw", 2) != 0 && strncmp(at, "ro", 2) != 0))
                return false;
        for (at = field(at); at != NULL && strncmp(at, "- ", 2) != 0; at = field(at))
                if (!is_optional(at))
                        return false;
        at = field(field(at)); /* dash, type */
        if (at == NULL)
                return false;
        at = at[0] == ' ' ? at + 1 : field(at); /* the source may be empty */
        return at != NULL && at[0] != '\0' && strchr(at, ' ') == NULL && !differs_on_purpose(LINE, line);
}

/* Those lines of the input. Owned by the caller. */
static char *lines_of_the_kernel(const char *text)
{
        char *lines = calloc(strlen(text) + 2, 1);
        size_t length = 0;

        fuzz_check(lines != NULL);
        while (*text != '\0') {
                size_t size = strcspn(text, "\n");

                memcpy(lines + length, text, size);
                lines[length + size] = '\0';
                text += size + (text[size] == '\n');
                if (is_line_of_the_kernel(lines + length)) {
                        length += size;
                        lines[length++] = '\n';
                }
                lines[length] = '\0';
        }
        return lines;
}

static int refuse(struct libmnt_table *theirs, const char *name, int line)
{
        (void)theirs;
        (void)name;
        (void)line;
        return -1;
}

/* The filesystem's options are as they are in the line: escapes within them are the filesystem's own, too. */
static void check_options(const char *ours, const char *theirs)
{
        size_t length = strcspn(ours, "\n");

        if (memchr(ours, '\\', length) == NULL)
                fuzz_check(strlen(theirs) == length && memcmp(ours, theirs, length) == 0);
}

static void check_field(enum where where, const char *ours, const char *theirs)
{
        if (!differs_on_purpose(where, ours) && strcmp(ours, theirs != NULL ? theirs : "") != 0) {
                (void)fprintf(stderr, "we read \"%s\", libmount \"%s\"\n", ours, theirs != NULL ? theirs : "");
                abort();
        }
}

static void compare(int dir_fd, const char *lines)
{
        struct libmnt_table *theirs = mnt_new_table();
        struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
        FILE *stream = fmemopen((char *)lines, strlen(lines), "r");
        struct mountinfo ours;
        struct libmnt_fs *fs;

        fuzz_check(theirs != NULL && iter != NULL && stream != NULL);
        (void)mnt_table_set_parser_errcb(theirs, refuse);
        fuzz_check(mnt_table_parse_stream(theirs, stream, "mountinfo") == 0);
        (void)fuzz_file("mountinfo", (const uint8_t *)lines, strlen(lines));
        fuzz_check(mountinfo_open(&ours, dir_fd) == 0);
        while (mnt_table_next_fs(theirs, iter, &fs) == 0) {
                unsigned long propagation = 0;

                fuzz_check(mountinfo_next(&ours));
                fuzz_check(ours.id == (uint64_t)mnt_fs_get_id(fs));
                fuzz_check(ours.parent == (uint64_t)mnt_fs_get_parent_id(fs));
                fuzz_check(ours.device == mnt_fs_get_devno(fs));
                check_field(MOUNT_POINT, ours.mount_point, mnt_fs_get_target(fs));
                check_field(TYPE, ours.type, mnt_fs_get_fstype(fs));
                check_field(SOURCE, ours.source, mnt_fs_get_source(fs));
                fuzz_check(mnt_fs_get_propagation(fs, &propagation) == 0);
                fuzz_check(ours.unbindable == ((propagation & MS_UNBINDABLE) != 0));
                check_options(ours.options, mnt_fs_get_fs_options(fs));
        }
        fuzz_check(!mountinfo_next(&ours));
        mountinfo_close(&ours);
        (void)fclose(stream);
        mnt_free_iter(iter);
        mnt_unref_table(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int dir_fd = -1;
        char *text = fuzz_text(data, size);
        char *lines = lines_of_the_kernel(text);
        struct mountinfo table;

        if (dir_fd < 0)
                dir_fd = open(fuzz_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)fuzz_file("mountinfo", data, size);
        fuzz_check(mountinfo_open(&table, dir_fd) == 0);
        while (mountinfo_next(&table))
                fuzz_check(strlen(table.mount_point) + strlen(table.source) < size);
        mountinfo_close(&table);
        if (lines[0] != '\0')
                compare(dir_fd, lines);
        free(lines);
        free(text);
        return 0;
}
