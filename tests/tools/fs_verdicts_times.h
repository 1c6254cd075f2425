/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verdicts: which times a call changes, and who may set them. */
#pragma once

#include <time.h>

#include "fs_verdicts.h"

/* ---- what changes them */

#define MARKS 64

static struct {
        char name[64];
        struct stat st;
} marks[MARKS];

/* Note the times of all that is here, and wait until each clock of a filesystem has gone on. */
static void mark_all(void)
{
        DIR *list = opendir(".");
        struct dirent *entry;
        size_t n = 0;

        while (list != NULL && (entry = readdir(list)) != NULL && n < MARKS) {
                snprintf(marks[n].name, sizeof marks[n].name, "%s", entry->d_name);
                if (lstat(entry->d_name, &marks[n].st) == 0)
                        n++;
        }
        closedir(list);
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static bool is_later(struct timespec time, struct timespec than)
{
        return time.tv_sec > than.tv_sec || (time.tv_sec == than.tv_sec && time.tv_nsec > than.tv_nsec);
}

static void say_times(const char *what, const char *said, const char *name)
{
        struct stat st;

        for (size_t i = 0; i < MARKS; i++)
                if (strcmp(marks[i].name, name) == 0 && lstat(name, &st) == 0) {
                        say(what, "%s, mtime %s, ctime %s", said,
                            is_later(st.st_mtim, marks[i].st.st_mtim) ? "later" : "kept",
                            is_later(st.st_ctim, marks[i].st.st_ctim) ? "later" : "kept");
                        return;
                }
        say(what, "%s, and %s is not there", said, name);
}

static void verdict_times(const char *what, long result, const char *name)
{
        say_times(what, answer(result), name);
}

/* A result, and whether that file's times have changed since mark_all(). */
#define TIMES(call, name) verdict_times(#call, (long)(call), name)
#define ALSO(name) say_times("then " name, "it has", name)

static void try_times_of_files(void)
{
        static const char *const names[] = { "chmod",  "fchmod", "chown", "truncate", "same",   "fsame",
                                             "trunc",  "empty",  "write", "none",     "link",   "moved",
                                             "unlink", "utimes", "read",  "wrong",    "create", "omit" };
        char text[8];
        int fds[COUNT(names)];

        for (size_t i = 0; i < COUNT(names); i++) {
                fds[i] = make(names[i], 0644);
                NEED(write(fds[i], "text", strcmp(names[i], "empty") == 0 ? 0 : 4));
        }
        NEED(link("unlink", "unlink-too"));
        mark_all();
        TIMES(chmod("chmod", 0600), "chmod");
        TIMES(fchmod(fds[1], 0644), "fchmod");
        TIMES(chown("chown", geteuid(), getegid()), "chown");
        TIMES(truncate("truncate", 2), "truncate");
        TIMES(truncate("same", 4), "same");
        TIMES(ftruncate(fds[5], 4), "fsame");
        TIMES(opened(open("trunc", O_WRONLY | O_TRUNC | O_CLOEXEC)), "trunc");
        TIMES(opened(open("empty", O_WRONLY | O_TRUNC | O_CLOEXEC)), "empty");
        TIMES(write(fds[8], "more", 4), "write");
        TIMES(write(fds[9], "", 0), "none");
        TIMES(link("link", "link-too"), "link");
        NEED(rename("moved", "moved-to"));
        TIMES(rename("moved-to", "moved"), "moved");
        TIMES(unlink("unlink-too"), "unlink");
        TIMES(utimensat(AT_FDCWD, "utimes", NULL, 0), "utimes");
        TIMES(pread(fds[14], text, sizeof text, 0), "read");
        TIMES(truncate("wrong", -1), "wrong");
        TIMES(opened(open("create", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), "create");
        TIMES(futimens(fds[17], (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } }), "omit");
        for (size_t i = 0; i < COUNT(names); i++)
                close(fds[i]);
}

static void try_times_of_directories(void)
{
        static const char *const names[] = { "create", "open",   "mkdir", "mkfifo", "symlink", "link",
                                             "unlink", "rmdir",  "from",  "to",     "over",    "within",
                                             "chmod",  "exists", "write", "below",  "moved" };
        char inside[64];

        for (size_t i = 0; i < COUNT(names); i++) {
                NEED(mkdir(names[i], 0755));
                snprintf(inside, sizeof inside, "%s/file", names[i]);
                close(make(inside, 0644));
                snprintf(inside, sizeof inside, "%s/directory", names[i]);
                NEED(mkdir(inside, 0755));
        }
        mark_all();
        TIMES(opened(open("create/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), "create");
        TIMES(opened(open("open/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), "open");
        TIMES(mkdir("mkdir/new", 0755), "mkdir");
        TIMES(mkfifo("mkfifo/new", 0644), "mkfifo");
        TIMES(symlink("text", "symlink/new"), "symlink");
        TIMES(link("symlink/file", "link/new"), "link");
        TIMES(unlink("unlink/file"), "unlink");
        TIMES(rmdir("rmdir/directory"), "rmdir");
        TIMES(rename("from/file", "to/new"), "from");
        ALSO("to");
        TIMES(rename("over/file", "over/file"), "over");
        TIMES(rename("within/file", "within/new"), "within");
        TIMES(chmod("chmod/file", 0600), "chmod");
        TIMES(mkdir("exists/file", 0755), "exists");
        TIMES(truncate("write/file", 100), "write");
        TIMES(mkdir("below/directory/new", 0755), "below");
        TIMES(rename("moved", "to/moved"), "to");
        ALSO(".");
}

/* ---- who may set them */

static const struct timespec old_times[2] = { { .tv_sec = 1000000000, .tv_nsec = 500000000 },
                                              { .tv_sec = 1000000000, .tv_nsec = 500000000 } };

static const struct {
        const char *name;
        struct timespec times[2];
} settings[] = { { "now", { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } } },
                 { "neither", { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } } },
                 { "atime now", { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } } },
                 { "mtime now", { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } } },
                 { "a time", { { .tv_sec = 1200000000 }, { .tv_sec = 1200000001, .tv_nsec = 123456789 } } },
                 { "atime", { { .tv_sec = 1200000000 }, { .tv_nsec = UTIME_OMIT } } },
                 { "mtime, atime now", { { .tv_nsec = UTIME_NOW }, { .tv_sec = 1200000001 } } },
                 { "no such nanosecond", { { .tv_nsec = 1000000000 }, { .tv_nsec = UTIME_OMIT } } } };

static const char *time_of(struct timespec time)
{
        return time.tv_sec == 1000000000 ? "kept" : time.tv_sec / 10 == 120000000 ? "set" : "now";
}

static void set_times(const char *prefix)
{
        char name[32], what[64];
        struct stat st;

        for (size_t i = 0; i < COUNT(settings); i++) {
                snprintf(name, sizeof name, "%s-%zu", prefix, i);
                snprintf(what, sizeof what, "%s, %s", prefix, settings[i].name);
                const char *said = answer(utimensat(AT_FDCWD, name, settings[i].times, 0));
                if (lstat(name, &st) == 0)
                        say(what, "%s, atime %s, mtime %s", said, time_of(st.st_atim), time_of(st.st_mtim));
        }
}

static void set_open_times(void)
{
        set_times("open");
}

static void set_closed_times(void)
{
        set_times("closed");
}

static void make_times(const char *prefix, mode_t mode)
{
        char name[32];

        for (size_t i = 0; i < COUNT(settings); i++) {
                snprintf(name, sizeof name, "%s-%zu", prefix, i);
                remove_at(AT_FDCWD, name);
                close(make(name, 0644));
                NEED(chmod(name, mode));
                give(name, OWNER);
                NEED(utimensat(AT_FDCWD, name, old_times, 0));
        }
}

static void try_setting_times(void)
{
        static const struct who *const whos[] = { &root, &owner, &other };

        for (size_t i = 0; i < COUNT(whos); i++) {
                make_times("open", 0666);
                as_who(whos[i], set_open_times);
        }
        make_times("closed", 0644);
        as_who(&other, set_closed_times);
}

static void try_values(void)
{
        static const int64_t values[] = { 0,          -1,          INT32_MAX,   INT32_MIN, -2147483649,
                                          4294967296, 15032385535, 17179869184, 1LL << 40 };
        struct timespec times[2] = { { .tv_nsec = 999999999 }, { .tv_nsec = 999999999 } };
        struct stat st;
        char what[64];

        make_kinds();
        for (size_t i = 0; i < COUNT(values); i++) {
                times[0].tv_sec = times[1].tv_sec = values[i];
                snprintf(what, sizeof what, "at %lld", (long long)values[i]);
                const char *said = answer(utimensat(AT_FDCWD, "file", times, 0));
                if (stat("file", &st) == 0)
                        say(what, "%s, atime %lld.%ld, mtime %lld.%ld", said, (long long)st.st_atim.tv_sec,
                            st.st_atim.tv_nsec, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        }
        TRY(utimensat(AT_FDCWD, "dangling", old_times, 0));
        TRY(utimensat(AT_FDCWD, "file", old_times, 0x8000));
        for (size_t k = 0; k < COUNT(kinds); k++) {
                snprintf(what, sizeof what, "of %s itself", kinds[k]);
                const char *said = answer(utimensat(AT_FDCWD, kinds[k], old_times, AT_SYMLINK_NOFOLLOW));
                if (lstat(kinds[k], &st) == 0)
                        say(what, "%s, mtime %s", said, time_of(st.st_mtim));
        }
}

static void try_each_time(void)
{
        in_directory("times of files", &owner, try_times_of_files);
        in_directory("times of directories", &owner, try_times_of_directories);
        in_directory("setting times", NULL, try_setting_times);
        in_directory("values of times", &owner, try_values);
}
