/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verdicts: modes, owners, and who may do what. */
#pragma once

#include <linux/fs.h>

#include "fs_verdicts.h"

/* ---- each mode, for its owner, its group and others */

static int shift; /* of the class of users whose modes are tried */

static const char *open_answer(const char *path, int flags)
{
        return answer(opened(open(path, flags | O_CLOEXEC)));
}

/* What access(2) grants. */
static const char *granted(const char *path)
{
        static char text[4];

        text[0] = access(path, R_OK) == 0 ? 'r' : '-';
        text[1] = access(path, W_OK) == 0 ? 'w' : '-';
        text[2] = access(path, X_OK) == 0 ? 'x' : '-';
        return text;
}

/* Eight files and directories, for as many modes. */
static void make_modes(void)
{
        char name[32], below[64];

        for (unsigned mode = 0; mode < 8; mode++) {
                snprintf(name, sizeof name, "file-%u", mode);
                make_kind("file", name);
                give(name, GROUP);
                snprintf(name, sizeof name, "directory-%u", mode);
                snprintf(below, sizeof below, "%s/old", name);
                NEED(mkdir(name, 0755));
                NEED(mkdir(below, 0755));
                give(name, GROUP);
        }
}

/* Each gets its mode for that class of users, and the opposite for the others. */
static void set_modes(void)
{
        char name[32];

        for (unsigned mode = 0; mode < 8; mode++) {
                mode_t opposite = 7 - mode;
                mode_t all = opposite << 6 | opposite << 3 | opposite;

                all = (all & ~(mode_t)(7 << shift)) | mode << shift;
                snprintf(name, sizeof name, "file-%u", mode);
                NEED(chmod(name, all));
                snprintf(name, sizeof name, "directory-%u", mode);
                NEED(chmod(name, all));
        }
}

static void try_modes_of_files(void)
{
        char what[64], path[64];

        for (unsigned mode = 0; mode < 8; mode++) {
                snprintf(path, sizeof path, "file-%u", mode);
                snprintf(what, sizeof what, "file of mode %u", mode);
                const char *read = open_answer(path, O_RDONLY);
                const char *write = open_answer(path, O_WRONLY);
                const char *both = open_answer(path, O_RDWR);
                const char *truncated = open_answer(path, O_RDONLY | O_TRUNC);
                say(what, "read %s, write %s, both %s, truncate %s, access %s", read, write, both, truncated,
                    granted(path));
        }
}

static void try_modes_of_directories(void)
{
        char what[64], path[64], old[80], new[80];

        for (unsigned mode = 0; mode < 8; mode++) {
                snprintf(path, sizeof path, "directory-%u", mode);
                snprintf(old, sizeof old, "%s/old", path);
                snprintf(new, sizeof new, "%s/new", path);
                snprintf(what, sizeof what, "directory of mode %u", mode);
                const char *list = open_answer(path, O_RDONLY | O_DIRECTORY);
                const char *search = answer(access(old, F_OK));
                const char *made = answer(mkdir(new, 0755));
                const char *removed = answer(rmdir(new));
                say(what, "list %s, search %s, make %s, remove %s, access %s", list, search, made, removed,
                    granted(path));
        }
}

static void try_modes_of_class(void)
{
        try_modes_of_files();
        try_modes_of_directories();
}

static void try_modes(void)
{
        static const struct {
                const struct who *who;
                int shift;
        } classes[] = { { &owner, 6 }, { &member, 3 }, { &other, 0 }, { &root, 6 } };

        make_modes();
        for (size_t i = 0; i < COUNT(classes); i++) {
                shift = classes[i].shift;
                set_modes();
                as_who(classes[i].who, try_modes_of_class);
        }
}

/* ---- access by the ids of the process, and by those that it acts with */

static void try_real_ids(void)
{
        NEED(chmod("file", 0600));
        if (setresgid(OWNER, 0, 0) < 0 || setresuid(OWNER, 0, 0) < 0) {
                say("access by other ids", "not tried");
                return;
        }
        TRY(access("file", R_OK));
        TRY(faccessat(AT_FDCWD, "file", R_OK, AT_EACCESS));
        TRY(access("file", F_OK));
        TRY(access("directory", W_OK));
        TRY(faccessat(AT_FDCWD, "directory", W_OK, AT_EACCESS));
        TRY(access("file", X_OK));
        TRY(faccessat(AT_FDCWD, "file", X_OK, AT_EACCESS));
}

static void try_access(void)
{
        make_kinds();
        TRY(access("file", 8));
        TRY(access("file", R_OK | X_OK));
        TRY(faccessat(AT_FDCWD, "dangling", F_OK, AT_SYMLINK_NOFOLLOW));
        TRY(faccessat(AT_FDCWD, "loop", R_OK | W_OK | X_OK, AT_SYMLINK_NOFOLLOW));
        TRY(faccessat(AT_FDCWD, "file", F_OK, 0x8000));
        NEED(chmod("file", 0010));
        TRY(access("file", X_OK));
        as_who(&root, try_real_ids);
}

