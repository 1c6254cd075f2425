/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verdicts: what verdicts are made with. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* What each line begins with, if it is not empty: what is tried, and who tries it. */
static char family[96];

static void say(const char *what, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        printf("%s%s%s: ", family, family[0] != '\0' ? ": " : "", what);
        vprintf(format, ap);
        printf("\n");
        fflush(stdout);
        va_end(ap);
}

static const char *answer(long result)
{
        return result < 0 ? strerrorname_np(errno) : "ok";
}

/* A result of a system call. */
static long verdict(const char *what, long result)
{
        say(what, "%s", answer(result));
        return result;
}

#define TRY(call) verdict(#call, (long)(call))

static int make(const char *name, mode_t mode)
{
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

        if (fd < 0) {
                say(name, "cannot be made: %s", strerrorname_np(errno));
                exit(1);
        }
        return fd;
}

/* What a verdict needs before it is asked for. */
static void need(const char *what, long result)
{
        if (result < 0)
                say(what, "cannot be prepared: %s", strerrorname_np(errno));
}

#define NEED(call) need(#call, (long)(call))

/* ---- the state of a file */

static const char *kind_of(mode_t mode)
{
        return S_ISREG(mode)    ? "file"
               : S_ISDIR(mode)  ? "directory"
               : S_ISLNK(mode)  ? "link"
               : S_ISFIFO(mode) ? "pipe"
               : S_ISSOCK(mode) ? "socket"
                                : "device";
}

/* What can be compared of a file: no times, and no size of a directory. */
static const char *state(const char *path)
{
        static char text[256];
        struct stat st;
        int n;

        if (lstat(path, &st) < 0)
                return strerrorname_np(errno);
        n = snprintf(text, sizeof text, "%s %04o of %u:%u, links %lu", kind_of(st.st_mode), st.st_mode & 07777,
                     st.st_uid, st.st_gid, (unsigned long)st.st_nlink);
        if (!S_ISDIR(st.st_mode))
                n += snprintf(text + n, sizeof text - (size_t)n, ", size %lld", (long long)st.st_size);
        if (S_ISLNK(st.st_mode) && stat(path, &st) == 0)
                snprintf(text + n, sizeof text - (size_t)n, ", to a %s %04o of %u:%u", kind_of(st.st_mode),
                         st.st_mode & 07777, st.st_uid, st.st_gid);
        return text;
}

/* A result, and what the file is afterwards. */
static long verdict_then(const char *what, long result, const char *path)
{
        const char *said = answer(result);

        say(what, "%s, %s", said, state(path));
        return result;
}

#define THEN(call, path) verdict_then(#call, (long)(call), path)

/* For what opens: 0, or -1 with errno. */
static int opened(int fd)
{
        if (fd < 0)
                return -1;
        close(fd);
        return 0;
}

/* ---- kinds of files */

static const char *const kinds[] = {
        "file", "directory", "full", "link", "to-dir", "dangling", "loop", "pipe", "socket"
};

/* One of that kind; a link leads to a file, or a directory, that is called so. */
static void make_kind(const char *kind, const char *name)
{
        char inside[64];
        int fd;

        if (strcmp(kind, "file") == 0) {
                fd = make(name, 0644);
                NEED(write(fd, "text", 4));
                close(fd);
        } else if (strcmp(kind, "directory") == 0) {
                NEED(mkdir(name, 0755));
        } else if (strcmp(kind, "full") == 0) {
                NEED(mkdir(name, 0755));
                snprintf(inside, sizeof inside, "%s/file", name);
                close(make(inside, 0644));
        } else if (strcmp(kind, "link") == 0) {
                NEED(symlink("file", name));
        } else if (strcmp(kind, "to-dir") == 0) {
                NEED(symlink("directory", name));
        } else if (strcmp(kind, "dangling") == 0) {
                NEED(symlink("nothing", name));
        } else if (strcmp(kind, "loop") == 0) {
                NEED(symlink(name, name));
        } else if (strcmp(kind, "pipe") == 0) {
                NEED(mkfifo(name, 0644));
        } else if (strcmp(kind, "socket") == 0) {
                NEED(mknod(name, S_IFSOCK | 0644, 0));
        }
}

/* One of each, called as its kind. */
static void make_kinds(void)
{
        for (size_t i = 0; i < COUNT(kinds); i++)
                make_kind(kinds[i], kinds[i]);
}

/* That name with all that is in it, if it is there. */
static void remove_at(int at, const char *name)
{
        struct dirent *entry;
        int fd, tries = 3;
        DIR *list;

        if (unlinkat(at, name, 0) == 0 || errno == ENOENT || fchmodat(at, name, 0700, 0) < 0)
                return;
        fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        list = fd < 0 ? NULL : fdopendir(fd);
        if (list == NULL)
                return;
        do { /* again, if a directory that changes was not listed in whole */
                rewinddir(list);
                while ((entry = readdir(list)) != NULL)
                        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                                remove_at(fd, entry->d_name);
        } while (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY && --tries > 0);
        closedir(list);
}

/* ---- who tries it */

struct who {
        const char *name; /* appended to family, if there is one */
        uid_t uid;
        gid_t gid;
        gid_t group; /* the supplementary one, or 0 */
};

#define OWNER 1000
#define GROUP 2000

static const struct who root = { .name = "root" };
static const struct who owner = { .name = "the owner", .uid = OWNER, .gid = OWNER };
static const struct who owner_in_group = {
        .name = "the owner, in the group", .uid = OWNER, .gid = OWNER, .group = GROUP
};
static const struct who member = { .name = "one of the group", .uid = 1001, .gid = 1001, .group = GROUP };
static const struct who other = { .name = "another", .uid = 1002, .gid = 1002 };

static bool is_root(void)
{
        return geteuid() == 0;
}

/* Without privileges nobody can be but the owner of all that is tried. */
static bool become(const struct who *who)
{
        if (!is_root())
                return who == &owner;
        return who->uid == 0 ||
               (setgroups(who->group != 0, &who->group) == 0 && setresgid(who->gid, who->gid, who->gid) == 0 &&
                setresuid(who->uid, who->uid, who->uid) == 0);
}

/* Call function in a process of its own, as that user. */
static void as_who(const struct who *who, void (*function)(void))
{
        size_t length = strlen(family);
        pid_t pid = fork();

        if (pid == 0) {
                if (who->name != NULL && length > 0)
                        snprintf(family + length, sizeof family - length, ", %s", who->name);
                if (become(who))
                        function();
                else
                        say("as another user", "not tried");
                exit(0);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) < 0)
                exit(1);
}

/* The file becomes the owner's, and that group's; without privileges it is already, but for the group. */
static void give(const char *path, gid_t group)
{
        if (is_root())
                NEED(lchown(path, OWNER, group));
}

/* Call function in a directory of its own, of ours or, with who, of the owner, where he calls it; nothing is left of it. */
static void in_directory(const char *name, const struct who *who, void (*function)(void))
{
        int top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        snprintf(family, sizeof family, "%s", name);
        if (top < 0 || mkdir(name, 0755) < 0 || chdir(name) < 0) {
                say("a directory", "%s", strerrorname_np(errno));
                exit(1);
        }
        if (who != NULL) {
                give(".", OWNER);
                as_who(who, function);
        } else {
                function();
        }
        umask(022);
        NEED(fchdir(top));
        remove_at(top, name);
        if (faccessat(top, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                say("the directory", "is left");
        close(top);
        family[0] = '\0';
}
