/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/identity.h"

int mountinfo_open(struct mountinfo *ret_table, int proc_fd)
{
        cleanup_close int fd = openat(proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

        if (file == NULL)
                return -errno;
        (void)fd_take(&fd); /* the stream's now */
        *ret_table = (struct mountinfo){ .file = file };
        return 0;
}

int mountinfo_open_own(struct mountinfo *ret_table)
{
        cleanup_close int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

        return proc_fd < 0 ? -errno : mountinfo_open(ret_table, proc_fd);
}

static ssize_t read_again(void *fd, char *buffer, size_t size)
{
        return read(*(const int *)fd, buffer, size);
}

int mountinfo_open_again(struct mountinfo *ret_table, int *fd)
{
        FILE *file = lseek(*fd, 0, SEEK_SET) < 0 ? NULL
                                                 : fopencookie(fd, "r", (cookie_io_functions_t){ .read = read_again });

        if (file == NULL)
                return -errno;
        *ret_table = (struct mountinfo){ .file = file };
        return 0;
}

/* Blanks and backslashes stand as \ooo, three octal digits (proc(5)); undone in place. Anything else stays as it is. */
static void unescape(char *text)
{
        char *out = text;

        for (const char *in = text; *in != '\0'; out++)
                if (in[0] == '\\' && strspn(in + 1, "01234567") >= 3) {
                        *out = (char)((unsigned)(in[1] - '0') << 6 | (unsigned)(in[2] - '0') << 3 |
                                      (unsigned)(in[3] - '0'));
                        in += 4;
                } else
                        *out = *in++;
        *out = '\0';
}

/* Behind the optional fields, which end in a lone dash, come type, source and the filesystem's options (proc(5)). */
static void read_type_source_options(struct mountinfo *table, char *rest)
{
        char *type = strstr(rest, " - ");
        char *source = type != NULL ? strchr(type + 3, ' ') : NULL;
        const char *options;
        const char *unbindable = strstr(rest, " unbindable ");

        table->unbindable = unbindable != NULL && unbindable < type;
        table->type = "";
        table->source = "";
        table->options = "";
        if (source == NULL)
                return;
        *source++ = '\0';
        options = strchr(source, ' ');
        source[strcspn(source, " \n")] = '\0';
        if (options != NULL)
                table->options = options + 1;
        unescape(source);
        unescape(type + 3);
        table->type = type + 3;
        table->source = source;
}

bool mountinfo_next(struct mountinfo *table)
{
        uint64_t device = 0;
        char *root;
        char *field;

        const ssize_t length = getline(&table->line, &table->size, table->file);

        if (length < 0) {
                table->failed = !feof(table->file);
                return false;
        }
        table->bytes += (uint64_t)length;
        table->id = strtoull(table->line, NULL, 10);
        field = table->line;
        root = field;
        for (int i = 0; i < 4; i++) { /* the mount point is the fifth field */
                field = strchr(field, ' ');
                if (field == NULL)
                        return false;
                field++;
                if (i == 0)
                        table->parent = strtoull(field, NULL, 10);
                if (i == 1) { /* the third: major:minor */
                        char *minor;
                        unsigned long major = strtoul(field, &minor, 10);

                        device = makedev(major, strtoul(minor + (*minor == ':'), NULL, 10));
                }
                if (i == 2)
                        root = field;
        }
        table->device = device;
        table->mount_point = field;
        field += strcspn(field, " ");
        table->read_only = text_starts(field, " ro,") || text_starts(field, " ro ");
        read_type_source_options(table, field);
        *field = '\0';
        unescape((char *)table->mount_point);
        root[strcspn(root, " ")] = '\0';
        unescape(root);
        table->root = root;
        return true;
}

bool mountinfo_names(const struct mountinfo *table, const char *device)
{
        return major(table->device) == 0 && strcmp(table->type, "btrfs") == 0 && strcmp(table->source, device) == 0;
}

int mountinfo_find_own(struct mountinfo *ret_table, int fd)
{
        uint64_t id;
        int r = mount_see_short_id(fd, &id);

        if (r < 0 || (r = mountinfo_open_own(ret_table)) < 0)
                return r;
        while (mountinfo_next(ret_table))
                if (ret_table->id == id)
                        return 1;
        return ret_table->failed ? -EIO : 0;
}

int mountinfo_locate(int fd, uint64_t *ret_device, char *ret_root)
{
        cleanup_mount_table struct mountinfo table = {};
        char path[PATH_MAX];
        char link[32];
        ssize_t n;
        int r = mountinfo_find_own(&table, fd);

        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlinkat(AT_FDCWD, link, path, sizeof path - 1);
        if (n < 0)
                return -errno;
        path[n] = '\0';
        if (!text_lies_in(path, table.mount_point)) /* it was removed, or moved just now */
                return -ENOENT;
        n = snprintf(ret_root, PATH_MAX, "%s%s", strcmp(table.root, "/") == 0 ? "" : table.root,
                     path + (strcmp(table.mount_point, "/") == 0 ? 0 : strlen(table.mount_point)));
        *ret_device = table.device;
        return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

void mountinfo_close(struct mountinfo *table)
{
        free(table->line);
        table->line = NULL;
        if (table->file != NULL)
                (void)fclose(table->file); /* nothing was written */
        table->file = NULL;
}
