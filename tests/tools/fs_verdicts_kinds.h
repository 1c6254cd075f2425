/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verdicts: calls on each kind of file, and on paths that lead nowhere. */
#pragma once

#include <limits.h>

#include "fs_verdicts.h"

/* ---- a path each */

static long call_create(const char *path)
{
        return opened(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
}

static long call_mkdir(const char *path)
{
        return mkdir(path, 0755);
}

static long call_symlink(const char *path)
{
        return symlink("text", path);
}

static long call_link_to(const char *path)
{
        return link("file", path);
}

static long call_link_from(const char *path)
{
        return link(path, "new");
}

static long call_rename_to(const char *path)
{
        return rename("file", path);
}

static long call_rename_from(const char *path)
{
        return rename(path, "new");
}

static long call_unlink(const char *path)
{
        return unlink(path);
}

static long call_rmdir(const char *path)
{
        return rmdir(path);
}

static long call_chmod(const char *path)
{
        return chmod(path, 0751);
}

/* Of our own group, so that everybody may. */
static long call_chown(const char *path)
{
        return chown(path, (uid_t)-1, getegid());
}

static long call_lchown(const char *path)
{
        return lchown(path, geteuid(), (gid_t)-1);
}

static long call_truncate(const char *path)
{
        return truncate(path, 2);
}

static long call_stat(const char *path)
{
        struct stat st;

        return stat(path, &st);
}

static long call_readlink(const char *path)
{
        char text[PATH_MAX];

        return readlink(path, text, sizeof text);
}

static const struct {
        const char *name;
        long (*call)(const char *path);
        bool of_kinds; /* whether what is there counts; other rows are for paths only */
        bool of_paths;
} path_calls[] = {
        { "open, O_EXCL", call_create, false, true }, { "mkdir", call_mkdir, false, true },
        { "symlink", call_symlink, false, true },     { "link to", call_link_to, false, true },
        { "rename to", call_rename_to, false, true }, { "link", call_link_from, true, false },
        { "rename", call_rename_from, false, true },  { "unlink", call_unlink, true, true },
        { "rmdir", call_rmdir, true, true },          { "chmod", call_chmod, true, true },
        { "chown", call_chown, true, false },         { "lchown", call_lchown, true, false },
        { "truncate", call_truncate, true, true },    { "stat", call_stat, true, true },
        { "readlink", call_readlink, true, false },
};

/* What a call has made goes, and what it has taken away is made again. */
static void restore(const char *name)
{
        struct stat st;

        remove_at(AT_FDCWD, "new");
        if (lstat("file", &st) < 0)
                make_kind("file", "file");
        if (lstat(name, &st) < 0)
                make_kind(name, name);
}

static void try_kinds(void)
{
        char what[96];

        make_kinds();
        for (size_t i = 0; i < COUNT(path_calls); i++)
                for (size_t k = 0; path_calls[i].of_kinds && k < COUNT(kinds); k++) {
                        snprintf(what, sizeof what, "%s of %s", path_calls[i].name, kinds[k]);
                        verdict_then(what, path_calls[i].call(kinds[k]), kinds[k]);
                        restore(kinds[k]);
                }
}

static void try_paths(void)
{
        static const char *const paths[] = { "file/new", "file/", "new/", "dangling/", "directory/." };
        char what[96];

        make_kinds();
        for (size_t i = 0; i < COUNT(path_calls); i++)
                for (size_t p = 0; path_calls[i].of_paths && p < COUNT(paths); p++) {
                        snprintf(what, sizeof what, "%s \"%s\"", path_calls[i].name, paths[p]);
                        verdict(what, path_calls[i].call(paths[p]));
                        restore("directory");
                }
}

/* ---- open */

#define WAY(way) .name = #way, .flags = (way)

static void try_opens(void)
{
        static const struct {
                const char *name;
                int flags;
        } ways[] = { { WAY(O_WRONLY) },         { WAY(O_RDWR | O_CREAT) },   { WAY(O_RDWR | O_CREAT | O_EXCL) },
                     { WAY(O_RDWR | O_TRUNC) }, { WAY(O_DIRECTORY) },        { WAY(O_RDONLY | O_NOFOLLOW) },
                     { WAY(O_PATH) },           { WAY(O_PATH | O_NOFOLLOW) } };
        char what[96];

        make_kinds();
        for (size_t i = 0; i < COUNT(ways); i++)
                for (size_t k = 0; k < COUNT(kinds); k++) {
                        snprintf(what, sizeof what, "%s of %s", ways[i].name, kinds[k]);
                        verdict_then(what, opened(open(kinds[k], ways[i].flags | O_NONBLOCK | O_CLOEXEC, 0640)),
                                     kinds[k]);
                        remove_at(AT_FDCWD, "nothing"); /* which a dangling link had made */
                }
}

/* ---- rename: each over each */

static void try_renames(void)
{
        static const char *const renamed[] = { "nothing", "file", "directory", "full", "dangling" };
        char what[96];

        for (size_t from = 0; from < COUNT(renamed); from++)
                for (size_t to = 0; to < COUNT(renamed); to++) {
                        make_kind(renamed[from], "from");
                        make_kind(renamed[to], "to");
                        snprintf(what, sizeof what, "%s over %s", renamed[from], renamed[to]);
                        verdict_then(what, rename("from", "to"), "to");
                        remove_at(AT_FDCWD, "from");
                        remove_at(AT_FDCWD, "to");
                }
}

static void try_each_kind(void)
{
        in_directory("kinds", &owner, try_kinds);
        in_directory("paths", NULL, try_paths);
        in_directory("open", NULL, try_opens);
        in_directory("rename", &owner, try_renames);
}