/* ---- chmod */

static void try_chmod(void)
{
        static const mode_t modes[] = { 0, 0111, 01644, 02644, 02755, 04755, 07777 };
        static const char *const names[] = { "file", "directory" };
        char what[64];

        make_kinds();
        for (size_t n = 0; n < COUNT(names); n++)
                for (size_t i = 0; i < COUNT(modes); i++) {
                        snprintf(what, sizeof what, "%s to %04o", names[n], modes[i]);
                        verdict_then(what, chmod(names[n], modes[i]), names[n]);
                }
        TRY(fchmodat(AT_FDCWD, "link", 0600, AT_SYMLINK_NOFOLLOW));
        TRY(fchmodat(AT_FDCWD, "file", 0600, 0x8000));
}

static void try_chmod_of_others(void)
{
        THEN(chmod("roots", 0600), "roots");
        THEN(chmod("roots", 0644), "roots");
        THEN(chmod("roots-to-all", 0600), "roots-to-all");
        THEN(chmod("of-group", 02755), "of-group");
        THEN(chmod("of-group", 06777), "of-group");
        THEN(chmod("of-group", 02666), "of-group");
        THEN(chmod("directory-of-group", 02775), "directory-of-group");
        THEN(chmod("directory-of-group", 01775), "directory-of-group");
}

static void try_chmod_of_users(void)
{
        static const struct who *const whos[] = { &owner, &owner_in_group, &other };

        for (size_t i = 0; i < COUNT(whos); i++) {
                make_kind("file", "roots");
                make_kind("file", "roots-to-all");
                NEED(chmod("roots-to-all", 0666));
                make_kind("file", "of-group");
                give("of-group", GROUP);
                make_kind("directory", "directory-of-group");
                give("directory-of-group", GROUP);
                as_who(whos[i], try_chmod_of_others);
                remove_at(AT_FDCWD, "roots");
                remove_at(AT_FDCWD, "roots-to-all");
                remove_at(AT_FDCWD, "of-group");
                remove_at(AT_FDCWD, "directory-of-group");
        }
}

/* ---- chown */

static void try_chown_by_user(void)
{
        const uid_t me = geteuid();
        const gid_t my = getegid();
        int fd = open("mine", O_RDONLY | O_CLOEXEC);

        THEN(chown("mine", (uid_t)-1, (gid_t)-1), "mine");
        THEN(chown("mine", me, (gid_t)-1), "mine");
        THEN(chown("mine", 1001, (gid_t)-1), "mine");
        THEN(chown("mine", (uid_t)-1, GROUP), "mine");
        THEN(chown("mine", (uid_t)-1, 3000), "mine");
        THEN(fchown(fd, (uid_t)-1, my), "mine");
        THEN(fchown(fd, 1001, my), "mine");
        THEN(chown("directory", (uid_t)-1, GROUP), "directory");
        THEN(lchown("link", (uid_t)-1, GROUP), "link");
        THEN(lchown("link", 1001, (gid_t)-1), "link");
        THEN(lchown("dangling", me, GROUP), "dangling");
        THEN(chown("dangling", me, my), "dangling");
        THEN(chown("pipe", me, GROUP), "pipe");
        THEN(chown("roots", (uid_t)-1, (gid_t)-1), "roots");
        THEN(chown("roots", me, (gid_t)-1), "roots");
        THEN(chown("roots", (uid_t)-1, my), "roots");
        close(fd);
}

static void try_chown(void)
{
        static const struct who *const whos[] = { &owner, &owner_in_group, &root };

        for (size_t i = 0; i < COUNT(whos); i++) {
                make_kinds();
                make_kind("file", "mine");
                make_kind("file", "roots");
                NEED(chmod("roots", 0666));
                give("mine", OWNER);
                for (size_t k = 0; k < COUNT(kinds); k++)
                        give(kinds[k], OWNER);
                as_who(whos[i], try_chown_by_user);
                for (size_t k = 0; k < COUNT(kinds); k++)
                        remove_at(AT_FDCWD, kinds[k]);
                remove_at(AT_FDCWD, "mine");
                remove_at(AT_FDCWD, "roots");
        }
}

/* ---- what takes the set-id bits away */

static long change_nothing(const char *path)
{
        return chown(path, (uid_t)-1, (gid_t)-1);
}

static long change_owner(const char *path)
{
        struct stat st;

        return stat(path, &st) < 0 ? -1 : chown(path, st.st_uid, (gid_t)-1);
}

