/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs-calls - what a filesystem must do, asked call by call.
 *
 *   fs-calls [--uid N] [--gid N] [--groups N,N...] COMMAND ARG...
 *
 * Checks, each in a directory of its own that is empty and belongs to the caller, who is root (of a user namespace):
 * links, rename, unlink, errors, xattr, fallocate, copy, seek, readdir, mmap, direct, append, open, tmpfile, statfs,
 * times, truncate, special, inodes, rights, setid, io; listing, a readdir that is brief. Each says what is wrong and
 * exits with 1; 77: the filesystem cannot.
 *
 * Pieces for what takes more than one process (see usage()).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { UNSUPPORTED = 77, USAGE = 125, FAILURES_MAX = 30, ENTRIES_MAX = 5000 };

static int failures;

static void complain(int line, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        printf("fs-calls.c:%d: ", line);
        vprintf(format, ap);
        printf("\n");
        va_end(ap);
        fflush(stdout);
        if (++failures == FAILURES_MAX)
                exit(1);
}

static long long check_ok(int line, const char *call, long long result)
{
        if (result < 0)
                complain(line, "%s: %s", call, strerrorname_np(errno));
        return result;
}

static void check_fails(int line, const char *call, long long result, int errnum)
{
        if (result >= 0)
                complain(line, "%s: succeeds, and should fail with %s", call, strerrorname_np(errnum));
        else if (errno != errnum)
                complain(line, "%s: %s, expected: %s", call, strerrorname_np(errno), strerrorname_np(errnum));
}

static void check_is(int line, const char *what, long long value, long long expected)
{
        if (value != expected)
                complain(line, "%s is: %lld (0%llo), expected: %lld (0%llo)", what, value, value, expected, expected);
}

#define OK(call) check_ok(__LINE__, #call, (long long)(call))
#define FAILS(call, errnum) check_fails(__LINE__, #call, (long long)(call), errnum)
#define IS(value, expected) check_is(__LINE__, #value, (long long)(value), (long long)(expected))
#define TRUE(what)                                                                                                     \
        do {                                                                                                           \
                if (!(what))                                                                                           \
                        complain(__LINE__, "not so: %s", #what);                                                       \
        } while (0)

/* ---- small things */

static void make(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
                complain(__LINE__, "making %s: %s", path, strerrorname_np(errno));
        if (fd >= 0)
                close(fd);
}

static const char *content(const char *path)
{
        static char text[8192];
        ssize_t length = -1;

        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
                length = read(fd, text, sizeof(text) - 1);
        if (length < 0)
                complain(__LINE__, "reading %s: %s", path, strerrorname_np(errno));
        text[length < 0 ? 0 : length] = 0;
        if (fd >= 0)
                close(fd);
        return text;
}

static void check_content(int line, const char *path, const char *expected)
{
        const char *text = content(path);
        if (strcmp(text, expected) != 0)
                complain(line, "%s holds: \"%s\", expected: \"%s\"", path, text, expected);
}
#define HOLDS(path, expected) check_content(__LINE__, path, expected)

static struct stat status(const char *path)
{
        struct stat st = { 0 };

        if (lstat(path, &st) < 0)
                complain(__LINE__, "lstat %s: %s", path, strerrorname_np(errno));
        return st;
}

#define MODE(path) (status(path).st_mode & 07777)
#define ABSENT(path) FAILS(access(path, F_OK), ENOENT)

static void become(uid_t uid, gid_t gid, size_t count, const gid_t *groups)
{
        if (setgroups(count, groups) < 0 || setegid(gid) < 0 || seteuid(uid) < 0) {
                perror("fs-calls: become");
                exit(USAGE);
        }
}

static void become_root(void)
{
        if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0) {
                perror("fs-calls: become root");
                exit(USAGE);
        }
}

static int entries(const char *path)
{
        int count = 0;
        DIR *dir = opendir(path);

        if (!dir)
                return -1;
        for (struct dirent *entry; (entry = readdir(dir)); count++)
                ;
        closedir(dir);
        return count - 2;
}

/* ---- checks */

static void check_links(void)
{
        char target[PATH_MAX + 1], read_back[PATH_MAX + 1];

        make("file", "text");
        OK(link("file", "second"));
        OK(mkdir("dir", 0755));
        OK(link("second", "dir/third"));
        IS(status("file").st_nlink, 3);
        IS(status("dir/third").st_ino, status("file").st_ino);
        HOLDS("dir/third", "text");
        make("second", "other");
        HOLDS("file", "other");
        OK(unlink("file"));
        IS(status("second").st_nlink, 2);
        FAILS(link("second", "dir/third"), EEXIST);
        FAILS(link("none", "new"), ENOENT);
        FAILS(link("dir", "new"), EPERM);

        /* of an open file, through /proc */
        int fd = OK(open("second", O_RDONLY | O_CLOEXEC));
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        OK(linkat(AT_FDCWD, path, AT_FDCWD, "fourth", AT_SYMLINK_FOLLOW));
        HOLDS("fourth", "other");
        close(fd);

        OK(symlink("second", "relative"));
        HOLDS("relative", "other");
        IS(status("relative").st_size, 6);
        TRUE(S_ISLNK(status("relative").st_mode));
        OK(symlink("../second", "dir/up"));
        HOLDS("dir/up", "other");
        TRUE(getcwd(target, sizeof(target) - 8));
        strcat(target, "/second");
        OK(symlink(target, "absolute"));
        HOLDS("absolute", "other");
        OK(symlink("/does/not/exist", "dangling"));
        FAILS(open("dangling", O_RDONLY), ENOENT);
        OK(link("dangling", "dangling2")); /* a link to the symlink itself */
        IS(status("dangling").st_nlink, 2);

        for (int length = 1; length <= 4095; length = length < 4000 ? length * 10 : length + 95) {
                memset(target, 'x', (size_t)length);
                for (int i = 200; i < length; i += 200)
                        target[i] = '/';
                target[length] = 0;
                OK(symlink(target, "long"));
                IS(status("long").st_size, length);
                IS(readlink("long", read_back, sizeof(read_back)), length);
                read_back[length] = 0;
                TRUE(strcmp(read_back, target) == 0);
                OK(unlink("long"));
                if (length == 1000)
                        length = 400;
        }
        IS(readlink("relative", read_back, 3), 3);
        FAILS(readlink("second", read_back, 3), EINVAL);
        FAILS(symlink("x", "relative"), EEXIST);
        FAILS(symlink("x", "none/x"), ENOENT);

        OK(symlink("loop2", "loop1"));
        OK(symlink("loop1", "loop2"));
        FAILS(open("loop1", O_RDONLY), ELOOP);
        FAILS(open("relative", O_RDONLY | O_NOFOLLOW), ELOOP);
}

