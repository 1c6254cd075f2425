/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_sums.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "pool/pool_count.h"
#include "process/proc.h"

#define DIRECTORY "pool-sums"
#define SUMS ".sums" /* no name of an image */
#define NAME_SIZE 48 /* of a pool here */

/* ---- the time of the pool's directory */

static void put_time(const struct stat *st, char *ret_time)
{
        (void)snprintf(ret_time, POOL_TIME_SIZE, "%lld.%09ld", (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

static bool is_same_time(const struct stat *one, const struct stat *other)
{
        return one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/*
 * Set it to one that it never had: the kernel's own are those of its last tick, in which others may change the
 * directory, too.
 */
static int renew_time(int pool_fd, char *ret_time)
{
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
        struct stat st;

        (void)clock_gettime(CLOCK_REALTIME, &times[1]); /* cannot fail for this clock */
        if (futimens(pool_fd, times) < 0 || fstat(pool_fd, &st) < 0)
                return -errno;
        put_time(&st, ret_time);
        /* a filesystem that rounds it cannot tell two changes apart: there, images are always counted */
        return st.st_mtim.tv_nsec == times[1].tv_nsec ? 0 : -EOPNOTSUPP;
}

/* ---- the files of a pool */

static int open_state(const char *state_dir, struct state *ret_state)
{
        struct error ignored; /* without it, images are counted */
        struct stat st;

        /* only beside other state */
        return stat(state_dir, &st) < 0 ? -errno
                                        : state_open(state_dir, DIRECTORY, /* create= */ true, ret_state, &ignored);
}

static int put_name(int pool_fd, char *ret_name, struct stat *ret_st)
{
        if (fstat(pool_fd, ret_st) < 0)
                return -errno;
        (void)snprintf(ret_name, NAME_SIZE, "%llx-%llu", (unsigned long long)ret_st->st_dev,
                       (unsigned long long)ret_st->st_ino);
        return 0;
}

static uint64_t lock_of(const char *name)
{
        return hash_text(name);
}

/* Returns a descriptor of the pool's files, owned by the caller, or negative errno. */
static int open_files(const struct state *sums, const char *name, bool create)
{
        int fd = openat(sums->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT && create && (mkdirat(sums->dir_fd, name, 0700) == 0 || errno == EEXIST))
                fd = openat(sums->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* What is not negative; else the file is damaged. */
static bool get_bytes(const json_t *object, const char *key, uint64_t *ret_bytes)
{
        const json_t *bytes = json_object_get(object, key);

        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
                return false;
        *ret_bytes = (uint64_t)json_integer_value(bytes);
        return true;
}

/* A power cut may have lost what an image had got. */
static void put_boot(char *ret_boot_id)
{
        if (proc_boot_id(ret_boot_id) < 0)
                ret_boot_id[0] = '\0';
}

/* 1: the sums are known. */
static int load(int files_fd, const struct stat *pool, struct pool_use *ret_sums)
{
        cleanup_json json_t *object = NULL;
        char time[POOL_TIME_SIZE];
        char boot[PROC_BOOT_ID_SIZE];
        struct error ignored; /* a damaged file counts as none */
        const char *of;
        const char *in;

        if (json_file_load(files_fd, SUMS, JSON_OBJECT, &object, &ignored) < 0)
                return 0;
        put_time(pool, time);
        put_boot(boot);
        of = json_string_value(json_object_get(object, "time"));
        in = json_string_value(json_object_get(object, "boot"));
        return of != NULL && strcmp(of, time) == 0 && in != NULL && strcmp(in, boot) == 0 &&
               get_bytes(object, "full", &ret_sums->full_bytes) && get_bytes(object, "owed", &ret_sums->owed_bytes);
}

/* An image that is larger than all were, grown by hand: the sum is not known. */
static bool can_grow(uint64_t bytes, int64_t grown_bytes)
{
        return grown_bytes >= 0 || bytes >= -(uint64_t)grown_bytes;
}

/* With the lock. */
static int save(int files_fd, const char *time, const struct pool_use *sums)
{
        cleanup_json json_t *object = NULL;
        char boot[PROC_BOOT_ID_SIZE];

        put_boot(boot);
        object = json_pack("{s:s, s:s, s:I, s:I}", "time", time, "boot", boot, "full", (json_int_t)sums->full_bytes,
                           "owed", (json_int_t)sums->owed_bytes);
        return json_file_replace(files_fd, SUMS, object, FILE_PLAIN);
}

/* What is found out of the images that have a mark. */
struct marked {
        int64_t grown_bytes; /* what they owe now, less what the sum has for them */
        bool stays;          /* each is attached, or shares blocks: none could lose its mark */
};

/* attached: NULL: it is not asked which are. */
static int ask_marked(int pool_fd, int files_fd, const struct pool_attached *attached, struct marked *ret_marked)
{
        DIR *list = file_list(files_fd, ".");
        const struct dirent *entry;
        int r = 0;

        *ret_marked = (struct marked){ .stays = true };
        if (list == NULL)
                return -errno;
        while (r == 0 && (entry = readdir(list)) != NULL) {
                struct stat st = {};
                uint64_t noted;

                if (entry->d_name[0] == '.' || (r = pool_mark_read(files_fd, entry->d_name, &noted)) < 0)
                        continue;
                ret_marked->grown_bytes += (int64_t)pool_image_promise(pool_fd, entry->d_name, &st) - (int64_t)noted;
                if (attached != NULL && (st.st_mode & POOL_IMAGE_SHARES) == 0 &&
                    !pool_attached_has(attached, st.st_ino))
                        ret_marked->stays = false;
        }
        (void)closedir(list); /* only read from */
        return r;
}

/* What is known, as of now. 1: it is, and has not changed meanwhile. */
static int ask_known(int pool_fd, int files_fd, struct pool_use *ret_use)
{
        struct marked marked;
        struct stat pool;
        struct stat now;

        if (files_fd < 0 || fstat(pool_fd, &pool) < 0 || load(files_fd, &pool, ret_use) <= 0 ||
            ask_marked(pool_fd, files_fd, /* attached= */ NULL, &marked) < 0 || fstat(pool_fd, &now) < 0 ||
            !is_same_time(&pool, &now) || !can_grow(ret_use->owed_bytes, marked.grown_bytes))
                return 0;
        ret_use->owed_bytes += (uint64_t)marked.grown_bytes;
        return 1;
}

/* With the lock: what is counted is remembered, if it can be. */
static int count_and_keep(int pool_fd, int files_fd, struct pool_use *ret_use, struct error *error)
{
        char time[POOL_TIME_SIZE];
        char after[POOL_TIME_SIZE];
        bool keeps = renew_time(pool_fd, time) == 0;
        struct stat st;
        int r = pool_count(pool_fd, keeps ? files_fd : -EBADF, ret_use, error);

        if (r <= 0 || fstat(pool_fd, &st) < 0)
                return r < 0 ? r : 0;
        put_time(&st, after);
        if (strcmp(time, after) == 0)                /* else an image came or went meanwhile */
                (void)save(files_fd, time, ret_use); /* else they are counted again */
        return 0;
}

static int count_only(int pool_fd, struct pool_use *ret_use, struct error *error)
{
        return pool_count(pool_fd, -EBADF, ret_use, error);
}

/* With the lock: whether the sums are right, and the marks needed; then nothing is written. */
static bool is_right(int pool_fd, int files_fd, const struct stat *pool, struct pool_use *ret_use)
{
        cleanup_pool_attached struct pool_attached attached = { .device = pool->st_dev };
        struct error ignored; /* it is counted again */
        struct marked marked;
        struct pool_use sums;

        return load(files_fd, pool, &sums) > 0 && pool_attached_add(&attached) == 0 &&
               ask_marked(pool_fd, files_fd, &attached, &marked) == 0 && marked.stays &&
               count_only(pool_fd, ret_use, &ignored) >= 0 && ret_use->full_bytes == sums.full_bytes &&
               (int64_t)ret_use->owed_bytes == (int64_t)sums.owed_bytes + marked.grown_bytes;
}

int pool_sums_ask(const char *state_dir, int pool_fd, bool anew, struct pool_use *ret_use, struct error *error)
{
        cleanup_state struct state sums = STATE_NONE;
        cleanup_close int files_fd = -EBADF;
        char name[NAME_SIZE];
        struct stat pool;
        int r = 0;

        if (open_state(state_dir, &sums) < 0 || put_name(pool_fd, name, &pool) < 0)
                return count_only(pool_fd, ret_use, error);
        files_fd = open_files(&sums, name, /* create= */ false);
        if (!anew && ask_known(pool_fd, files_fd, ret_use) > 0)
                return 0;
        /* else another call counts, or changes the pool, which has the lock till then */
        if (!state_try_lock(&sums, lock_of(name)))
                return count_only(pool_fd, ret_use, error);
        if (files_fd < 0)
                files_fd = open_files(&sums, name, /* create= */ true);
        if (files_fd < 0)
                r = count_only(pool_fd, ret_use, error);
        else if (!anew || fstat(pool_fd, &pool) < 0 || !is_right(pool_fd, files_fd, &pool, ret_use))
                r = count_and_keep(pool_fd, files_fd, ret_use, error);
        state_unlock(&sums, lock_of(name)); /* before a change of this call waits for it */
        return r;
}

int pool_sums_look(const char *state_dir, int pool_fd, struct pool_use *ret_use, struct error *error)
{
        cleanup_state struct state sums = STATE_NONE;
        cleanup_close int files_fd = -EBADF;
        char name[NAME_SIZE];
        struct error ignored; /* they are counted */
        struct stat pool;

        if (state_open(state_dir, DIRECTORY, /* create= */ false, &sums, &ignored) == 0 &&
            put_name(pool_fd, name, &pool) == 0 && (files_fd = open_files(&sums, name, /* create= */ false)) >= 0 &&
            ask_known(pool_fd, files_fd, ret_use) > 0)
                return 0;
        return count_only(pool_fd, ret_use, error);
}

/* ---- changes */

void pool_change_begin(const char *state_dir, int pool_fd, struct pool_change *ret_change)
{
        char name[NAME_SIZE];
        struct error ignored;
        struct stat pool;
        struct stat now;
        bool locked;
        int r;

        *ret_change = (struct pool_change)POOL_CHANGE_NONE;
        ret_change->pool_fd = pool_fd;
        r = open_state(state_dir, &ret_change->sums);
        if (r == -ENOENT || put_name(pool_fd, name, &pool) < 0)
                return;
        locked = r == 0 && state_lock(&ret_change->sums, lock_of(name), &ignored) == 0;
        if (locked)
                ret_change->files_fd = open_files(&ret_change->sums, name, /* create= */ false);
        /* nobody has counted it, nor does before the change is over: it may be no pool */
        if (locked && ret_change->files_fd == -ENOENT)
                return;
        ret_change->counted = true;
        ret_change->known = ret_change->files_fd >= 0 && fstat(pool_fd, &pool) == 0 &&
                            load(ret_change->files_fd, &pool, &ret_change->known_sums) > 0 &&
                            fstat(pool_fd, &now) == 0 && is_same_time(&pool, &now);
        if (renew_time(pool_fd, ret_change->time) == 0)
                return;
        ret_change->known = false; /* a directory of another owner */
        /* only a state directory that cannot be written keeps it */
        if (ret_change->files_fd >= 0)
                (void)unlinkat(ret_change->files_fd, SUMS, 0);
}

void pool_change_renew(struct pool_change *change)
{
        change->known = change->known && renew_time(change->pool_fd, change->time) == 0;
}

uint64_t pool_change_promised(struct pool_change *change, const char *image)
{
        uint64_t promised = 0;
        struct stat st;
        int r;

        if (!change->known)
                return 0;
        r = pool_mark_read(change->files_fd, image, &promised);
        if (r == -ENOENT)
                return pool_image_promise(change->pool_fd, image, &st);
        change->known = r == 0;
        return promised;
}

void pool_change_unwatch(struct pool_change *change, const char *image)
{
        /* what the mark says is in no sum any more */
        if (change->files_fd >= 0 && unlinkat(change->files_fd, image, 0) < 0 && errno != ENOENT)
                change->known = false;
}

/* With the time that the change gave the directory: a sum is not believed if others changed it since. */
void pool_change_end(struct pool_change *change, int64_t grown_bytes, int64_t promised_bytes)
{
        struct pool_use *sums = &change->known_sums;

        if (change->known && can_grow(sums->full_bytes, grown_bytes) && can_grow(sums->owed_bytes, promised_bytes)) {
                sums->full_bytes += (uint64_t)grown_bytes;
                sums->owed_bytes += (uint64_t)promised_bytes;
                (void)save(change->files_fd, change->time, sums); /* else they are counted */
        }
        pool_change_release(change);
}

void pool_change_release(struct pool_change *change)
{
        fd_close(&change->files_fd);
        state_release(&change->sums);
        *change = (struct pool_change)POOL_CHANGE_NONE;
}

int pool_sums_watch(const char *state_dir, int pool_fd, const char *image, uint64_t promised_bytes, struct error *error)
{
        cleanup_state struct state sums = STATE_NONE;
        cleanup_close int files_fd = -EBADF;
        char name[NAME_SIZE];
        struct stat pool;
        int r;

        if (!pool_counts(image))
                return 0;
        if ((r = state_open(state_dir, DIRECTORY, /* create= */ true, &sums, error)) < 0)
                return r;
        if ((r = put_name(pool_fd, name, &pool)) == 0) {
                files_fd = open_files(&sums, name, /* create= */ true);
                r = files_fd < 0 ? files_fd : pool_mark(files_fd, image, promised_bytes);
        }
        return r < 0 ? fail(error, -r, "watch image", image) : 0;
}

/* ---- pools that are gone, or have another device number since a boot */

void pool_sums_keep(int pool_fd, json_t *kept)
{
        char name[NAME_SIZE];
        struct stat pool;

        if (put_name(pool_fd, name, &pool) == 0)
                (void)json_object_set_new(kept, name, json_true()); /* else it is counted anew */
}

/* The sum goes first: without it, the names say nothing. */
static void remove_files(const struct state *sums, const char *name)
{
        cleanup_close int files_fd = open_files(sums, name, /* create= */ false);
        DIR *list = files_fd < 0 ? NULL : file_list(files_fd, ".");
        const struct dirent *entry;

        if (list == NULL)
                return;
        (void)unlinkat(files_fd, SUMS, 0);
        while ((entry = readdir(list)) != NULL)
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        (void)unlinkat(files_fd, entry->d_name, 0); /* what stays is removed the next time */
        (void)closedir(list);
        (void)unlinkat(sums->dir_fd, name, AT_REMOVEDIR); /* likewise */
}

void pool_sums_remove_others(const char *state_dir, const json_t *kept)
{
        cleanup_state struct state sums = STATE_NONE;
        const struct dirent *entry;
        DIR *list;

        if (open_state(state_dir, &sums) < 0 || (list = state_list(&sums)) == NULL)
                return;
        while ((entry = readdir(list)) != NULL) {
                uint64_t lock = lock_of(entry->d_name);

                if (entry->d_name[0] == '.' || json_object_get(kept, entry->d_name) != NULL ||
                    !state_try_lock(&sums, lock))
                        continue;
                remove_files(&sums, entry->d_name);
                state_unlock(&sums, lock);
        }
        (void)closedir(list); /* nothing was written */
}
