/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file-storm DIR COUNT UID... - one process per UID, all at once: each creates COUNT files in DIR, renames them and
 * removes them.
 *
 * Each file is written, and its owner and content are looked at under the new name. Prints one line for each process:
 * its uid and how many files went the whole way. Exit status 0 if all did. DIR is one where every UID may create.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool complain(const char *what, const char *path)
{
        fprintf(stderr, "file-storm: %s %s: %s\n", what, path, strerror(errno));
        return false;
}

static bool make(const char *path)
{
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0640);
        size_t length = strlen(path);

        if (fd < 0)
                return complain("open", path);
        bool written = write(fd, path, length) == (ssize_t)length;
        return (close(fd) == 0 && written) || complain("write", path);
}

static bool is_right(const char *path, const char *content, uid_t uid)
{
        char buffer[4096];
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &st) < 0)
                return complain("look at", path);
        ssize_t length = read(fd, buffer, sizeof buffer);
        close(fd);
        if (st.st_uid == uid && st.st_gid == uid && length == (ssize_t)strlen(content) &&
            memcmp(buffer, content, (size_t)length) == 0)
                return true;
        fprintf(stderr, "file-storm: %s: of %u:%u, not %u, or %zd bytes that are not those written\n", path, st.st_uid,
                st.st_gid, uid, length);
        return false;
}

static bool live(const char *dir, uid_t uid, unsigned number)
{
        char path[2048], renamed[2048];

        snprintf(path, sizeof path, "%s/%u.%u", dir, uid, number);
        snprintf(renamed, sizeof renamed, "%s/%u.%u.renamed", dir, uid, number);
        if (!make(path))
                return false;
        if (rename(path, renamed) < 0)
                return complain("rename", path);
        return is_right(renamed, path, uid) && (unlink(renamed) == 0 || complain("unlink", renamed));
}

static int storm(const char *dir, uid_t uid, unsigned count)
{
        unsigned done = 0;

        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0) {
                (void)complain("change ids for", dir);
                return 125;
        }
        for (unsigned i = 0; i < count; i++)
                done += live(dir, uid, i);
        printf("%u %u\n", uid, done);
        fflush(stdout);
        return done == count ? 0 : 1;
}

int main(int argc, char **argv)
{
        int status, result = 0;

        if (argc < 4) {
                fprintf(stderr, "usage: file-storm DIR COUNT UID...\n");
                return 125;
        }
        for (int i = 3; i < argc; i++) {
                pid_t pid = fork();
                if (pid == 0)
                        _exit(storm(argv[1], (uid_t)strtoul(argv[i], NULL, 10), (unsigned)strtoul(argv[2], NULL, 10)));
                if (pid < 0)
                        return 125;
        }
        while (wait(&status) > 0)
                if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                        result = 1;
        return result;
}