static long change_group(const char *path)
{
        struct stat st;

        return stat(path, &st) < 0 ? -1 : chown(path, (uid_t)-1, st.st_gid);
}

static long change_content(const char *path)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        long result = write(fd, "x", 1);

        return fd < 0 || close(fd) < 0 ? -1 : result;
}

static long change_size(const char *path)
{
        return truncate(path, 1);
}

static long change_by_opening(const char *path)
{
        return opened(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
}

static long change_space(const char *path)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        long result = fallocate(fd, 0, 0, 100);

        return fd < 0 || close(fd) < 0 ? -1 : result;
}

static long change_times(const char *path)
{
        return utimensat(AT_FDCWD, path, NULL, 0);
}

static const struct {
        const char *name;
        long (*call)(const char *path);
} changes[] = { { "chown of nobody", change_nothing },
                { "chown of the owner", change_owner },
                { "chown of the group", change_group },
                { "write", change_content },
                { "truncate", change_size },
                { "open, O_TRUNC", change_by_opening },
                { "fallocate", change_space },
                { "utimensat", change_times } };

static void try_changes(void)
{
        for (size_t i = 0; i < COUNT(changes); i++)
                verdict_then(changes[i].name, changes[i].call(changes[i].name), changes[i].name);
        THEN(chown("directory", (uid_t)-1, (gid_t)-1), "directory");
}

static void try_setids(void)
{
        static const struct {
                const struct who *who;
                mode_t mode;
        } cases[] = { { &root, 06777 }, { &owner, 06777 }, { &owner_in_group, 06777 }, { &other, 06777 },
                      { &root, 02666 }, { &owner, 02666 }, { &owner_in_group, 02666 }, { &other, 02666 } };

        for (size_t c = 0; c < COUNT(cases); c++) {
                snprintf(family, sizeof family, "set-id of %04o", cases[c].mode);
                for (size_t i = 0; i < COUNT(changes); i++) {
                        make_kind("file", changes[i].name);
                        give(changes[i].name, GROUP);
                        NEED(chmod(changes[i].name, cases[c].mode));
                }
                NEED(mkdir("directory", 0755));
                give("directory", GROUP);
                NEED(chmod("directory", 06755));
                as_who(cases[c].who, try_changes);
                for (size_t i = 0; i < COUNT(changes); i++)
                        remove_at(AT_FDCWD, changes[i].name);
                remove_at(AT_FDCWD, "directory");
        }
}

/* ---- directories that nobody may change */

