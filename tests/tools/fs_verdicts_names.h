/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verdicts: names: what is made by them, links, rename, their lengths, and what has lost its name. */
#pragma once

#include <linux/fs.h>
#include <sys/syscall.h>

#include "fs_verdicts.h"

/* ---- modes of what is made */

static void try_making(void)
{
        umask(0);
        THEN(opened(open("file-777", O_WRONLY | O_CREAT | O_CLOEXEC, 07777)), "file-777");
        THEN(opened(open("file-0", O_RDWR | O_CREAT | O_CLOEXEC, 0)), "file-0");
        THEN(mkdir("directory-777", 07777), "directory-777");
        THEN(mkdir("directory-0", 0), "directory-0");
        THEN(mkfifo("pipe-777", 07777), "pipe-777");
        THEN(mknod("node-file", S_IFREG | 06751, 0), "node-file");
        THEN(mknod("node-0", 0640, 0), "node-0");
        THEN(mknod("node-socket", S_IFSOCK | 0666, 0), "node-socket");
        TRY(mknod("node-directory", S_IFDIR | 0755, 0));
        TRY(mknod("node-link", S_IFLNK | 0777, 0));
        TRY(mknod("node-what", 0130000 | 0644, 0));
        TRY(mknod("pipe-777", S_IFIFO | 0644, 0));
        umask(0127);
        THEN(opened(open("file-masked", O_WRONLY | O_CREAT | O_CLOEXEC, 0777)), "file-masked");
        THEN(mkdir("directory-masked", 0777), "directory-masked");
        THEN(mknod("node-masked", S_IFREG | 0777, 0), "node-masked");
        THEN(mkfifo("pipe-masked", 0777), "pipe-masked");
        THEN(symlink("text", "link-masked"), "link-masked");
        THEN(opened(open("file-masked", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), "file-masked");
}

/* ---- links */

static void try_long_link(int length)
{
        char text[5000] = "", read_back[5000] = "", what[64];

        memset(text, 'x', (size_t)length);
        snprintf(what, sizeof what, "of %d bytes", length);
        const char *said = answer(symlink(text, "link-long"));
        say(what, "%s, %ld are read, %s", said, (long)readlink("link-long", read_back, sizeof read_back),
            strcmp(text, read_back) == 0 ? "the same" : "others");
        unlink("link-long");
}

static void try_links(void)
{
        static const int lengths[] = { 1, 60, 1023, 1024, 2000, 4094, 4095, 4096 };
        char text[64];

        make_kinds();
        THEN(link("file", "second"), "file");
        THEN(chmod("second", 0600), "file");
        THEN(truncate("second", 3), "file");
        TRY(link("second", "dangling"));
        TRY(link("second", "directory"));
        TRY(symlink("text", "dangling"));
        TRY(symlink("", "link-empty"));
        THEN(unlink("file"), "second");
        THEN(symlink("text/of/it", "link-new"), "link-new");
        memset(text, 0, sizeof text);
        say("readlink of it", "%ld, %s", (long)readlink("link-new", text, sizeof text), text);
        memset(text, 0, sizeof text);
        say("readlink, cut off", "%ld, %s", (long)readlink("link-new", text, 4), text);
        TRY(readlink("link-new", text, 0));
        for (size_t i = 0; i < COUNT(lengths); i++)
                try_long_link(lengths[i]);
}

/* ---- rename */

static void try_rename_alone(void)
{
        make_kinds();
        NEED(link("file", "second"));
        NEED(mkdir("directory/below", 0755));
        NEED(mkdir("directory/below/more", 0755));
        THEN(rename("file", "file"), "file");
        THEN(rename("file", "second"), "file");
        THEN(rename("directory", "directory"), "directory");
        TRY(rename("directory", "directory/below/into"));
        TRY(rename("directory", "directory/below"));
        TRY(rename("directory/below", "directory"));
        TRY(rename("directory/below/more", "directory"));
        TRY(rename("file", "to-dir/moved"));
        THEN(rename("directory/moved", "to-dir"), "to-dir");
        THEN(rename("directory/below", "moved/"), "moved");
        THEN(rename("moved/", "directory/below"), "directory");
        TRY(rename("second/", "directory/x"));
        TRY(rename("second", "directory/x/"));
        TRY(rename("link/", "directory/x"));
        TRY(rename("directory", "second/"));
        TRY(rename(".", "directory/x"));
        TRY(rename("..", "directory/x"));
        TRY(rename("second", "/proc/self/x"));
        TRY(link("second", "/proc/self/x"));
        TRY(link("/proc/self/status", "x"));
        TRY(renameat2(AT_FDCWD, "second", AT_FDCWD, "none", RENAME_EXCHANGE));
        TRY(renameat2(AT_FDCWD, "second", AT_FDCWD, "pipe", RENAME_NOREPLACE));
        TRY(renameat2(AT_FDCWD, "second", AT_FDCWD, "second", RENAME_NOREPLACE));
        TRY(renameat2(AT_FDCWD, "second", AT_FDCWD, "x", RENAME_NOREPLACE | RENAME_EXCHANGE));
        TRY(renameat2(AT_FDCWD, "second", AT_FDCWD, "x", 1U << 20));
        TRY(renameat2(AT_FDCWD, "directory", AT_FDCWD, "directory/below", RENAME_EXCHANGE));
        THEN(renameat2(AT_FDCWD, "second", AT_FDCWD, "full", RENAME_EXCHANGE), "full");
        THEN(renameat2(AT_FDCWD, "second", AT_FDCWD, "dangling", RENAME_EXCHANGE), "second");
}

/* ---- lengths */

/* Of the file called file. */
static void long_path(char *path, size_t length)
{
        memset(path, '/', length);
        for (size_t i = 0; i < length - 200; i += 2)
                path[i] = '.';
        memcpy(path + length - 4, "file", 5);
}

static void try_lengths(void)
{
        char longest[256], too_long[257], far_too_long[1100];
        char path[4096], path_too_long[4097];

        long_path(path, sizeof path - 1);
        long_path(path_too_long, sizeof path_too_long - 1);
        memset(longest, 'n', sizeof longest);
        memset(too_long, 'n', sizeof too_long);
        memset(far_too_long, 'n', sizeof far_too_long);
        longest[255] = too_long[256] = far_too_long[sizeof far_too_long - 1] = '\0';
        make_kinds();
        THEN(opened(open(longest, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), longest);
        THEN(rename(longest, "short"), "short");
        THEN(rename("short", longest), longest);
        THEN(unlink(longest), longest);
        THEN(mkdir(longest, 0755), longest);
        THEN(rmdir(longest), longest);
        THEN(symlink("text", longest), longest);
        NEED(unlink(longest));
        THEN(link("file", longest), longest);
        TRY(opened(open(too_long, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(access(too_long, F_OK));
        TRY(mkdir(too_long, 0755));
        TRY(mkfifo(too_long, 0644));
        TRY(symlink("text", too_long));
        TRY(link("file", too_long));
        TRY(rename("file", too_long));
        TRY(rename(too_long, "file"));
        TRY(unlink(too_long));
        TRY(rmdir(too_long));
        TRY(opened(open(far_too_long, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(access(far_too_long, F_OK));
        TRY(access(path, F_OK));
        TRY(access(path_too_long, F_OK));
        TRY(truncate(path_too_long, 0));
        TRY(symlink(path_too_long, "new"));
        THEN(mkdir("\001 \377\n", 0755), "\001 \377\n");
}

static void try_many_links(void)
{
        char name[32], text[32] = "file";

        make_kinds();
        for (int i = 1; i <= 41; i++) {
                snprintf(name, sizeof name, "chain-%d", i);
                NEED(symlink(text, name));
                memcpy(text, name, sizeof text);
        }
        TRY(access("chain-40", F_OK));
        TRY(access("chain-41", F_OK));
        TRY(opened(open("chain-41", O_RDONLY | O_CLOEXEC)));
        TRY(opened(open("chain-41", O_RDONLY | O_CREAT | O_CLOEXEC, 0644)));
}

/* ---- what has lost its name */

static void try_unlinked(void)
{
        char text[8] = "";
        struct stat st;
        int top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd = make("gone", 0644);
        int dir;

        NEED(write(fd, "text", 4));
        TRY(unlink("gone"));
        TRY(access("gone", F_OK));
        TRY(fchmod(fd, 0600));
        TRY(fchown(fd, (uid_t)-1, getegid()));
        TRY(ftruncate(fd, 2));
        TRY(pwrite(fd, "x", 1, 3));
        if (TRY(fstat(fd, &st)) == 0)
                say("what it is", "%o, size %lld", st.st_mode, (long long)st.st_size);
        say("what is read", "%ld, %.2s", (long)pread(fd, text, sizeof text, 0), text);
        THEN(opened(open("gone", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640)), "gone");
        NEED(mkdir("directory", 0755));
        dir = open("directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        NEED(fchdir(dir));
        TRY(rmdir("../directory"));
        TRY(opened(open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(mkdir("new", 0755));
        TRY(mkfifo("new", 0644));
        TRY(symlink("text", "new"));
        TRY(linkat(top, "gone", AT_FDCWD, "new", 0));
        TRY(renameat(top, "gone", AT_FDCWD, "new"));
        TRY(access("new", F_OK));
        TRY(opened(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
        TRY(chdir(".."));
        NEED(fchdir(top));
        close(dir);
        close(fd);
        close(top);
}

static void try_each_name(void)
{
        in_directory("making", &owner, try_making);
        in_directory("links", NULL, try_links);
        in_directory("rename alone", &owner, try_rename_alone);
        in_directory("lengths", &owner, try_lengths);
        in_directory("many links", NULL, try_many_links);
        in_directory("unlinked", &owner, try_unlinked);
}
