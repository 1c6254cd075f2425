/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/json_value.h"
#include "base/text.h"

enum sort {
        ATTRIBUTE,
        PROPAGATION,
        RECURSION,
        IGNORED, /* for programs that read fstab(5), or for the kernel's log */
        REFUSED,
};

/* Access time is a choice of four and not a bit: choosing clears the whole field first. */
static const struct {
        const char *name;
        enum sort sort;
        uint64_t set;
        uint64_t clear;
} table[] = {
        { "ro", ATTRIBUTE, MOUNT_ATTR_RDONLY, 0 },
        { "rw", ATTRIBUTE, 0, MOUNT_ATTR_RDONLY },
        { "nosuid", ATTRIBUTE, MOUNT_ATTR_NOSUID, 0 },
        { "suid", ATTRIBUTE, 0, MOUNT_ATTR_NOSUID },
        { "nodev", ATTRIBUTE, MOUNT_ATTR_NODEV, 0 },
        { "dev", ATTRIBUTE, 0, MOUNT_ATTR_NODEV },
        { "noexec", ATTRIBUTE, MOUNT_ATTR_NOEXEC, 0 },
        { "exec", ATTRIBUTE, 0, MOUNT_ATTR_NOEXEC },
        { "noatime", ATTRIBUTE, MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME },
        { "relatime", ATTRIBUTE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME },
        { "strictatime", ATTRIBUTE, MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME },
        { "atime", ATTRIBUTE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME },
        { "norelatime", ATTRIBUTE, MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME },
        { "nostrictatime", ATTRIBUTE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME },
        { "nodiratime", ATTRIBUTE, MOUNT_ATTR_NODIRATIME, 0 },
        { "diratime", ATTRIBUTE, 0, MOUNT_ATTR_NODIRATIME },
        { "nosymfollow", ATTRIBUTE, MOUNT_ATTR_NOSYMFOLLOW, 0 },
        { "symfollow", ATTRIBUTE, 0, MOUNT_ATTR_NOSYMFOLLOW },
        { "private", PROPAGATION, MS_PRIVATE, 0 },
        { "slave", PROPAGATION, MS_SLAVE, 0 },
        { "shared", PROPAGATION, MS_SHARED, 0 },
        { "unbindable", PROPAGATION, MS_UNBINDABLE, 0 },
        { "rprivate", PROPAGATION, MS_PRIVATE, 0 },
        { "rslave", PROPAGATION, MS_SLAVE, 0 },
        { "rshared", PROPAGATION, MS_SHARED, 0 },
        { "runbindable", PROPAGATION, MS_UNBINDABLE, 0 },
        { "rbind", RECURSION, 0, 0 },
        { "bind", IGNORED, 0, 0 },
        { "defaults", IGNORED, 0, 0 },
        { "auto", IGNORED, 0, 0 },
        { "noauto", IGNORED, 0, 0 },
        { "nofail", IGNORED, 0, 0 },
        { "_netdev", IGNORED, 0, 0 },
        { "user", IGNORED, 0, 0 },
        { "nouser", IGNORED, 0, 0 },
        { "users", IGNORED, 0, 0 },
        { "nousers", IGNORED, 0, 0 },
        { "owner", IGNORED, 0, 0 },
        { "noowner", IGNORED, 0, 0 },
        { "group", IGNORED, 0, 0 },
        { "nogroup", IGNORED, 0, 0 },
        { "silent", IGNORED, 0, 0 },
        { "loud", IGNORED, 0, 0 },
        { "remount", REFUSED, 0, 0 },
        { "move", REFUSED, 0, 0 },
        { "loop", REFUSED, 0, 0 },
};

/* "x-systemd.automount", "X-mount.mkdir", "comment=...": for other programs. */
static bool is_foreign(const char *option)
{
        return text_starts(option, "x-") || text_starts(option, "X-") || text_starts(option, "comment=");
}

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC 12 loses sight of what is stored through the array */
#endif
static int add_fs_option(struct mount_options *options, const char *option, struct error *error)
{
        char **list = reallocarray(options->fs_options, options->fs_count + 1, sizeof *list);
        char *copy;

        if (list == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "options");
        options->fs_options = list;
        copy = strdup(option);
        if (copy == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "options");
        options->fs_options[options->fs_count++] = copy;
        return 0;
}
#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* "rro" is OCI's word for "ro" on the mounts below, too; what comes with a mount gets its attributes anyway. */
static bool is_called(const char *option, size_t row)
{
        return strcmp(option, table[row].name) == 0 ||
               (table[row].sort == ATTRIBUTE && option[0] == 'r' && strcmp(option + 1, table[row].name) == 0);
}

int mount_options_add(struct mount_options *options, const char *option, struct error *error)
{
        if (option[0] == '\0')
                return 0;
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                if (!is_called(option, i))
                        continue;
                switch (table[i].sort) {
                case ATTRIBUTE:
                        options->attr_set = (options->attr_set & ~table[i].clear) | table[i].set;
                        options->attr_clear = (options->attr_clear & ~table[i].set) | table[i].clear;
                        options->read_only = (options->attr_set & MOUNT_ATTR_RDONLY) != 0;
                        break;
                case PROPAGATION:
                        options->propagation = (int)table[i].set;
                        break;
                case RECURSION:
                        options->recursive = true;
                        break;
                case IGNORED:
                        break;
                case REFUSED:
                        return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                            "options: option \"%s\" is not supported", option);
                }
                return 0;
        }
        if (text_starts(option, "loop="))
                return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                    "options: option \"%s\" is not supported", option);
        if (strchr(option, '=') == option)
                return fail_because(error, EINVAL, OPERATION_PARSE, "options", "options: \"%s\" has no name", option);
        return is_foreign(option) ? 0 : add_fs_option(options, option, error);
}

