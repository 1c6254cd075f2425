/* SPDX-License-Identifier: Apache-2.0 */
#include "base/node_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "base/text.h"

#define LINKS_MAX 40 /* as the kernel's own limit */

/*
 * Whether a link may be followed. That root owns it proves little: in a directory that is id-mapped into a container,
 * links of the container's root belong to root on the disk. So a link must stay in its own directory, where its owner
 * could create any other file, too. Exceptions are the links of the machine's own layout (/bin, /var/run, /dev/disk).
 */
static bool leads_nowhere_else(const char *path, const char *link)
{
        size_t length = (size_t)(strrchr(path, '/') - path); /* of its directory */

        if (length == 0 || (length == strlen("/var") && strncmp(path, "/var", length) == 0) ||
            text_lies_in(path, "/dev"))
                return true;
        if (text_climbs(link))
                return false;
        return link[0] != '/' || (strncmp(link, path, length) == 0 && (link[length] == '/' || link[length] == '\0'));
}

/* Put the target of a symbolic link, if root owns it, in front of the rest of the path. */
static int splice_link(int fd, const char *path, char *rest, struct error *error)
{
        char link[PATH_MAX];
        char behind[PATH_MAX];
        struct statfs fs;
        struct stat st;
        ssize_t n;

        if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
                return fail(error, errno, OPERATION_OPEN_SOURCE, path);
        if (fs.f_type == PROC_SUPER_MAGIC)
                return fail_because(error, ELOOP, OPERATION_OPEN_SOURCE, path,
                                    "%s is a magic link, which is not followed", path);
        if (st.st_uid != 0)
                return fail_because(error, ELOOP, OPERATION_OPEN_SOURCE, path,
                                    "the symbolic link %s belongs to uid %u and not to root", path, st.st_uid);
        n = readlinkat(fd, "", link, sizeof link - 1);
        if (n < 0)
                return fail(error, errno, OPERATION_OPEN_SOURCE, path);
        link[n] = '\0';
        if (!leads_nowhere_else(path, link))
                return fail_because(error, ELOOP, OPERATION_OPEN_SOURCE, path,
                                    "the symbolic link %.200s leads out of its directory, to %.200s", path, link);
        (void)text_copy(behind, sizeof behind, rest);
        if (snprintf(rest, PATH_MAX, "%s/%s", link, behind) >= PATH_MAX)
                return fail(error, ENAMETOOLONG, OPERATION_OPEN_SOURCE, path);
        return 0;
}

/* Replace symbolic links of root in a path by their targets. ret_path holds PATH_MAX bytes. */
static int resolve_links(const char *source, char *ret_path, struct error *error)
{
        char rest[PATH_MAX];
        unsigned links = 0;
        size_t length = 0; /* of the resolved part, which has no link and no ".." */

        (void)text_copy(rest, sizeof rest, source);
        ret_path[0] = '\0';
        while (rest[strspn(rest, "/")] != '\0') {
                cleanup_close int fd = -EBADF;
                size_t start = strspn(rest, "/");
                size_t part = strcspn(rest + start, "/");
                const char *name = rest + start;
                struct stat st;

                if (part == 2 && name[0] == '.' && name[1] == '.') {
                        while (length > 0 && ret_path[--length] != '/')
                                ;
                        ret_path[length] = '\0';
                } else if (!(part == 1 && name[0] == '.')) {
                        size_t before = length;

                        if (length + 1 + part >= PATH_MAX)
                                return fail(error, ENAMETOOLONG, OPERATION_OPEN_SOURCE, source);
                        length += (size_t)snprintf(ret_path + length, PATH_MAX - length, "/%.*s", (int)part, name);
                        fd = sys_openat2(AT_FDCWD, ret_path, O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS);
                        if (fd < 0 || fstat(fd, &st) < 0)
                                return fail(error, errno, OPERATION_OPEN_SOURCE, source);
                        if (S_ISLNK(st.st_mode)) {
                                int r;

                                (void)memmove(rest, name + part, strlen(name + part) + 1);
                                if (++links > LINKS_MAX)
                                        return fail(error, ELOOP, OPERATION_OPEN_SOURCE, source);
                                if ((r = splice_link(fd, ret_path, rest, error)) < 0)
                                        return r;
                                length = rest[0] == '/' ? 0 : before;
                                ret_path[length] = '\0';
                                continue;
                        }
                }
                (void)memmove(rest, name + part, strlen(name + part) + 1);
        }
        if (length == 0)
                (void)text_copy(ret_path, PATH_MAX, "/");
        return 0;
}

int node_path_open(const char *path, char *ret_path, struct error *error)
{
        bool climbs = text_climbs(path); /* the path that is reported, and checked by a policy, must have no ".." */
        int fd = -1;
        int r;

        (void)text_copy(ret_path, PATH_MAX, path);
        if (!climbs)
                fd = sys_openat2(AT_FDCWD, path, O_PATH, 0, RESOLVE_NO_SYMLINKS);
        if (climbs || (fd < 0 && errno == ELOOP)) {
                if ((r = resolve_links(path, ret_path, error)) < 0)
                        return r;
                fd = sys_openat2(AT_FDCWD, ret_path, O_PATH, 0, RESOLVE_NO_SYMLINKS);
        }
        return fd < 0 ? fail(error, errno, OPERATION_OPEN_SOURCE, path) : fd;
}

/* O_PATH alone does not set an automount off, and a clone of one, elsewhere, would never show what is mounted (ELOOP). */
int node_path_open_mounted(const char *path, char *ret_path, struct error *error)
{
        cleanup_close int fd = node_path_open(path, ret_path, error);
        struct statfs fs;
        int mounted;

        if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != AUTOFS_SUPER_MAGIC)
                return fd < 0 ? fd : fd_take(&fd);
        mounted = sys_openat2(AT_FDCWD, ret_path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
        return mounted < 0 ? fail(error, errno, OPERATION_OPEN_SOURCE, path) : mounted;
}
