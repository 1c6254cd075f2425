/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/project_quota.h"
#include "base/text.h"
#include "base/tree_remove.h"
#include "process/log.h"

#define TRASH ".flexgraft-trash"
#define KEY_SIZE 18 /* 16 hexadecimal digits, and a dot */
#define GIVE_BACK_MS 2000
#define GIVE_BACK_PAUSE_MS 20
#define TRIES 16 /* volume-reconcile may remove an empty directory of the trash at any time */

static void put_key(const char *id, char *ret_key)
{
        (void)snprintf(ret_key, KEY_SIZE, "%016llx.", (unsigned long long)hash_text(id));
}

static int open_directory(int dir_fd, const char *name, struct error *error)
{
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd >= 0 ? fd : errno == ENOENT ? -ENOENT : fail(error, errno, "open", name);
}

/* What is moved there keeps its own project, also where the pool's directory gives one to all that is in it. */
static int make_directory(int dir_fd, const char *name, struct error *error)
{
        cleanup_close int fd = -EBADF;
        int r;

        if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
                return fail(error, errno, "mkdir", name);
        fd = open_directory(dir_fd, name, error);
        if (fd < 0)
                return fd == -ENOENT ? fail(error, ENOENT, "mkdir", name) : fd;
        r = project_stop(fd);
        return r < 0 ? fail(error, -r, "set project", name) : fd_take(&fd);
}

/*
 * In the trash: a directory of a volume, which we make now, so that it shows who we are to the filesystem. On a share
 * others may have made the trash before us; what is moved there must be out of their reach.
 */
static int make_own(int pool_fd, const char *id, uint32_t project, struct error *error)
{
        cleanup_close int trash_fd = make_directory(pool_fd, TRASH, error);
        cleanup_close int own_fd = -EBADF;
        char name[KEY_SIZE + 12 + 17];
        char key[KEY_SIZE];
        struct stat trash;
        struct stat own;
        uint64_t number;

        if (trash_fd < 0)
                return trash_fd;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
                return fail(error, EAGAIN, "getrandom", id);
        put_key(id, key);
        (void)snprintf(name, sizeof name, "%s%u.%016llx", key, project, (unsigned long long)number);
        own_fd = make_directory(trash_fd, name, error);
        if (own_fd < 0)
                return own_fd;
        if (fstat(trash_fd, &trash) < 0 || fstat(own_fd, &own) < 0)
                return fail(error, errno, "fstat", TRASH);
        if (trash.st_uid == own.st_uid && (trash.st_mode & (S_IRWXG | S_IRWXO)) == 0)
                return fd_take(&own_fd);
        (void)unlinkat(trash_fd, name, AT_REMOVEDIR); /* it is empty, and no harm if it stays */
        return fail_because(error, EPERM, OPERATION_REMOVE, id,
                            "others can look into \"" TRASH "\" of the pool, which flexgraft did not make; remove it");
}

/* Since Linux 5.14 xfs takes what was unlinked from its sums in the background, a moment later. */
static int read_use(int trash_fd, uint32_t project, struct project_use *ret_use)
{
        const int64_t until_ms = clock_now_ms() + GIVE_BACK_MS;
        int r;

        while ((r = project_quota_read(trash_fd, project, ret_use)) == 0 && ret_use->inodes != 0 &&
               clock_now_ms() < until_ms)
                clock_pause_ms(GIVE_BACK_PAUSE_MS);
        return r;
}

/*
 * The project's limit, once nothing has the project. Files that processes have open still do; and another volume,
 * where a process of the node gave its project to this one: then the limit stays, and volume-reconcile looks again.
 */
