/* SPDX-License-Identifier: Apache-2.0 */
#include "host/state_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define LINKS_MAX 40 /* as many as the kernel follows */

#define ADVICE "chown root and chmod go-w that directory: who may write to it may change what flexgraft believes"

/* The path from / on; what is looked at is its beginning, of length bytes. */
struct walk {
        char path[PATH_MAX];
        size_t length;
        unsigned links;
        bool shared; /* the directory above: anyone makes names in it, and root's are root's, as in /tmp */
};

static bool step(struct walk *walk)
{
        const char *rest = walk->path + walk->length;

        rest += strspn(rest, "/");
        walk->length = (size_t)(rest - walk->path) + strcspn(rest, "/");
        return *rest != '\0';
}

/* A link: what it leads to takes its place, and the walk begins anew. Returns 0 or negative errno. */
static int follow(struct walk *walk, const char *link)
{
        static char target[PATH_MAX];
        static char rest[PATH_MAX];
        size_t keep = walk->length;
        ssize_t size = readlink(link, target, sizeof target - 1);

        if (size < 0)
                return -errno;
        if (++walk->links > LINKS_MAX)
                return -ELOOP;
        target[size] = '\0';
        while (walk->path[keep - 1] != '/')
                keep--;
        if (target[0] == '/')
                keep = 0;
        (void)text_copy(rest, sizeof rest, walk->path + walk->length);
        size = snprintf(walk->path + keep, sizeof walk->path - keep, "%s%s", target, rest);
        walk->length = 0;
        return size < (ssize_t)(sizeof walk->path - keep) ? 0 : -ENAMETOOLONG;
}

/* Returns whether only root may put another thing in the place of this one, or, of a directory, of what is in it. */
static bool check(struct walk *walk, const char *path, const struct stat *st, struct host_finding *ret_finding)
{
        bool last = walk->path[walk->length + strspn(walk->path + walk->length, "/")] == '\0';
        mode_t others = S_IWOTH | (st->st_gid != 0 ? S_IWGRP : 0U); /* root's group is root's, as for install-csi */
        bool open = !S_ISLNK(st->st_mode) && (st->st_mode & others) != 0;

        walk->shared = open && (st->st_mode & S_ISVTX) != 0;
        if (st->st_uid != 0)
                host_found(ret_finding, HOST_MISSING, "%.256s belongs to user %u, not to root", path,
                           (unsigned)st->st_uid);
        else if (open && (last || !walk->shared))
                host_found(ret_finding, HOST_MISSING, "others than root may write to %.256s (its mode is %04o)", path,
                           (unsigned)(st->st_mode & 07777));
        return ret_finding->state != HOST_MISSING;
}

static void tell_absent(const struct walk *walk, const char *path, struct host_finding *ret_finding)
{
        if (walk->shared)
                host_found(ret_finding, HOST_MISSING, "anyone may make %.256s, which is not there yet", path);
        else
                host_found(ret_finding, HOST_OK, "only root may make it");
}

const char *state_path_look(const char *state_dir, struct host_finding *ret_finding)
{
        static struct walk walk;
        static char path[PATH_MAX];
        struct stat st;
        int r = 0;

        walk = (struct walk){};
        (void)text_copy(walk.path, sizeof walk.path, state_dir); /* as long, in the configuration */
        host_found(ret_finding, HOST_OK, "only root may write to it, and to the directories above it");
        do {
                (void)snprintf(path, sizeof path, "%.*s", walk.length > 0 ? (int)walk.length : 1, walk.path);
                if (lstat(path, &st) < 0)
                        r = -errno;
                else if (!check(&walk, path, &st, ret_finding))
                        return ADVICE;
                else if (S_ISLNK(st.st_mode))
                        r = follow(&walk, path);
        } while (r == 0 && step(&walk));
        if (r == -ENOENT)
                tell_absent(&walk, path, ret_finding);
        else if (r < 0)
                host_found_call(ret_finding, -r, path);
        return ADVICE;
}
