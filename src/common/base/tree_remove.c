/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/syscalls.h"

#define NAME_SIZE 20   /* 16 hexadecimal digits */
#define SCANS_MAX 1000 /* of one directory that others fill meanwhile */
#define MOVES_MAX 16
#define PASSES_MAX 1000000 /* of a trash directory: each removes a level, unless others make new ones */

static int64_t deadline_ms; /* 0: none */

void tree_remove_until(int64_t until_ms)
{
        deadline_ms = until_ms;
}

static int fail_busy(const char *name, const char *subject, struct error *error)
{
        if (strncmp(name, ".nfs", 4) == 0) /* of a file that was unlinked while a process had it open */
                return fail_because(error, EBUSY, OPERATION_REMOVE, subject,
                                    "a process of this node has a file open in it (\"%.255s\"); end that first", name);
        return fail_because(error, EBUSY, OPERATION_REMOVE, subject,
                            "something is mounted on \"%.255s\" in it; unmount it first", name);
}

int tree_move(int dir_fd, const char *name, int trash_fd, struct error *error)
{
        char to[NAME_SIZE];
        uint64_t number;

        for (int i = 0; i < MOVES_MAX; i++) {
                if (getrandom(&number, sizeof number, 0) != sizeof number)
                        return fail(error, EAGAIN, "getrandom", name);
                (void)snprintf(to, sizeof to, "%016llx", (unsigned long long)number);
                if (renameat2(dir_fd, name, trash_fd, to, RENAME_NOREPLACE) == 0 ||
                    (errno == EINVAL && renameat(dir_fd, name, trash_fd, to) == 0)) /* NFS has no such flag */
                        return 0;
                if (errno == ENOENT)
                        return -ENOENT;
                if (errno == EBUSY)
                        return fail_busy(name, name, error);
                if (errno != EEXIST)
                        return fail(error, errno, "rename", name);
        }
        return fail(error, EEXIST, "rename", name);
}

/* Others may replace it meanwhile. Returns 1: it is no longer there; 0: it was moved to the trash. */
static int remove_entry(int dir_fd, const char *name, bool directory, int trash_fd, const char *subject,
                        struct error *error)
{
        int r;

        for (int i = 0; i < SCANS_MAX; i++) {
                if (unlinkat(dir_fd, name, directory ? AT_REMOVEDIR : 0) == 0 || file_is_gone(errno))
                        return 1;
                if (errno == EBUSY)
                        return fail_busy(name, subject, error);
                if (errno == EISDIR || errno == ENOTDIR) {
                        directory = errno == EISDIR;
                        continue;
                }
                if (errno != ENOTEMPTY && errno != EEXIST)
                        return fail(error, errno, "unlink", name);
                r = tree_move(dir_fd, name, trash_fd, error);
                if (r != -ENOENT)
                        return r;
        }
        return 0; /* the next scan sees it again */
}

/* What a pass does with an entry. Returns negative errno, and the pass ends; else it goes on. */
typedef int entry_function(int dir_fd, const char *name, bool directory, int trash_fd, const char *subject,
                           struct error *error);

/* One pass over a directory. Returns how many entries it saw, at most 1. */
static int scan(int dir_fd, entry_function *function, int trash_fd, const char *subject, struct error *error)
{
        DIR *list = file_list(dir_fd, ".");
        const struct dirent *entry;
        int seen = 0;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, "open", subject);
        errno = 0;
        while (r >= 0 && (entry = readdir(list)) != NULL) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                seen = 1;
                if (deadline_ms != 0 && clock_now_ms() > deadline_ms)
                        r = fail_because(error, ETIME, OPERATION_REMOVE, subject,
                                         "its tree is large, and there was no more time; the next call goes on");
                else if ((r = interrupt_check(OPERATION_REMOVE, subject, error)) == 0)
                        r = function(dir_fd, entry->d_name, entry->d_type == DT_DIR, trash_fd, subject, error);
                errno = 0;
        }
        if (r >= 0 && errno != 0)
                r = fail(error, errno, "read", subject);
        (void)closedir(list); /* only read from */
        return r < 0 ? r : seen;
}

static int fail_growing(const char *subject, struct error *error)
{
        return fail_because(error, EAGAIN, OPERATION_REMOVE, subject,
                            "a process makes files in it as fast as they are removed; end it, and try again");
}

static int scan_all(int dir_fd, int passes_max, entry_function *function, int trash_fd, const char *subject,
                    struct error *error)
{
        int r = 1;

        for (int i = 0; r > 0 && i < passes_max; i++)
                r = scan(dir_fd, function, trash_fd, subject, error);
        return r <= 0 ? r : fail_growing(subject, error);
}

int tree_empty(int dir_fd, int trash_fd, const char *subject, struct error *error)
{
        return scan_all(dir_fd, SCANS_MAX, remove_entry, trash_fd, subject, error);
}

/*
 * What is in the trash itself: a directory is emptied where it is, and its directories come beside it. No directory can be
 * moved out of a subvolume of btrfs, which is a trash of its own then (dir_fd); but the subvolumes in it can, to the first
 * trash (trash_fd).
 */
static int remove_trash(int dir_fd, const char *name, bool directory, int trash_fd, const char *subject,
                        struct error *error)
{
        cleanup_close int fd = -EBADF;
        int r;

        if (unlinkat(dir_fd, name, directory ? AT_REMOVEDIR : 0) == 0 || file_is_gone(errno))
                return 0;
        if (!directory && errno == EISDIR)
                return remove_trash(dir_fd, name, /* directory= */ true, trash_fd, subject, error);
        if (errno == EBUSY)
                return fail_busy(name, subject, error);
        if (!directory || (errno != ENOTEMPTY && errno != EEXIST))
                return fail(error, errno, "unlink", subject);
        fd = sys_openat2(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0,
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
        if (fd < 0)
                return file_is_gone(errno) ? 0
                       : errno == EXDEV    ? fail_busy(name, subject, error)
                                           : fail(error, errno, OPERATION_OPEN, subject);
        r = tree_empty(fd, dir_fd, subject, error);
        if (r == -EXDEV && dir_fd != trash_fd) {
                r = tree_move(dir_fd, name, trash_fd, error);
                return r == -ENOENT ? 0 : r;
        }
        if (r == -EXDEV)
                r = scan_all(fd, PASSES_MAX, remove_trash, trash_fd, subject, error);
        if (r < 0 && r != -ESTALE)
                return r;
        return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || file_is_gone(errno) || errno == ENOTEMPTY
                       ? 0
                       : fail(error, errno, "rmdir", subject);
}

int tree_empty_trash(int trash_fd, const char *subject, struct error *error)
{
        return scan_all(trash_fd, PASSES_MAX, remove_trash, trash_fd, subject, error);
}