static void try_denied_in(const char *directory)
{
        char old[64], below[64], new[64];
        size_t length = strlen(family);

        snprintf(family + length, sizeof family - length, ", %s", directory);
        snprintf(old, sizeof old, "%s/file", directory);
        snprintf(below, sizeof below, "%s/directory", directory);
        snprintf(new, sizeof new, "%s/new", directory);
        TRY(opened(open(new, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(opened(open(old, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(mkdir(new, 0755));
        TRY(symlink("text", new));
        TRY(link("file", new));
        TRY(link(old, "new"));
        TRY(unlink("new"));
        TRY(unlink(old));
        TRY(rmdir(below));
        TRY(rename("file", new));
        TRY(rename("file", old));
        TRY(rename(old, "new"));
        TRY(rename(below, "new"));
        TRY(chmod(old, 0600));
        TRY(truncate(old, 0));
        TRY(chdir(directory));
        family[length] = '\0';
}

static void try_denied(void)
{
        static const struct {
                const char *name;
                mode_t mode;
        } denied[] = { { "may be read", 0555 }, { "may not be searched", 0666 } };
        char path[64];
        int top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        make_kinds();
        for (size_t i = 0; i < COUNT(denied); i++) {
                NEED(mkdir(denied[i].name, 0755));
                snprintf(path, sizeof path, "%s/file", denied[i].name);
                make_kind("file", path);
                snprintf(path, sizeof path, "%s/directory", denied[i].name);
                make_kind("directory", path);
                NEED(chmod(denied[i].name, denied[i].mode));
                try_denied_in(denied[i].name);
                NEED(fchdir(top));
                remove_at(top, "new");
        }
        close(top);
}

/* ---- sticky directories */

static void try_in_sticky(void)
{
        make_kind("file", "sticky/mine");
        TRY(unlink("sticky/file"));
        TRY(rmdir("sticky/directory"));
        TRY(rename("sticky/file", "sticky/new"));
        TRY(rename("sticky/mine", "sticky/file"));
        TRY(rename("sticky/directory", "sticky/new"));
        TRY(renameat2(AT_FDCWD, "sticky/mine", AT_FDCWD, "sticky/full", RENAME_EXCHANGE));
        TRY(rename("sticky/pipe", "open/pipe"));
        TRY(rename("sticky/mine", "open/mine"));
        TRY(rename("open/mine", "sticky/to-all"));
        TRY(rename("open/file", "sticky/moved"));
        TRY(unlink("sticky/moved"));
        TRY(link("sticky/closed", "sticky/linked"));
        TRY(link("sticky/to-all", "sticky/linked-too"));
        TRY(opened(open("sticky/to-all", O_WRONLY | O_CLOEXEC)));
        TRY(opened(open("sticky/to-all", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
        TRY(opened(open("sticky/pipe", O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644)));
        TRY(opened(open("sticky/link", O_RDONLY | O_CLOEXEC)));
        TRY(access("sticky/link", F_OK));
        TRY(unlink("sticky/link"));
        TRY(chmod("sticky", 0777));
}

/* All but the directories belongs to the owner. */
static void make_sticky(void)
{
        static const struct {
                const char *kind;
                const char *name;
                mode_t mode;
        } files[] = { { "file", "open/file", 0644 },     { "file", "sticky/file", 0666 },
                      { "file", "sticky/to-all", 0666 }, { "file", "sticky/closed", 0600 },
                      { "full", "sticky/full", 0777 },   { "directory", "sticky/directory", 0777 },
                      { "pipe", "sticky/pipe", 0666 } };

        NEED(mkdir("open", 0777));
        NEED(chmod("open", 0777));
        NEED(mkdir("sticky", 0777));
        for (size_t i = 0; i < COUNT(files); i++) {
                make_kind(files[i].kind, files[i].name);
                NEED(chmod(files[i].name, files[i].mode));
                give(files[i].name, GROUP);
        }
        make_kind("link", "sticky/link");
        give("sticky/link", GROUP);
        NEED(chmod("sticky", 01777));
}

static void try_sticky(void)
{
        static const struct {
                const struct who *of;
                const struct who *by;
        } cases[] = { { &root, &other }, { &root, &owner }, { &other, &other } };

        for (size_t i = 0; i < COUNT(cases); i++) {
                snprintf(family, sizeof family, "sticky directory of %s", cases[i].of->name);
                make_sticky();
                if (is_root())
                        NEED(chown("sticky", cases[i].of->uid, cases[i].of->gid));
                as_who(cases[i].by, try_in_sticky);
                remove_at(AT_FDCWD, "sticky");
                remove_at(AT_FDCWD, "open");
        }
}

/* ---- directories that give their group */

static void try_inside_team(void)
{
        umask(0);
        THEN(opened(open("team/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0666)), "team/file");
        THEN(opened(open("team/setgid", O_WRONLY | O_CREAT | O_CLOEXEC, 02755)), "team/setgid");
        THEN(opened(open("team/no-x", O_WRONLY | O_CREAT | O_CLOEXEC, 02644)), "team/no-x");
        THEN(mkdir("team/directory", 0750), "team/directory");
        THEN(mkdir("team/directory/below", 02700), "team/directory/below");
        THEN(mkfifo("team/pipe", 0644), "team/pipe");
        THEN(mknod("team/node", S_IFREG | 02755, 0), "team/node");
        THEN(symlink("text", "team/link"), "team/link");
        THEN(rename("mine", "team/mine"), "team/mine");
        THEN(rename("my-directory", "team/my-directory"), "team/my-directory");
        THEN(chmod("team/directory", 0755), "team/directory");
        THEN(chmod("team/file", 02755), "team/file");
        THEN(link("team/file", "linked"), "linked");
}

static void try_team(void)
{
        static const struct who *const whos[] = { &owner, &owner_in_group };

        for (size_t i = 0; i < COUNT(whos); i++) {
                NEED(mkdir("place", 0777));
                NEED(chmod("place", 0777));
                NEED(chdir("place"));
                NEED(mkdir("team", 0777));
                if (is_root())
                        NEED(chown("team", 0, GROUP));
                NEED(chmod("team", 02777));
                make_kind("file", "mine");
                make_kind("directory", "my-directory");
                give("mine", OWNER);
                give("my-directory", OWNER);
                as_who(whos[i], try_inside_team);
                NEED(chdir(".."));
                remove_at(AT_FDCWD, "place");
        }
}

static void try_each_right(void)
{
        in_directory("modes", NULL, try_modes);
        in_directory("access", NULL, try_access);
        in_directory("chmod", &root, try_chmod);
        in_directory("chmod", &owner, try_chmod);
        in_directory("chmod of users", NULL, try_chmod_of_users);
        in_directory("chown", NULL, try_chown);
        in_directory("set-id", NULL, try_setids);
        in_directory("denied", &owner, try_denied);
        in_directory("sticky", NULL, try_sticky);
        in_directory("team", NULL, try_team);
}