static int give_back(int trash_fd, const char *name, struct error *error)
{
        const uint32_t project = (uint32_t)strtoul(name + KEY_SIZE - 1, NULL, 10);
        struct project_use use;
        int r;

        if (project != PROJECT_NONE && read_use(trash_fd, project, &use) == 0) {
                if (use.inodes != 0) {
                        log_say("project %u is still in use, and keeps its limit until volume-reconcile", project);
                        return 0;
                }
                if (use.limits && (r = project_quota_limit(trash_fd, project, 0, 0)) < 0)
                        return fail(error, -r, "set limit", name);
        }
        return unlinkat(trash_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY
                       ? 0
                       : fail(error, errno, "rmdir", name);
}

/* Nothing in it has the name of a volume any more: EBUSY would mean that nothing was changed. */
static int empty(int trash_fd, const char *name, struct error *error)
{
        cleanup_close int fd = open_directory(trash_fd, name, error);
        int r = fd < 0 ? fd : tree_empty_trash(fd, "volume", error);

        if (r == -ENOTDIR || r == -ELOOP) /* not ours */
                return unlinkat(trash_fd, name, 0) == 0 || errno == ENOENT ? 0 : fail(error, errno, "unlink", name);
        if (r == -EBUSY) {
                error->errnum = EAGAIN;
                return -EAGAIN;
        }
        if (r < 0 && r != -ESTALE) /* of a share: another node deletes the volume, too */
                return r == -ENOENT ? 0 : r;
        return give_back(trash_fd, name, error);
}

/* Those of one volume, or of all ("" as key): one that cannot be removed does not keep the others. */
static int empty_all(int pool_fd, const char *key, struct error *error)
{
        cleanup_close int trash_fd = open_directory(pool_fd, TRASH, error);
        DIR *list = trash_fd < 0 ? NULL : file_list(trash_fd, ".");
        const struct dirent *entry;
        struct error failure;
        int r = 0;

        if (trash_fd < 0)
                return trash_fd == -ENOENT ? 0 : trash_fd;
        if (list == NULL)
                return fail(error, errno, "open", TRASH);
        while (r != -ECANCELED && r != -ETIME && (entry = readdir(list)) != NULL) {
                if (strlen(entry->d_name) < KEY_SIZE || !text_starts(entry->d_name, key))
                        continue;
                int failed = empty(trash_fd, entry->d_name, r < 0 ? &failure : error); /* the first is reported */

                r = r < 0 && failed != -ECANCELED && failed != -ETIME ? r : failed;
        }
        (void)closedir(list); /* only read from */
        return r;
}

int pool_trash_empty(int pool_fd, struct error *error)
{
        return empty_all(pool_fd, "", error);
}

int pool_trash_wipe(int dir_fd, const char *id, struct error *error)
{
        int r = tree_empty_trash(dir_fd, id, error);

        if (r == -EBUSY)
                error->errnum = EAGAIN;
        return r == -EBUSY ? -EAGAIN : r;
}

/* Returns 1: it is still there, since the directory for it was removed meanwhile. */
static int move_away(int pool_fd, int dir_fd, const char *name, const char *id, struct error *error)
{
        cleanup_close int fd = open_directory(dir_fd, name, error);
        cleanup_close int own_fd = -EBADF;
        uint32_t of_pool;
        uint32_t project;
        int r;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        if ((r = project_read(fd, &project)) < 0 || (r = project_read(pool_fd, &of_pool)) < 0)
                return fail(error, -r, "read project", id);
        if (project == of_pool || project < PROJECT_FIRST) /* the administrator's */
                project = PROJECT_NONE;
        own_fd = make_own(pool_fd, id, project, error);
        if (own_fd == -ENOSPC || own_fd == -EDQUOT) { /* the volume's own files are what has to make room */
                if ((r = pool_trash_wipe(fd, id, error)) < 0)
                        return r;
                own_fd = make_own(pool_fd, id, project, error);
        }
        if (own_fd < 0)
                return own_fd == -ENOENT ? 1 : own_fd;
        r = tree_move(dir_fd, name, own_fd, error);
        return r == -ENOENT || r == -ESTALE ? 1 : r;
}

int pool_trash_discard(int pool_fd, int dir_fd, const char *name, const char *id, struct error *error)
{
        char key[KEY_SIZE];
        int r = dir_fd < 0 ? 0 : 1;

        for (int i = 0; r > 0 && i < TRIES; i++)
                r = move_away(pool_fd, dir_fd, name, id, error);
        if (r > 0)
                return fail(error, EAGAIN, OPERATION_REMOVE, id);
        put_key(id, key);
        if (r < 0 || (r = empty_all(pool_fd, key, error)) < 0)
                return r;
        return fsync(pool_fd) < 0 ? fail(error, errno, "fsync", id) : 0;
}
