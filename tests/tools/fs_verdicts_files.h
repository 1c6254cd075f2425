/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verdicts: what is done by descriptors, and sizes. */
#pragma once

#include "fs_verdicts.h"

/* ---- descriptors */

static void try_reading(void)
{
        char text[16] = "";
        int fd;

        make_kinds();
        fd = open("file", O_RDONLY | O_CLOEXEC);
        TRY(write(fd, "x", 1));
        TRY(ftruncate(fd, 0));
        TRY(fchmod(fd, 0640));
        TRY(lseek(fd, -1, SEEK_SET));
        say("lseek beyond", "%lld", (long long)lseek(fd, 100, SEEK_SET));
        say("read beyond", "%ld", (long)read(fd, text, sizeof text));
        say("lseek from the end", "%lld", (long long)lseek(fd, -2, SEEK_END));
        say("read of the end", "%ld, %s", (long)read(fd, text, sizeof text - 1), text);
        TRY(lseek(fd, 0, 77));
        TRY(pread(fd, text, 1, -1));
        TRY(fsync(fd));
        close(fd);
        fd = open("file", O_WRONLY | O_CLOEXEC);
        TRY(read(fd, text, 1));
        TRY(pwrite(fd, "x", 1, -1));
        TRY(pwrite(fd, "x", 1, INT64_MAX));
        THEN(pwrite(fd, "x", 1, 9), "file");
        THEN(pwrite(fd, "x", 0, 20), "file");
        close(fd);
        fd = open("file", O_WRONLY | O_APPEND | O_CLOEXEC);
        THEN(pwrite(fd, "abc", 3, 0), "file");
        say("lseek after an append", "%lld", (long long)lseek(fd, 0, SEEK_CUR));
        THEN(write(fd, "abc", 3), "file");
        say("lseek after a write", "%lld", (long long)lseek(fd, 0, SEEK_CUR));
        close(fd);
        THEN(opened(open("file", O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC)), "file");
}

static void try_directory(void)
{
        char text[16];
        int fd;

        make_kinds();
        fd = open("directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        TRY(read(fd, text, sizeof text));
        TRY(write(fd, text, sizeof text));
        TRY(ftruncate(fd, 0));
        TRY(fsync(fd));
        THEN(fchmod(fd, 0711), "directory");
        THEN(fchown(fd, geteuid(), getegid()), "directory");
        TRY(unlinkat(fd, ".", AT_REMOVEDIR));
        TRY(unlinkat(fd, "..", AT_REMOVEDIR));
        TRY(unlinkat(fd, "..", 0));
        TRY(unlinkat(fd, "none", 0));
        TRY(faccessat(fd, "../file", R_OK, 0));
        TRY(faccessat(fd, "", F_OK, AT_EMPTY_PATH));
        THEN(linkat(AT_FDCWD, "file", fd, "linked", 0), "directory/linked");
        TRY(opened(openat(fd, "linked/", O_RDONLY | O_CLOEXEC)));
        TRY(unlinkat(fd, "linked", AT_REMOVEDIR));
        TRY(unlinkat(fd, "linked", 0));
        close(fd);
        TRY(opened(open("directory", O_RDONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(opened(open("directory/", O_RDONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(opened(open("new", O_RDONLY | O_CREAT | O_DIRECTORY | O_CLOEXEC, 0644)));
        TRY(unlink("new"));
}

static void try_path(void)
{
        struct stat st;
        char text[64];
        int fd = -1;

        make_kinds();
        fd = open("file", O_PATH | O_CLOEXEC);
        TRY(read(fd, text, 1));
        TRY(write(fd, text, 1));
        TRY(ftruncate(fd, 0));
        TRY(fchmod(fd, 0600));
        TRY(fchown(fd, geteuid(), getegid()));
        TRY(futimens(fd, NULL));
        TRY(fstat(fd, &st));
        TRY(fsync(fd));
        THEN(fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH), "file");
        THEN(utimensat(fd, "", NULL, AT_EMPTY_PATH), "file");
        TRY(openat(fd, "x", O_RDONLY | O_CLOEXEC));
        close(fd);
        fd = open("link", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        memset(text, 0, sizeof text);
        say("readlink of a descriptor", "%ld, %s", (long)readlinkat(fd, "", text, sizeof text), text);
        THEN(fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH), "link");
        THEN(linkat(fd, "", AT_FDCWD, "linked", AT_EMPTY_PATH), "link");
        close(fd);
        fd = open("pipe", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        verdict("a pipe to write, with no reader", fd);
        fd = open("pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        TRY(write(fd, "text", 4));
        say("read of the pipe", "%ld", (long)read(fd, text, sizeof text));
        TRY(read(fd, text, sizeof text));
        TRY(lseek(fd, 0, SEEK_SET));
        THEN(fchmod(fd, 0600), "pipe");
        close(fd);
}

/* ---- sizes */

static void try_sizes(void)
{
        char text[16] = "";
        int fd;

        make_kinds();
        fd = open("file", O_RDWR | O_CLOEXEC);
        THEN(truncate("file", 10), "file");
        say("what is read", "%ld, %s, %d", (long)pread(fd, text, sizeof text, 0), text, text[9]);
        THEN(truncate("file", 2), "file");
        THEN(ftruncate(fd, 8), "file");
        say("what is read then", "%ld, %.2s, %d", (long)pread(fd, text, sizeof text, 0), text, text[2]);
        THEN(truncate("file", -1), "file");
        THEN(ftruncate(fd, -1), "file");
        THEN(truncate("file", INT64_MAX), "file");
        THEN(ftruncate(fd, INT64_MAX), "file");
        THEN(truncate("file", 1LL << 60), "file");
        THEN(truncate("file", (5LL << 32) + 5), "file");
        THEN(ftruncate(fd, 0), "file");
        THEN(truncate("link", 7), "file");
        TRY(truncate("directory/.", 0));
        close(fd);
        NEED(chmod("file", 0444));
        THEN(truncate("file", 1), "file");
        TRY(opened(open("file", O_WRONLY | O_CLOEXEC)));
        TRY(opened(open("file", O_RDONLY | O_TRUNC | O_CLOEXEC)));
        NEED(unlink("file"));
        fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0400);
        THEN(fd, "file");
        THEN(write(fd, "text", 4), "file");
        THEN(ftruncate(fd, 3), "file");
        close(fd);
}

static void try_each_file(void)
{
        in_directory("reading", NULL, try_reading);
        in_directory("directory", NULL, try_directory);
        in_directory("paths of descriptors", &owner, try_path);
        in_directory("sizes", &owner, try_sizes);
}