static int rename2(const char *from, const char *to, unsigned flags)
{
        return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

static void check_rename(void)
{
        make("a", "A");
        OK(rename("a", "b"));
        ABSENT("a");
        HOLDS("b", "A");
        make("c", "C");
        ino_t ino = status("b").st_ino;
        int old = OK(open("c", O_RDONLY | O_CLOEXEC));
        OK(rename("b", "c"));
        HOLDS("c", "A");
        IS(status("c").st_ino, ino);
        char byte = 0;
        IS(read(old, &byte, 1), 1); /* the one that was there lives as long as it is open */
        IS(byte, 'C');
        close(old);

        make("d", "D");
        FAILS(rename2("c", "d", RENAME_NOREPLACE), EEXIST);
        HOLDS("c", "A");
        HOLDS("d", "D");
        OK(rename2("c", "e", RENAME_NOREPLACE));
        HOLDS("e", "A");

        OK(rename2("d", "e", RENAME_EXCHANGE));
        HOLDS("d", "A");
        HOLDS("e", "D");
        FAILS(rename2("d", "none", RENAME_EXCHANGE), ENOENT);
        OK(mkdir("dir", 0755));
        make("dir/in", "I");
        OK(rename2("d", "dir", RENAME_EXCHANGE));
        HOLDS("dir", "A");
        HOLDS("d/in", "I");
        FAILS(rename2("d", "e", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);

        FAILS(rename("none", "x"), ENOENT);
        FAILS(rename("e", "none/x"), ENOENT);
        FAILS(rename("d", "e"), ENOTDIR);
        FAILS(rename("e", "d"), EISDIR);
        OK(mkdir("empty", 0755));
        FAILS(rename("empty", "d"), ENOTEMPTY);
        OK(rename("d", "empty"));
        HOLDS("empty/in", "I");
        FAILS(rename("empty", "empty/sub"), EINVAL);
        OK(link("e", "e2"));
        OK(rename("e", "e2")); /* two names of one file: nothing happens */
        HOLDS("e", "D");
        HOLDS("e2", "D");

        /* a directory keeps what is open in it, and is found at its new place */
        int fd = OK(open("empty/in", O_RDWR | O_APPEND | O_CLOEXEC));
        OK(mkdir("other", 0755));
        OK(rename("empty", "other/moved"));
        IS(write(fd, "+", 1), 1);
        HOLDS("other/moved/in", "I+");
        IS(status("other").st_nlink, 3);
        OK(rename("other/moved/in", "in"));
        IS(write(fd, "+", 1), 1);
        close(fd);
        HOLDS("in", "I++");

        /* a directory of one's own as the current one */
        OK(mkdir("deep", 0755));
        OK(chdir("deep"));
        OK(rename("../deep", "../deeper"));
        make("here", "H");
        OK(chdir(".."));
        HOLDS("deeper/here", "H");
        IS(entries("."), 6);
}

static void check_unlink(void)
{
        struct stat st;
        char text[16] = "";

        make("file", "text");
        int fd = OK(open("file", O_RDWR | O_CLOEXEC)), second = OK(open("file", O_RDONLY | O_CLOEXEC));
        OK(unlink("file"));
        ABSENT("file");
        IS(entries("."), 0);
        OK(fstat(fd, &st));
        IS(st.st_nlink, 0);
        IS(st.st_size, 4);
        IS(pread(second, text, 16, 0), 4);
        TRUE(strcmp(text, "text") == 0);
        IS(pwrite(fd, "TEXT", 4, 4), 4);
        IS(pread(second, text, 16, 0), 8);
        OK(ftruncate(fd, 100));
        OK(fstat(second, &st));
        IS(st.st_size, 100);
        OK(fchmod(fd, 0600));
        OK(fstat(second, &st));
        IS(st.st_mode & 07777, 0600);
        OK(futimens(fd, (struct timespec[]){ { .tv_sec = 5 }, { .tv_sec = 6 } }));
        OK(fstat(second, &st));
        IS(st.st_mtime, 6);
        close(fd);
        IS(pread(second, text, 4, 0), 4);
        make("file", "new"); /* another file */
        IS(pread(second, text, 4, 0), 4);
        TRUE(memcmp(text, "text", 4) == 0);
        close(second);
        HOLDS("file", "new");

        OK(mkdir("dir", 0755));
        make("dir/in", "");
        FAILS(rmdir("dir"), ENOTEMPTY);
        FAILS(unlink("dir"), EISDIR);
        FAILS(rmdir("file"), ENOTDIR);
        FAILS(rmdir("none"), ENOENT);
        FAILS(unlink("none"), ENOENT);
        FAILS(rmdir("dir/."), EINVAL);
        OK(unlink("dir/in"));
        fd = OK(open("dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        OK(rmdir("dir"));
        OK(fstat(fd, &st));
        IS(st.st_nlink, 0);
        FAILS(openat(fd, "x", O_CREAT | O_WRONLY, 0644), ENOENT);
        close(fd);
        OK(unlink("file"));
        IS(entries("."), 0);
}

static void check_errors(void)
{
        char name[300], path[5000];

        make("file", "text");
        OK(mkdir("dir", 0755));
        FAILS(open("file", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
        FAILS(mkdir("dir", 0755), EEXIST);
        FAILS(mkdir("file", 0755), EEXIST);
        FAILS(mkfifo("file", 0644), EEXIST);
        FAILS(open("none", O_RDONLY), ENOENT);
        FAILS(open("none/x", O_CREAT | O_WRONLY, 0644), ENOENT);
        FAILS(mkdir("none/x", 0755), ENOENT);
        FAILS(open("file/x", O_RDONLY), ENOTDIR);
        FAILS(open("file/x", O_CREAT | O_WRONLY, 0644), ENOTDIR);
        FAILS(mkdir("file/x", 0755), ENOTDIR);
        FAILS(open("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
        FAILS(open("dir", O_WRONLY), EISDIR);
        FAILS(open("dir", O_CREAT | O_WRONLY, 0644), EISDIR);
        FAILS(truncate("dir", 0), EISDIR);
        FAILS(open("", O_RDONLY), ENOENT);
        FAILS(symlink("", "empty"), ENOENT);

        memset(name, 'n', sizeof(name));
        name[255] = 0;
        make(name, "longest");
        HOLDS(name, "longest");
        OK(mkdir("long", 0755));
        snprintf(path, sizeof(path), "long/%s", name);
        OK(rename(name, path));
        OK(unlink(path));
        name[255] = 'n';
        name[256] = 0;
        FAILS(open(name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG);
        FAILS(open(name, O_RDONLY), ENAMETOOLONG);
        FAILS(mkdir(name, 0755), ENAMETOOLONG);
        FAILS(rename("file", name), ENAMETOOLONG);
        FAILS(symlink("x", name), ENAMETOOLONG);
        FAILS(link("file", name), ENAMETOOLONG);
        memset(path, '/', sizeof(path));
        path[4999] = 0;
        FAILS(open(path, O_RDONLY), ENAMETOOLONG);

        int fd = OK(open("file", O_RDONLY | O_CLOEXEC));
        FAILS(write(fd, "x", 1), EBADF);
        FAILS(ftruncate(fd, 0), EINVAL);
        FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
        FAILS(ioctl(fd, FS_IOC_GETFLAGS + 77, NULL), ENOTTY);
        close(fd);
        fd = OK(open("file", O_WRONLY | O_CLOEXEC));
        FAILS(read(fd, name, 1), EBADF);
        close(fd);
        fd = OK(open("dir", O_RDONLY | O_CLOEXEC));
        FAILS(read(fd, name, 1), EISDIR);
        close(fd);

        /* what is odd and allowed */
        static const char *const odd[] = { "a b", "a\nb", "\xff\xfe", "-", "...", "a\\b", "\"", "größe", "*" };
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
                make(odd[i], odd[i]);
                HOLDS(odd[i], odd[i]);
                OK(unlink(odd[i]));
        }
        OK(mkdir("deep", 0755));
        OK(chdir("deep"));
        for (int i = 0; i < 200; i++) {
                OK(mkdir("d", 0755));
                OK(chdir("d"));
        }
        make("bottom", "B");
        HOLDS("bottom", "B");
}

static void check_xattr(void)
{
        char value[70000], list[70000];
        const char *path = "file";

        make(path, "text");
        if (setxattr(path, "user.a", "1", 1, 0) < 0 && errno == EOPNOTSUPP)
                exit(UNSUPPORTED);
        IS(getxattr(path, "user.a", value, sizeof(value)), 1);
        IS(value[0], '1');
        OK(setxattr(path, "user.empty", "", 0, 0));
        IS(getxattr(path, "user.empty", value, sizeof(value)), 0);
        memset(value, 'v', sizeof(value));
        memcpy(value, "\0bin\n", 5);
        OK(setxattr(path, "user.big", value, 2000, 0));
        memset(list, 0, sizeof(list));
        IS(getxattr(path, "user.big", list, sizeof(list)), 2000);
        TRUE(memcmp(list, value, 2000) == 0);

        IS(getxattr(path, "user.big", NULL, 0), 2000);
        FAILS(getxattr(path, "user.big", value, 1999), ERANGE);
        IS(getxattr(path, "user.big", value, 2000), 2000);
        FAILS(getxattr(path, "user.none", value, 10), ENODATA);
        FAILS(getxattr("none", "user.a", value, 10), ENOENT);
        FAILS(removexattr(path, "user.none"), ENODATA);
        FAILS(setxattr(path, "user.a", "2", 1, XATTR_CREATE), EEXIST);
        FAILS(setxattr(path, "user.new", "2", 1, XATTR_REPLACE), ENODATA);
        OK(setxattr(path, "user.a", "2", 1, XATTR_REPLACE));
        OK(setxattr(path, "user.new", "3", 1, XATTR_CREATE));
        IS(getxattr(path, "user.a", value, 10), 1);
        IS(value[0], '2');
        FAILS(setxattr(path, "user.huge", value, 65537, 0), E2BIG);

        /* the list, whatever else is in it */
        ssize_t length = OK(listxattr(path, list, sizeof(list)));
        int ours = 0;
        for (char *name = list; name < list + length; name += strlen(name) + 1)
                ours += strncmp(name, "user.", 5) == 0;
        IS(ours, 4);
        IS(listxattr(path, NULL, 0), length);
        FAILS(listxattr(path, list, 3), ERANGE);
        IS(listxattr(path, list, (size_t)length), length);
        OK(removexattr(path, "user.new"));
        FAILS(getxattr(path, "user.new", value, 10), ENODATA);

        int fd = OK(open(path, O_RDONLY | O_CLOEXEC));
        OK(fsetxattr(fd, "user.fd", "4", 1, 0));
        IS(fgetxattr(fd, "user.fd", value, 10), 1);
        IS(flistxattr(fd, NULL, 0), listxattr(path, NULL, 0));
        OK(fremovexattr(fd, "user.fd"));
        close(fd);

        OK(mkdir("dir", 0755));
        OK(setxattr("dir", "user.a", "5", 1, 0));
        IS(getxattr("dir", "user.a", value, 10), 1);
        OK(symlink("file", "link"));
        FAILS(lsetxattr("link", "user.a", "6", 1, 0), EPERM);

        /* who may */
        OK(chmod(path, 0644));
        become(1000, 1000, 0, NULL);
        FAILS(setxattr(path, "user.a", "7", 1, 0), EACCES);
        IS(getxattr(path, "user.a", value, 10), 1);
        become_root();

        /* not for containers */
        TRUE(setxattr(path, "trusted.a", "8", 1, 0) < 0);
        TRUE(errno == EPERM || errno == EOPNOTSUPP);
        TRUE(getxattr(path, "trusted.a", value, 10) < 0);
}

static void check_fallocate(void)
{
        unsigned char data[65536];
        struct stat st;

        int fd = OK(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        OK(fallocate(fd, 0, 0, 65536));
        OK(fstat(fd, &st));
        IS(st.st_size, 65536);
        TRUE(st.st_blocks >= 128);
        OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 65536, 65536));
        OK(fstat(fd, &st));
        IS(st.st_size, 65536);
        memset(data, 'd', sizeof(data));
        IS(pwrite(fd, data, 65536, 0), 65536);
        OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
        OK(fstat(fd, &st));
        IS(st.st_size, 65536);
        IS(pread(fd, data, 65536, 0), 65536);
        IS(data[4095], 'd');
        IS(data[4096], 0);
        IS(data[12287], 0);
        IS(data[12288], 'd');
        if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 16384, 100) == 0) {
                IS(pread(fd, data, 65536, 0), 65536);
                IS(data[16383], 'd');
                IS(data[16384], 0);
                IS(data[16483], 0);
                IS(data[16484], 'd');
        } else {
                IS(errno, EOPNOTSUPP);
        }
        if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == 0) {
                OK(fstat(fd, &st));
                IS(st.st_size, 61440);
        } else {
                IS(errno, EOPNOTSUPP);
        }
        if (fallocate(fd, FALLOC_FL_INSERT_RANGE, 4096, 4096) < 0)
                IS(errno, EOPNOTSUPP);
        FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP);
        FAILS(fallocate(fd, 0, -1, 10), EINVAL);
        FAILS(fallocate(fd, 0, 0, 0), EINVAL);
        close(fd);
        fd = OK(open("file", O_RDONLY | O_CLOEXEC));
        FAILS(fallocate(fd, 0, 0, 10), EBADF);
        close(fd);
}

static void check_copy(void)
{
        enum { SIZE = 300000 };
        static unsigned char data[SIZE], copy[SIZE];

        for (int i = 0; i < SIZE; i++)
                data[i] = (unsigned char)(i * 7 + i / 251);
        int from = OK(open("from", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        IS(write(from, data, SIZE), SIZE);
        int to = OK(open("to", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        off_t in = 0, out = 10;
        while (in < SIZE) {
                ssize_t done = copy_file_range(from, &in, to, &out, (size_t)(SIZE - in), 0);
                if (done <= 0) {
                        complain(__LINE__, "copy_file_range: %zd %s", done, strerrorname_np(errno));
                        break;
                }
        }
        IS(pread(to, copy, SIZE, 10), SIZE);
        TRUE(memcmp(data, copy, SIZE) == 0);
        IS(status("to").st_size, SIZE + 10);
        in = SIZE;
        IS(copy_file_range(from, &in, to, NULL, 10, 0), 0);
        int only = OK(open("to", O_RDONLY | O_CLOEXEC));
        FAILS(copy_file_range(from, NULL, only, NULL, 10, 0), EBADF);
        close(only);

        OK(ftruncate(to, 0));
        in = 0;
        OK(lseek(to, 0, SEEK_SET));
        while (in < SIZE && sendfile(to, from, &in, SIZE) > 0)
                ;
        IS(pread(to, copy, SIZE, 0), SIZE);
        TRUE(memcmp(data, copy, SIZE) == 0);

        int pipes[2];
        OK(pipe(pipes));
        OK(ftruncate(to, 0));
        off_t at = 0, put = 0;
        while (at < 65536 && splice(from, &at, pipes[1], NULL, 32768, 0) > 0)
                while (put < at && splice(pipes[0], NULL, to, &put, (size_t)(at - put), 0) > 0)
                        ;
        IS(pread(to, copy, 65536, 0), 65536);
        TRUE(memcmp(data, copy, 65536) == 0);

        /* to another filesystem and back */
        char path[] = "/tmp/fs-calls.XXXXXX";
        int far = OK(mkstemp(path));
        unlink(path);
        in = 0;
        ssize_t done = copy_file_range(from, &in, far, NULL, SIZE, 0);
        if (done < 0)
                IS(errno, EXDEV);
        close(far);
        close(from);
        close(to);
        close(pipes[0]);
        close(pipes[1]);
}

static void check_seek(void)
{
        int fd = OK(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        const off_t unit = 1 << 20;

        OK(ftruncate(fd, 10 * unit));
        IS(pwrite(fd, "data", 4, 2 * unit), 4);
        IS(pwrite(fd, "data", 4, 7 * unit), 4);
        off_t first = lseek(fd, 0, SEEK_DATA), hole = lseek(fd, 2 * unit, SEEK_HOLE);
        IS(first, 2 * unit);
        TRUE(hole > 2 * unit && hole <= 2 * unit + 65536);
        IS(lseek(fd, hole, SEEK_DATA), 7 * unit);
        IS(lseek(fd, 0, SEEK_HOLE), 0);
        FAILS(lseek(fd, 9 * unit, SEEK_DATA), ENXIO);
        FAILS(lseek(fd, 10 * unit, SEEK_HOLE), ENXIO);
        FAILS(lseek(fd, 10 * unit, SEEK_DATA), ENXIO);
        IS(lseek(fd, 9 * unit, SEEK_HOLE), 9 * unit);
        IS(lseek(fd, -1, SEEK_END), 10 * unit - 1);
        TRUE(status("file").st_blocks < 2048);
        close(fd);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_directory(int wanted)
{
        static long places[ENTRIES_MAX + 2];
        static char *names[ENTRIES_MAX + 2], *again[ENTRIES_MAX + 2];
        char name[64];
        int count = 0;

        for (int i = 0; i < wanted; i++) {
                snprintf(name, sizeof(name), "a-name-of-some-length-%d", i);
                if (i % 100 == 0) {
                        OK(mkdir(name, 0755));
                } else {
                        int fd = OK(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
                        close(fd);
                }
        }
        DIR *dir = opendir(".");
        TRUE(dir);
        if (!dir)
                return;
        for (;;) {
                long place = telldir(dir);
                struct dirent *entry = readdir(dir);
                if (!entry || count == wanted + 2)
                        break;
                places[count] = place;
                names[count++] = strdup(entry->d_name);
                if (entry->d_name[0] != '.' && count % 50 == 0) {
                        struct stat st = status(entry->d_name);
                        IS(entry->d_ino, st.st_ino);
                        IS(entry->d_type, IFTODT(st.st_mode));
                }
        }
        IS(count, wanted + 2);
        for (int i = count - 1; i > 0; i = i * 2 / 3 - 1) {
                seekdir(dir, places[i]);
                struct dirent *entry = readdir(dir);
                TRUE(entry && strcmp(entry->d_name, names[i]) == 0);
        }
        rewinddir(dir);
        make("zz-new", "");
        bool seen = false;
        int second = 0;
        for (struct dirent *entry; (entry = readdir(dir));) {
                seen |= strcmp(entry->d_name, "zz-new") == 0;
                if (second < wanted + 2 && strcmp(entry->d_name, "zz-new") != 0)
                        again[second++] = strdup(entry->d_name);
        }
        TRUE(seen);
        IS(second, count);
        qsort(names, (size_t)count, sizeof(names[0]), by_name);
        qsort(again, (size_t)second, sizeof(again[0]), by_name);
        for (int i = 0; i < count && i < second; i++)
                if (strcmp(names[i], again[i]) != 0 || (i > 0 && strcmp(names[i], names[i - 1]) == 0)) {
                        complain(__LINE__, "names differ or come twice: %s %s", names[i], again[i]);
                        break;
                }
        /* everything is removed while it is being read */
        rewinddir(dir);
        for (struct dirent *entry; (entry = readdir(dir));)
                if (entry->d_name[0] != '.' && unlink(entry->d_name) < 0 && errno == EISDIR)
                        OK(rmdir(entry->d_name));
        closedir(dir);
        IS(entries("."), 0);
}

static void check_readdir(void)
{
        check_directory(ENTRIES_MAX);
}

/* for where each call takes long */
static void check_listing(void)
{
        check_directory(1000);
}

static void check_mmap(void)
{
        enum { SIZE = 1 << 20 };
        char text[16];

        int fd = OK(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        OK(ftruncate(fd, SIZE));
        char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
                complain(__LINE__, "mmap: %s", strerrorname_np(errno));
                return;
        }
        memcpy(map + 5000, "mapped", 6);
        IS(pread(fd, text, 6, 5000), 6);
        TRUE(memcmp(text, "mapped", 6) == 0);
        IS(pwrite(fd, "written", 7, 9000), 7);
        TRUE(memcmp(map + 9000, "written", 7) == 0);
        pid_t pid = fork();
        if (pid == 0) {
                memcpy(map + 70000, "child", 5);
                int other = open("file", O_RDWR);
                char *second = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
                bool same = second != MAP_FAILED && memcmp(second + 5000, "mapped", 6) == 0;
                if (same)
                        memcpy(second + 80000, "twice", 5);
                _exit(!same);
        }
        int code = -1;
        waitpid(pid, &code, 0);
        IS(code, 0);
        TRUE(memcmp(map + 70000, "child", 5) == 0);
        TRUE(memcmp(map + 80000, "twice", 5) == 0);
        OK(msync(map, SIZE, MS_SYNC));
        char *private = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        TRUE(private != MAP_FAILED);
        if (private != MAP_FAILED) {
                memcpy(private + 5000, "secret", 6);
                TRUE(memcmp(map + 5000, "mapped", 6) == 0);
        }
        /* what is mapped outlives the descriptor and the name */
        close(fd);
        OK(link("file", "second"));
        OK(unlink("file"));
        memcpy(map + 100000, "late", 4);
        OK(munmap(map, SIZE));
        fd = OK(open("second", O_RDONLY | O_CLOEXEC));
        IS(pread(fd, text, 4, 100000), 4);
        TRUE(memcmp(text, "late", 4) == 0);
        FAILS((long)mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EACCES);
        close(fd);
}

static void check_direct(void)
{
        char *buffer = NULL, text[8192];

        int fd = open("file", O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);
        if (fd < 0 && errno == EINVAL)
                exit(UNSUPPORTED);
        OK(fd);
        TRUE(posix_memalign((void **)&buffer, 4096, 65536) == 0);
        memset(buffer, 'D', 65536);
        IS(pwrite(fd, buffer, 65536, 0), 65536);
        IS(pwrite(fd, buffer, 4096, 131072), 4096);
        memset(buffer, 0, 65536);
        IS(pread(fd, buffer, 65536, 0), 65536);
        IS(buffer[0] + buffer[65535], 'D' * 2);
        IS(pread(fd, buffer, 65536, 65536), 65536);
        IS(buffer[0], 0);
        IS(pread(fd, buffer, 65536, 131072), 4096);
        IS(pread(fd, buffer, 4096, 1 << 20), 0);

        /* mixed with an open without it */
        int other = OK(open("file", O_RDWR | O_CLOEXEC));
        IS(pread(other, text, 8192, 0), 8192);
        IS(text[8191], 'D');
        IS(pwrite(other, "plain", 5, 4096), 5);
        IS(pread(fd, buffer, 4096, 4096), 4096);
        TRUE(memcmp(buffer, "plain", 5) == 0);
        memset(buffer, 'E', 4096);
        IS(pwrite(fd, buffer, 4096, 0), 4096);
        IS(pread(other, text, 8192, 0), 8192);
        IS(text[0], 'E');
        close(fd);
        OK(fcntl(other, F_SETFL, O_DIRECT));
        IS(pread(other, buffer, 4096, 0), 4096);
        IS(buffer[4095], 'E');
        close(other);
        free(buffer);
}

/* COUNT records of 32 bytes: the writer's letter, its number, and a newline. */
static int append_records(const char *path, char letter, int count)
{
        char record[40];

        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        for (int i = 0; fd >= 0 && i < count; i++) {
                snprintf(record, sizeof(record), "%c%030d\n", letter, i);
                if (write(fd, record, 32) != 32)
                        return 1;
        }
        return fd < 0;
}

/* The records of each letter are whole and in order, and there are COUNT of each. */
static void verify_records(const char *path, const char *letters, int count)
{
        int next[256] = { 0 }, total = 0;
        char record[40];
        FILE *file = fopen(path, "re");

        TRUE(file);
        while (file && fread(record, 32, 1, file) == 1) {
                record[31] = 0;
                if (atoi(record + 1) != next[(unsigned char)record[0]]++) {
                        complain(__LINE__, "record %d is out of order, torn or missing: %s", total, record);
                        break;
                }
                total++;
        }
        IS(total, count * (int)strlen(letters));
        if (file)
                fclose(file);
}

static void check_append(void)
{
        int code, bad = 0;

        for (char letter = 'a'; letter <= 'c'; letter++)
                if (fork() == 0)
                        _exit(append_records("file", letter, 1000));
        while (wait(&code) > 0)
                bad += code != 0;
        IS(bad, 0);
        verify_records("file", "abc", 1000);

        int fd = OK(open("file", O_RDWR | O_APPEND | O_CLOEXEC));
        OK(lseek(fd, 0, SEEK_SET));
        IS(write(fd, "end", 3), 3);
        IS(lseek(fd, 0, SEEK_CUR), 96003);
        close(fd);
}

static void check_open(void)
{
        make("file", "a long text");
        int fd = OK(open("file", O_WRONLY | O_TRUNC | O_CLOEXEC));
        IS(status("file").st_size, 0);
        IS(write(fd, "new", 3), 3);
        close(fd);
        HOLDS("file", "new");
        fd = OK(open("file", O_RDONLY | O_TRUNC | O_CLOEXEC));
        IS(status("file").st_size, 0);
        close(fd);
        fd = OK(open("new", O_CREAT | O_EXCL | O_RDWR | O_TRUNC | O_CLOEXEC, 0400));
        IS(write(fd, "x", 1), 1); /* its maker may write what its mode would not let him */
        close(fd);
        IS(MODE("new"), 0400);
        become(1000, 1000, 0, NULL);
        FAILS(open("new", O_RDWR), EACCES);
        become_root();
        OK(mkdir("dir", 0777));
        OK(chmod("dir", 0777));
        become(1000, 1000, 0, NULL);
        fd = OK(open("dir/mine", O_CREAT | O_RDWR | O_CLOEXEC, 0000));
        IS(write(fd, "x", 1), 1);
        close(fd);
        FAILS(open("dir/mine", O_RDONLY), EACCES);
        become_root();
        IS(status("dir/mine").st_uid, 1000);
        fd = OK(open("dir", O_PATH | O_CLOEXEC));
        IS(faccessat(fd, "mine", F_OK, 0), 0);
        close(fd);
        fd = OK(open("file", O_RDWR | O_SYNC | O_CLOEXEC));
        IS(write(fd, "sync", 4), 4);
        OK(fsync(fd));
        OK(fdatasync(fd));
        OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
        close(fd);
        fd = OK(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        OK(fsync(fd));
        OK(syncfs(fd));
        close(fd);
        HOLDS("file", "sync");

        umask(027);
        fd = OK(open("masked", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        close(fd);
        OK(mkdir("masked-dir", 0777));
        OK(mkfifo("masked-fifo", 0666));
        IS(MODE("masked"), 0640);
        IS(MODE("masked-dir"), 0750);
        IS(MODE("masked-fifo"), 0640);
        umask(0);
        fd = OK(open("open", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        close(fd);
        OK(mkdir("open-dir", 01777));
        IS(MODE("open"), 0666);
        IS(MODE("open-dir"), 01777);
        umask(022);
}

static void check_tmpfile(void)
{
        char path[64], text[8] = "";
        struct stat st;

        int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0640);
        if (fd < 0) {
                TRUE(errno == EOPNOTSUPP);
                IS(entries("."), 0);
                exit(failures ? 1 : UNSUPPORTED);
        }
        IS(write(fd, "text", 4), 4);
        OK(fstat(fd, &st));
        IS(st.st_nlink, 0);
        IS(entries("."), 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
        HOLDS("named", "text");
        IS(pread(fd, text, 4, 0), 4);
        IS(status("named").st_nlink, 1);
        IS(MODE("named"), 0640);
        close(fd);
        fd = OK(open(".", O_TMPFILE | O_WRONLY | O_EXCL | O_CLOEXEC, 0600));
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        FAILS(linkat(AT_FDCWD, path, AT_FDCWD, "second", AT_SYMLINK_FOLLOW), ENOENT);
        close(fd);
        IS(entries("."), 1);
}

static void check_statfs(void)
{
        struct statvfs fs, by_fd;

        OK(statvfs(".", &fs));
        TRUE(fs.f_blocks > 0 && fs.f_bfree <= fs.f_blocks && fs.f_bavail <= fs.f_bfree);
        TRUE(fs.f_files > 0 && fs.f_ffree <= fs.f_files);
        IS(fs.f_namemax, 255);
        TRUE(fs.f_bsize >= 512 && fs.f_frsize >= 512);
        make("file", "text");
        int fd = OK(open("file", O_RDONLY | O_CLOEXEC));
        OK(fstatvfs(fd, &by_fd));
        IS(by_fd.f_blocks, fs.f_blocks);
        close(fd);
}

/* A time that was set since `begin`, as a filesystem's clock has it, which ticks. */
static bool is_since(time_t begin, time_t when)
{
        return when >= begin - 1 && when <= time(NULL) + 1;
}

static void check_times(void)
{
        struct stat st;
        struct timespec past[2] = { { 1000000000, 123456789 }, { 1100000000, 987654321 } };
        const struct timespec now = { .tv_nsec = UTIME_NOW }, omit = { .tv_nsec = UTIME_OMIT };
        time_t start = time(NULL);

        make("file", "text");
        TRUE(is_since(start, status("file").st_mtime));
        OK(utimensat(AT_FDCWD, "file", past, 0));
        st = status("file");
        IS(st.st_atim.tv_sec, past[0].tv_sec);
        IS(st.st_atim.tv_nsec, past[0].tv_nsec);
        IS(st.st_mtim.tv_sec, past[1].tv_sec);
        IS(st.st_mtim.tv_nsec, past[1].tv_nsec);
        TRUE(st.st_ctime >= start - 1);
        OK(utimensat(AT_FDCWD, "file", (struct timespec[]){ omit, now }, 0));
        st = status("file");
        IS(st.st_atim.tv_nsec, past[0].tv_nsec);
        TRUE(is_since(start, st.st_mtime));
        OK(utimensat(AT_FDCWD, "file", (struct timespec[]){ past[0], omit }, 0));
        OK(utimensat(AT_FDCWD, "file", NULL, 0));
        TRUE(is_since(start, status("file").st_atime));

        OK(symlink("file", "link"));
        ino_t file_mtime = (ino_t)status("file").st_mtime;
        OK(utimensat(AT_FDCWD, "link", past, AT_SYMLINK_NOFOLLOW));
        IS(status("link").st_mtim.tv_sec, past[1].tv_sec);
        IS(status("file").st_mtime, file_mtime);
        OK(mkdir("dir", 0755));
        OK(utimensat(AT_FDCWD, "dir", past, 0));
        make("dir/in", "");
        TRUE(is_since(start, status("dir").st_mtime));

        /* an open file, and what a write does */
        int fd = OK(open("file", O_RDWR | O_CLOEXEC));
        OK(futimens(fd, past));
        IS(write(fd, "x", 1), 1);
        OK(fsync(fd));
        OK(fstat(fd, &st));
        TRUE(is_since(start, st.st_mtime));
        close(fd);
        TRUE(is_since(start, status("file").st_mtime));

        OK(chmod("file", 0644));
        become(1000, 1000, 0, NULL);
        FAILS(utimensat(AT_FDCWD, "file", past, 0), EPERM);
        FAILS(utimensat(AT_FDCWD, "file", NULL, 0), EACCES);
        become_root();
        OK(chmod("file", 0666));
        become(1000, 1000, 0, NULL);
        OK(utimensat(AT_FDCWD, "file", NULL, 0)); /* who may write may set them to now, */
        FAILS(utimensat(AT_FDCWD, "file", past, 0), EPERM);
        become_root();
        OK(chown("file", 1000, 1000));
        OK(chmod("file", 0444));
        become(1000, 1000, 0, NULL);
        OK(utimensat(AT_FDCWD, "file", past, 0)); /* the owner to anything. */
        become_root();
}

static void check_truncate(void)
{
        char text[200];

        make("file", "0123456789");
        OK(truncate("file", 4));
        HOLDS("file", "0123");
        OK(truncate("file", 100));
        IS(status("file").st_size, 100);
        int fd = OK(open("file", O_RDWR | O_CLOEXEC));
        IS(read(fd, text, sizeof(text)), 100);
        TRUE(memcmp(text, "0123\0\0", 6) == 0 && text[99] == 0);
        OK(ftruncate(fd, 2));
        IS(pread(fd, text, sizeof(text), 0), 2);
        OK(ftruncate(fd, 6LL << 30)); /* more than 4 GiB, all hole */
        IS(status("file").st_size, 6LL << 30);
        IS(pwrite(fd, "far", 3, 5LL << 30), 3);
        IS(pread(fd, text, 3, 5LL << 30), 3);
        TRUE(memcmp(text, "far", 3) == 0);
        TRUE(status("file").st_blocks < 2000);
        OK(ftruncate(fd, 0));
        FAILS(ftruncate(fd, -1), EINVAL);
        close(fd);
        FAILS(truncate("none", 0), ENOENT);
        OK(chmod("file", 0444));
        become(1000, 1000, 0, NULL);
        FAILS(truncate("file", 0), EACCES);
        become_root();

        /* what was cut off does not come back */
        make("again", "0123456789");
        OK(truncate("again", 3));
        OK(truncate("again", 10));
        fd = OK(open("again", O_RDONLY | O_CLOEXEC));
        IS(read(fd, text, 20), 10);
        TRUE(memcmp(text, "012\0\0\0\0\0\0\0", 10) == 0);
        close(fd);
}

static void check_special(void)
{
        int code = -1;
        char text[8] = "";
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };

        OK(mkfifo("fifo", 0600));
        TRUE(S_ISFIFO(status("fifo").st_mode));
        pid_t pid = fork();
        if (pid == 0) {
                int out = open("fifo", O_WRONLY);
                _exit(out < 0 || write(out, "fifo", 4) != 4);
        }
        int fd = OK(open("fifo", O_RDONLY | O_CLOEXEC));
        IS(read(fd, text, 8), 4);
        TRUE(memcmp(text, "fifo", 4) == 0);
        close(fd);
        waitpid(pid, &code, 0);
        IS(code, 0);
        FAILS(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO);

        int server = OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        OK(bind(server, (struct sockaddr *)&address, sizeof(address)));
        OK(listen(server, 1));
        TRUE(S_ISSOCK(status("socket").st_mode));
        int client = OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        OK(connect(client, (struct sockaddr *)&address, sizeof(address)));
        fd = OK(accept(server, NULL, NULL));
        IS(write(client, "sock", 4), 4);
        IS(read(fd, text, 8), 4);
        TRUE(memcmp(text, "sock", 4) == 0);
        FAILS(open("socket", O_RDONLY), ENXIO);
        FAILS(bind(OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), (struct sockaddr *)&address, sizeof(address)),
              EADDRINUSE);
        OK(rename("socket", "moved"));
        OK(unlink("moved"));
        OK(mknod("regular", S_IFREG | 0640, 0));
        IS(status("regular").st_mode, S_IFREG | 0640);

        FAILS(mknod("char", S_IFCHR | 0666, makedev(1, 3)), EPERM);
        FAILS(mknod("block", S_IFBLK | 0666, makedev(7, 0)), EPERM);
        IS(entries("."), 2);
        /* what this leaves is a device that there is not */
        TRUE(rename2("regular", "whiteout", RENAME_WHITEOUT) < 0 || status("regular").st_rdev == 0);
}

static void check_inodes(void)
{
        enum { COUNT = 200 };
        ino_t numbers[COUNT];
        char name[32];
        struct stat st;

        for (int i = 0; i < COUNT; i++) {
                snprintf(name, sizeof(name), "f%d", i);
                make(name, "x");
                numbers[i] = status(name).st_ino;
        }
        dev_t device = status(".").st_dev;
        for (int i = 0; i < COUNT; i++) {
                snprintf(name, sizeof(name), "f%d", i);
                int fd = OK(open(name, O_RDONLY | O_CLOEXEC));
                OK(fstat(fd, &st));
                IS(st.st_ino, numbers[i]);
                IS(st.st_dev, device);
                close(fd);
                for (int j = 0; j < i; j++)
                        if (numbers[i] == numbers[j]) {
                                complain(__LINE__, "one number for two files");
                                return;
                        }
        }
        IS(status(".").st_nlink, 2);
        OK(mkdir("d1", 0755));
        OK(mkdir("d2", 0755));
        IS(status(".").st_nlink, 4);
        OK(rmdir("d1"));
        IS(status(".").st_nlink, 3);
        IS(status("d2").st_nlink, 2);
        OK(rename("f0", "d2/f0"));
        IS(status("d2/f0").st_ino, numbers[0]);
        IS(status("d2/..").st_ino, status(".").st_ino);
}

static void check_rights(void)
{
        const gid_t groups[] = { 2000, 2001 };

        OK(chmod(".", 0777));
        become(1000, 1000, 2, groups);
        make("mine", "text");
        IS(status("mine").st_uid, 1000);
        IS(status("mine").st_gid, 1000);
        OK(chmod("mine", 0640));
        FAILS(chown("mine", 1001, -1), EPERM);
        FAILS(chown("mine", 0, -1), EPERM);
        OK(chown("mine", -1, 2001)); /* to a group of one's own */
        IS(status("mine").st_gid, 2001);
        FAILS(chown("mine", -1, 3000), EPERM);
        OK(chown("mine", 1000, -1));
        OK(mkdir("dir", 0700));
        make("dir/in", "secret");
        OK(mkdir("listed", 0744)); /* by others, who may look nothing up in it */
        make("listed/in", "text");
        become_root();

        become(1001, 1001, 0, NULL);
        FAILS(open("mine", O_RDONLY), EACCES);
        FAILS(chmod("mine", 0666), EPERM);
        FAILS(chown("mine", 1001, -1), EPERM);
        FAILS(open("dir/in", O_RDONLY), EACCES);
        FAILS(opendir("dir") ? 0 : -1, EACCES);
        FAILS(faccessat(AT_FDCWD, "dir/in", F_OK, AT_EACCESS), EACCES);
        IS(entries("listed"), 1);
        FAILS(open("listed/in", O_RDONLY), EACCES);
        FAILS(open("dir/new", O_CREAT | O_WRONLY, 0644), EACCES);
        FAILS(mkdir("dir/new", 0755), EACCES);
        FAILS(unlink("dir/in"), EACCES);
        FAILS(rename("dir/in", "in"), EACCES);
        FAILS(link("dir/in", "in"), EACCES);
        become_root();

        become(1001, 1001, 2, groups); /* of the group that may read, and no more */
        HOLDS("mine", "text");
        FAILS(open("mine", O_WRONLY), EACCES);
        IS(access("/", F_OK), 0);
        become_root();

        /* root may all that */
        HOLDS("mine", "text");
        HOLDS("dir/in", "secret");
        OK(chown("mine", 5, 6));
        OK(chmod("mine", 0000));
        HOLDS("mine", "text");
        IS(status("mine").st_uid, 5);
        OK(chown("mine", 65535, 65535));
        IS(status("mine").st_uid, 65535);
        FAILS(chown("mine", 65536, 0), EINVAL); /* no such id here */
        OK(symlink("mine", "link"));
        OK(lchown("link", 7, 8));
        IS(status("link").st_uid, 7);
        IS(status("mine").st_uid, 65535);
        FAILS(open("mine", O_RDONLY | O_EXCL | O_CREAT, 0644), EEXIST);
        OK(chmod("mine", 0644));
        FAILS(execl("./mine", "mine", NULL), EACCES);

        /* sticky */
        OK(mkdir("sticky", 0777));
        OK(chmod("sticky", 01777));
        IS(MODE("sticky"), 01777);
        become(1000, 1000, 0, NULL);
        make("sticky/a", "a");
        make("sticky/b", "b");
        OK(chmod("sticky/a", 0666));
        become_root();
        become(1001, 1001, 0, NULL);
        FAILS(unlink("sticky/a"), EPERM);
        FAILS(rename("sticky/a", "sticky/c"), EPERM);
        make("sticky/own", "x");
        FAILS(rename("sticky/own", "sticky/a"), EPERM);
        OK(unlink("sticky/own"));
        make("sticky/a", "changed");
        become_root();
        become(1000, 1000, 0, NULL);
        OK(unlink("sticky/a"));
        become_root();
        OK(unlink("sticky/b"));

        /* real and effective ids */
        become(1000, 1000, 0, NULL);
        OK(mkdir("for-1000", 0700));
        become_root();
        OK(faccessat(AT_FDCWD, "for-1000", W_OK, 0));
}

static void check_setid(void)
{
        int fd;
        const gid_t groups[] = { 2000 };

        /* setgid directories */
        OK(mkdir("shared", 0777));
        OK(chown("shared", 0, 2000));
        OK(chmod("shared", 02777));
        IS(MODE("shared"), 02777);
        become(1000, 1000, 0, NULL);
        make("shared/file", "x");
        OK(mkdir("shared/dir", 0755));
        OK(symlink("x", "shared/link"));
        OK(mkfifo("shared/fifo", 0644));
        make("shared/dir/file", "x");
        become_root();
        IS(status("shared/file").st_gid, 2000);
        IS(status("shared/file").st_uid, 1000);
        IS(status("shared/dir").st_gid, 2000);
        IS(MODE("shared/dir"), 02755);
        IS(status("shared/link").st_gid, 2000);
        IS(status("shared/fifo").st_gid, 2000);
        IS(status("shared/dir/file").st_gid, 2000);
        become(1000, 1000, 0, NULL);
        OK(chmod("shared/file", 02755)); /* not of the group: the bit is dropped */
        IS(MODE("shared/file"), 0755);
        become_root();
        become(1000, 1000, 1, groups);
        OK(chmod("shared/file", 02755));
        IS(MODE("shared/file"), 02755);
        become_root();

        /* set-id bits go when somebody writes, cuts or gives away */
        OK(mkdir("open", 0777));
        OK(chmod("open", 0777));
        for (int way = 0; way < 6; way++) {
                char name[32];
                snprintf(name, sizeof(name), "open/%d", way);
                make(name, "0123456789");
                OK(chown(name, 1000, 1000));
                OK(chmod(name, 06777));
                IS(MODE(name), 06777);
                become(1001, 1001, 0, NULL);
                switch (way) {
                case 0:
                        fd = OK(open(name, O_WRONLY | O_CLOEXEC));
                        IS(write(fd, "x", 1), 1);
                        close(fd);
                        break;
                case 1:
                        OK(truncate(name, 3));
                        break;
                case 2:
                        fd = OK(open(name, O_WRONLY | O_TRUNC | O_CLOEXEC));
                        close(fd);
                        break;
                case 3:
                        fd = OK(open(name, O_RDWR | O_CLOEXEC));
                        OK(fallocate(fd, 0, 0, 10000));
                        close(fd);
                        break;
                case 4:
                        become_root();
                        OK(chown(name, 1002, 1002));
                        break;
                case 5:
                        become_root();
                        become(1000, 1000, 0, NULL);
                        fd = OK(open(name, O_RDWR | O_APPEND | O_CLOEXEC));
                        IS(write(fd, "x", 1), 1);
                        close(fd);
                        break;
                }
                become_root();
                if (MODE(name) != 0777)
                        complain(__LINE__, "way %d: mode is %o, expected: 777", way, MODE(name));
        }
        /* reading changes nothing */
        make("open/read", "x");
        OK(chmod("open/read", 06755));
        become(1001, 1001, 0, NULL);
        HOLDS("open/read", "x");
        become_root();
        IS(MODE("open/read"), 06755);
        /* a set-id file made as such */
        umask(0);
        fd = OK(open("open/made", O_CREAT | O_WRONLY | O_CLOEXEC, 04755));
        close(fd);
        IS(MODE("open/made"), 04755);
        umask(022);
}

static void check_io(void)
{
        enum { SIZE = 3 << 20 };
        static unsigned char data[SIZE], back[SIZE];
        struct iovec vector[3] = { { data, 1 }, { data + 1, 99999 }, { data + 100000, 900000 } };

        for (int i = 0; i < SIZE; i++)
                data[i] = (unsigned char)(i ^ (i >> 8) ^ (i >> 16));
        int fd = OK(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        IS(writev(fd, vector, 3), 1000000);
        IS(pread(fd, back, 1000000, 0), 1000000);
        TRUE(memcmp(data, back, 1000000) == 0);
        IS(pwrite(fd, data, SIZE, 0), SIZE);
        OK(lseek(fd, 0, SEEK_SET));
        IS(read(fd, back, SIZE), SIZE);
        TRUE(memcmp(data, back, SIZE) == 0);
        IS(read(fd, back, 1), 0);
        IS(pread(fd, back, 10, SIZE - 3), 3);
        IS(pwrite(fd, "", 0, 0), 0);
        memset(back, 0, SIZE);
        for (int at = 0; at < SIZE; at += 12345) /* pieces that meet no boundary */
                if (pread(fd, back + at, (size_t)(SIZE - at < 12345 ? SIZE - at : 12345), at) < 0)
                        complain(__LINE__, "pread at %d: %s", at, strerrorname_np(errno));
        TRUE(memcmp(data, back, SIZE) == 0);
        vector[0].iov_base = back;
        vector[1].iov_base = back + 1;
        vector[2].iov_base = back + 100000;
        IS(preadv(fd, vector, 3, 77), 1000000);
        TRUE(memcmp(data + 77, back, 1000000) == 0);
        OK(ioctl(fd, FIONREAD, &(int){ 0 }));
        close(fd);

        /* a write behind another's back, through another open file */
        fd = OK(open("file", O_RDONLY | O_CLOEXEC));
        int other = OK(open("file", O_WRONLY | O_CLOEXEC));
        IS(pwrite(other, "XYZ", 3, 5000), 3);
        IS(pread(fd, back, 3, 5000), 3);
        TRUE(memcmp(back, "XYZ", 3) == 0);
        close(fd);
        close(other);
}

static const struct {
        const char *name;
        void (*check)(void);
} checks[] = {
        { "links", check_links },   { "rename", check_rename },     { "unlink", check_unlink },
        { "errors", check_errors }, { "xattr", check_xattr },       { "fallocate", check_fallocate },
        { "copy", check_copy },     { "seek", check_seek },         { "readdir", check_readdir },
        { "mmap", check_mmap },     { "direct", check_direct },     { "append", check_append },
        { "open", check_open },     { "tmpfile", check_tmpfile },   { "statfs", check_statfs },
        { "times", check_times },   { "truncate", check_truncate }, { "special", check_special },
        { "inodes", check_inodes }, { "rights", check_rights },     { "setid", check_setid },
        { "io", check_io },         { "listing", check_listing },
};

/* ---- pieces */

static void usage(void)
{
        printf("usage: fs-calls [--uid N] [--gid N] [--groups N,N...] COMMAND ARG...\n"
               "  CHECK DIR                     one of the checks\n"
               "  lock KIND FILE                take it, print \"ready\", hold it (posix, ofd, flock; read- before: "
               "shared)\n"
               "  try KIND FILE                 print \"free\" or \"held\"\n"
               "  wait KIND FILE                wait for it, print \"got\"\n"
               "  waiters COUNT KIND FILE       so many processes that wait for it; \"ready\"; dies with them\n"
               "  append FILE LETTER COUNT      records\n"
               "  verify FILE LETTERS COUNT     each of those is there once\n"
               "  open FILE r|w                 \"ok\" or the error\n"
               "  hold FILE                     open it, print \"ready\", and for each line of input say what it "
               "reads\n"
               "  connect SOCKET                \"ok\" or the error\n"
               "  churn DIR COUNT               make, rename and remove so many files\n"
               "  many DIR COUNT                make so many empty files in 100 directories\n"
               "  worker DIR SECONDS            write, read back, list and rename until then, or ../stop; any error is "
               "told\n"
               "  mapped FILE SIZE              map it shared, fill it, print \"ready\", verify on end of input\n"
               "  parallel COUNT SECONDS DIR    so many processes at once with calls of all kinds\n"
               "  open-many COUNT FILE          open it so often, or until it is refused; print how often and why; "
               "hold them\n"
               "  lock-many COUNT DIR           lock so many files there, or until it is refused; print and hold "
               "likewise\n"
               "  attack PID                    trace it, stop it, take its descriptors: tells what succeeds\n");
        exit(USAGE);
}

static int lock_file(int fd, const char *kind, bool wait)
{
        bool shared = strncmp(kind, "read-", 5) == 0;
        bool start = strcmp(kind, "ofd-start") == 0; /* the first byte alone */
        struct flock lock = { .l_type = shared ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_len = start };

        kind += shared ? 5 : 0;
        if (strcmp(kind, "posix") == 0)
                return fcntl(fd, wait ? F_SETLKW : F_SETLK, &lock);
        if (strcmp(kind, "ofd") == 0 || start)
                return fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
        return flock(fd, (shared ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB));
}

static void say(const char *word)
{
        puts(word);
        fflush(stdout);
}

static void *close_later(void *fd)
{
        sleep(1);
        close(*(int *)fd);
        say("closed");
        return NULL;
}

/* An owner of POSIX locks that waits through another open file than that of its first lock, which it closes meanwhile. */
static int wait_and_close(const char *file)
{
        struct flock first = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1L << 40, .l_len = 1 };
        int one = open(file, O_RDWR);
        int two = open(file, O_RDWR);
        pthread_t thread;

        if (one < 0 || two < 0 || fcntl(one, F_SETLK, &first) < 0 || pthread_create(&thread, NULL, close_later, &one))
                return 1;
        if (lock_file(two, "posix", true) < 0)
                say(strerrorname_np(errno));
        else
                say("got");
        return 0;
}

static int lock_command(const char *command, const char *kind, const char *file)
{
        int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

        if (fd < 0 || lock_file(fd, kind, *command == 'w') < 0) {
                say(fd >= 0 && (errno == EAGAIN || errno == EACCES) ? "held" : strerrorname_np(errno));
                return *command != 't';
        }
        say(*command == 'l' ? "ready" : *command == 't' ? "free" : "got");
        while (*command == 'l')
                pause();
        return 0;
}

static int waiters(int count, const char *kind, const char *file)
{
        for (int i = 0; i < count; i++) {
                pid_t pid = fork();
                if (pid < 0) {
                        perror("fs-calls: fork");
                        return 1;
                }
                if (pid == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        int fd = open(file, O_RDWR | O_CLOEXEC);
                        _exit(fd < 0 || lock_file(fd, kind, true) < 0);
                }
        }
        say("ready");
        while (wait(NULL) > 0)
                ;
        return 0;
}

static int hold(const char *file)
{
        char line[16], text[4096];

        int fd = open(file, O_RDWR | O_CLOEXEC);
        say(fd < 0 ? strerrorname_np(errno) : "ready");
        while (fd >= 0 && fgets(line, sizeof(line), stdin)) {
                if (line[0] == '+') { /* + text: appended at the end */
                        line[strcspn(line, "\n")] = 0;
                        if (lseek(fd, 0, SEEK_END) < 0 || write(fd, line + 1, strlen(line + 1)) < 0) {
                                say(strerrorname_np(errno));
                                continue;
                        }
                }
                ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
                text[length < 0 ? 0 : length] = 0;
                say(length < 0 ? strerrorname_np(errno) : text);
        }
        return fd < 0;
}

static int connect_command(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        say(ok ? "ok" : strerrorname_np(errno));
        return !ok;
}

static int churn(int count)
{
        char name[64], other[64];

        for (int i = 0; i < count; i++) {
                snprintf(name, sizeof(name), "%d.%d", getpid(), i);
                snprintf(other, sizeof(other), "%d.%d.new", getpid(), i);
                make(name, "text");
                OK(rename(name, other));
                HOLDS(other, "text");
                OK(unlink(other));
        }
        return failures != 0;
}

static int many(int count)
{
        char name[64];

        for (int i = 0; i < count; i++) {
                snprintf(name, sizeof(name), "d%d", i % 100);
                if (i < 100 && mkdir(name, 0755) < 0)
                        return 1;
                snprintf(name, sizeof(name), "d%d/%d", i % 100, i);
                int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
                if (fd < 0)
                        return 1;
                close(fd);
        }
        return 0;
}

/* One open file is written and read all the time, others come and go; each byte that is read must be what was written.
 */
static int worker(int seconds)
{
        enum { RECORD = 4096 };
        char name[64], renamed[80], record[RECORD], back[RECORD];
        unsigned long rounds = 0;
        time_t end = time(NULL) + seconds;

        snprintf(name, sizeof(name), "log.%d", getpid());
        int fd = OK(open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        while (time(NULL) < end && access("../stop", F_OK) < 0 && !failures) {
                memset(record, 'a' + (int)(rounds % 26), RECORD);
                off_t at = (off_t)(rounds % 1000) * RECORD;
                IS(pwrite(fd, record, RECORD, at), RECORD);
                snprintf(name, sizeof(name), "w.%d.%lu", getpid(), rounds);
                snprintf(renamed, sizeof(renamed), "%s.new", name);
                int other = OK(open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
                IS(write(other, record, 100), 100);
                OK(rename(name, renamed));
                struct stat st = status(renamed);
                IS(st.st_size, 100);
                IS(pread(other, back, 200, 0), 100);
                TRUE(memcmp(record, back, 100) == 0);
                OK(close(other));
                OK(mkdir(name, 0700));
                OK(rmdir(name));
                TRUE(entries(".") >= 2);
                OK(unlink(renamed));
                IS(pread(fd, back, RECORD, at), RECORD);
                TRUE(memcmp(record, back, RECORD) == 0);
                if (rounds >= 999) {
                        off_t old = (off_t)((rounds + 1) % 1000) * RECORD;
                        IS(pread(fd, back, RECORD, old), RECORD);
                        IS(back[RECORD - 1], 'a' + (int)((rounds - 999) % 26));
                }
                rounds++;
        }
        printf("%lu rounds\n", rounds);
        return failures != 0;
}

static int mapped(const char *file, size_t size)
{
        int fd = OK(open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        OK(ftruncate(fd, (off_t)size));
        unsigned *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return 1;
        for (size_t i = 0; i < size / 4; i++)
                map[i] = (unsigned)(i * 2654435761U);
        say("ready");
        while (getchar() != EOF)
                ;
        for (size_t i = 0; i < size / 4; i++)
                if (map[i] != (unsigned)(i * 2654435761U)) {
                        printf("word %zu is %u\n", i, map[i]);
                        return 1;
                }
        OK(msync(map, size, MS_SYNC));
        say(failures ? "not written" : "right");
        return failures != 0;
}

static int parallel(int count, int seconds)
{
        int bad = 0, code;
        time_t end = time(NULL) + seconds;

        for (int i = 0; i < count; i++) {
                if (fork() != 0)
                        continue;
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                char name[32], buffer[8192];
                snprintf(name, sizeof(name), "p%d", i);
                int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
                while (fd >= 0 && time(NULL) < end) {
                        struct stat st;
                        memset(buffer, i, sizeof(buffer));
                        if (pwrite(fd, buffer, sizeof(buffer), 0) != sizeof(buffer) || fsync(fd) < 0 ||
                            lstat(name, &st) < 0 || pread(fd, buffer, sizeof(buffer), 0) != sizeof(buffer) ||
                            buffer[77] != (char)i)
                                _exit(1);
                }
                _exit(fd < 0 || unlink(name) < 0);
        }
        while (wait(&code) > 0)
                bad += code != 0;
        printf("%d of %d failed\n", bad, count);
        return bad != 0;
}

static _Noreturn void open_many(int count, const char *file)
{
        int i = 0;

        errno = 0;
        while (i < count && open(file, O_RDONLY | O_CLOEXEC) >= 0)
                i++;
        printf("%d %s\n", i, errno ? strerrorname_np(errno) : "ok");
        say("ready");
        for (;;)
                pause();
}

static _Noreturn void lock_many(int count, const char *dir)
{
        int i = 0;

        errno = 0;
        for (; i < count; i++) {
                char path[PATH_MAX];
                int fd;

                snprintf(path, sizeof path, "%s/%d", dir, i);
                if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0 || lock_file(fd, "posix", false) < 0)
                        break;
        }
        printf("%d %s\n", i, errno ? strerrorname_np(errno) : "ok");
        say("ready");
        for (;;)
                pause();
}

/* As a process of a container would: whatever works is said. */
static int attack(pid_t pid)
{
        char path[64], byte;
        int found = 0;
        static const char *const files[] = { "mem", "maps", "environ", "fd/0", "root/etc/shadow", "syscall", "stack" };

#define TRY(what, call)                                                                                                \
        do {                                                                                                           \
                if ((call) >= 0) {                                                                                     \
                        printf("%s is possible\n", what);                                                              \
                        found++;                                                                                       \
                }                                                                                                      \
        } while (0)
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0) {
                say("unseen");
                return 0;
        }
        TRY("PTRACE_SEIZE", syscall(SYS_ptrace, 0x4206, pid, 0, 0));
        for (int fd = 0; fd < 20; fd++)
                TRY("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, fd, 0));
        struct iovec local = { &byte, 1 }, remote = { (void *)0x400000, 1 };
        errno = 0;
        if (process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT) {
                say("process_vm_readv is possible");
                found++;
        }
        TRY("SIGSTOP", kill(pid, SIGSTOP));
        TRY("SIGTERM", syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0));
        TRY("prlimit", syscall(SYS_prlimit64, pid, 7, &(long[]){ 1, 1 }, NULL));
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
                int fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd >= 0 && read(fd, &byte, 1) > 0) {
                        printf("%s can be read\n", path);
                        found++;
                }
        }
        if (!found)
                say("nothing is possible");
        return found != 0;
}

static int enter(const char *dir)
{
        if (chdir(dir) == 0)
                return 0;
        fprintf(stderr, "fs-calls: %s: %s\n", dir, strerror(errno));
        exit(USAGE);
}

static int command(int argc, char **argv)
{
        for (size_t i = 0; argc == 2 && i < sizeof(checks) / sizeof(checks[0]); i++)
                if (strcmp(argv[0], checks[i].name) == 0) {
                        enter(argv[1]);
                        checks[i].check();
                        return failures != 0;
                }
        if (argc == 3 && (strcmp(argv[0], "lock") == 0 || strcmp(argv[0], "try") == 0 || strcmp(argv[0], "wait") == 0))
                return lock_command(argv[0], argv[1], argv[2]);
        if (argc == 2 && strcmp(argv[0], "wait-and-close") == 0)
                return wait_and_close(argv[1]);
        if (argc == 4 && strcmp(argv[0], "waiters") == 0)
                return waiters(atoi(argv[1]), argv[2], argv[3]);
        if (argc == 4 && strcmp(argv[0], "append") == 0)
                return append_records(argv[1], argv[2][0], atoi(argv[3]));
        if (argc == 4 && strcmp(argv[0], "verify") == 0) {
                verify_records(argv[1], argv[2], atoi(argv[3]));
                return failures != 0;
        }
        if (argc == 3 && strcmp(argv[0], "open") == 0) {
                int fd = open(argv[1], *argv[2] == 'r' ? O_RDONLY : O_RDWR);
                say(fd < 0 ? strerrorname_np(errno) : "ok");
                return fd < 0;
        }
        if (argc == 2 && strcmp(argv[0], "hold") == 0)
                return hold(argv[1]);
        if (argc == 2 && strcmp(argv[0], "connect") == 0)
                return connect_command(argv[1]);
        if (argc == 3 && strcmp(argv[0], "churn") == 0)
                return enter(argv[1]), churn(atoi(argv[2]));
        if (argc == 3 && strcmp(argv[0], "many") == 0)
                return enter(argv[1]), many(atoi(argv[2]));
        if (argc == 3 && strcmp(argv[0], "worker") == 0)
                return enter(argv[1]), worker(atoi(argv[2]));
        if (argc == 3 && strcmp(argv[0], "mapped") == 0)
                return mapped(argv[1], (size_t)atol(argv[2]));
        if (argc == 4 && strcmp(argv[0], "parallel") == 0)
                return enter(argv[3]), parallel(atoi(argv[1]), atoi(argv[2]));
        if (argc == 3 && strcmp(argv[0], "open-many") == 0)
                open_many(atoi(argv[1]), argv[2]);
        if (argc == 3 && strcmp(argv[0], "lock-many") == 0)
                lock_many(atoi(argv[1]), argv[2]);
        if (argc == 2 && strcmp(argv[0], "attack") == 0)
                return attack(atoi(argv[1]));
        usage();
        return USAGE;
}

int main(int argc, char **argv)
{
        uid_t uid = 0;
        gid_t gid = 0, groups[64];
        size_t count = 0;
        bool change = false;

        argv++, argc--;
        for (; argc > 2 && strncmp(argv[0], "--", 2) == 0; argv += 2, argc -= 2) {
                change = true;
                if (strcmp(argv[0], "--uid") == 0)
                        uid = (uid_t)atoi(argv[1]);
                else if (strcmp(argv[0], "--gid") == 0)
                        gid = (gid_t)atoi(argv[1]);
                else if (strcmp(argv[0], "--groups") == 0)
                        for (char *word = strtok(argv[1], ","); word && count < 64; word = strtok(NULL, ","))
                                groups[count++] = (gid_t)atoi(word);
                else
                        usage();
        }
        if (argc < 1)
                usage();
        umask(022);
        if (change && (setgroups(count, groups) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)) {
                perror("fs-calls: ids");
                return USAGE;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nsenter forks, and whoever kills that means this */
        return command(argc, argv);
}