int mount_options_add_list(struct mount_options *options, const char *list, struct error *error)
{
        char *copy = strdup(list);
        char *start = copy;
        char *out = copy;
        bool quoted = false;
        int r = 0;

        if (copy == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "options");
        for (const char *in = copy; r == 0; in++) {
                bool end = *in == '\0';

                if (*in == '"')
                        quoted = !quoted;
                else if (end || (*in == ',' && !quoted)) {
                        *out = '\0';
                        r = mount_options_add(options, start, error);
                        out = start;
                } else
                        *out++ = *in;
                if (end)
                        break;
        }
        free(copy);
        if (r == 0 && quoted)
                return fail_because(error, EINVAL, OPERATION_PARSE, "options", "options: a quote is not closed");
        return r;
}

void mount_options_default(struct mount_options *options)
{
        uint64_t said = options->attr_set | options->attr_clear;

        options->attr_set |= (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) & ~said;
        if (options->propagation == 0)
                options->propagation = MS_PRIVATE;
}

int mount_options_propagation(const char *word)
{
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                if (table[i].sort == PROPAGATION && strcmp(word, table[i].name) == 0)
                        return (int)table[i].set;
        return 0;
}

/* statfs(2)'s flags of a mount; the last is ST_NOSYMFOLLOW of linux/statfs.h. */
static const struct {
        unsigned long flag;
        const char *name;
        uint64_t attribute;
} statfs_names[] = {
        { ST_NOSUID, "nosuid", MOUNT_ATTR_NOSUID },
        { ST_NODEV, "nodev", MOUNT_ATTR_NODEV },
        { ST_NOEXEC, "noexec", MOUNT_ATTR_NOEXEC },
        { ST_NOATIME, "noatime", MOUNT_ATTR_NOATIME },
        { ST_NODIRATIME, "nodiratime", MOUNT_ATTR_NODIRATIME },
        { ST_RELATIME, "relatime", 0 },
        { ST_SYNCHRONOUS, "sync", 0 },
        { 0x2000, "nosymfollow", MOUNT_ATTR_NOSYMFOLLOW },
};

void mount_options_text(unsigned long statfs_flags, char *ret_text, size_t size)
{
        size_t length = (size_t)snprintf(ret_text, size, "%s", (statfs_flags & ST_RDONLY) != 0 ? "ro" : "rw");

        for (size_t i = 0; i < sizeof statfs_names / sizeof statfs_names[0]; i++)
                if ((statfs_flags & statfs_names[i].flag) != 0 && length < size)
                        length += (size_t)snprintf(ret_text + length, size - length, ",%s", statfs_names[i].name);
}

uint64_t mount_options_attributes(unsigned long statfs_flags)
{
        uint64_t attributes = (statfs_flags & ST_RDONLY) != 0 ? MOUNT_ATTR_RDONLY : 0;

        for (size_t i = 0; i < sizeof statfs_names / sizeof statfs_names[0]; i++)
                if ((statfs_flags & statfs_names[i].flag) != 0)
                        attributes |= statfs_names[i].attribute;
        return attributes;
}

int mount_options_of(int fd, uint64_t *ret_attributes)
{
        struct statfs fs;

        *ret_attributes = 0;
        if (fstatfs(fd, &fs) < 0)
                return -errno;
        *ret_attributes = mount_options_attributes((unsigned long)fs.f_flags);
        return 0;
}

size_t mount_options_kept(const char *option)
{
        static const char *const secrets[] = { "pass", "secret", "cred", "key", "token", "user" };
        size_t name = strcspn(option, "=");

        for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
                const char *found = strstr(option, secrets[i]);

                if (found != NULL && (size_t)(found - option) < name)
                        return name;
        }
        return strlen(option);
}

void mount_options_release(struct mount_options *options)
{
        for (size_t i = 0; i < options->fs_count; i++)
                free(options->fs_options[i]);
        free(options->fs_options);
        options->fs_options = NULL;
        options->fs_count = 0;
}

const char *const mount_options_tmpfs_harmless[] = { "size", "mode", "nr_inodes", NULL };

int mount_options_tmpfs_limit(char **option, struct error *error)
{
        static const char *const names[] = { "size", "nr_inodes", "nr_blocks" };
        char text[32];
        char *settled;
        json_t *value;
        int r;

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                size_t length = strlen(names[i]);

                if (strncmp(*option, names[i], length) != 0 || (*option)[length] != '=')
                        continue;
                value = json_string(*option + length + 1);
                r = json_value_size("options", value, /* percent= */ i == 0, text, sizeof text, error);
                json_decref(value);
                if (r < 0)
                        return r;
                if (asprintf(&settled, "%s=%s", names[i], text) < 0)
                        return fail(error, ENOMEM, OPERATION_PARSE, "options");
                free(*option);
                *option = settled;
                return 0;
        }
        return 0;
}
