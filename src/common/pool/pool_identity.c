/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "pool/record.h"
#include "process/log.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

#define KNOWN "known-pools" /* of the state directory */

int pool_identity_choose(char *ret_identity, struct error *error)
{
        static const char source[] = "/proc/sys/kernel/random/uuid";
        ssize_t n = file_read(AT_FDCWD, source, ret_identity, PROVISION_IDENTITY_MAX);

        if (n < 0)
                return fail(error, (int)-n, "read", source);
        ret_identity[strcspn(ret_identity, "\n")] = '\0';
        return 0;
}

/* The pool's own. 1: it is there; its id is "" where an administrator made an empty file. 0: there is none. */
static int read_own(int pool_fd, char *ret_id, struct error *error)
{
        ssize_t length = readlinkat(pool_fd, POOL_IDENTITY_LINK, ret_id, PROVISION_IDENTITY_MAX);
        struct stat st;

        ret_id[length > 0 && length < PROVISION_IDENTITY_MAX ? length : 0] = '\0';
        if (length > 0 && length < PROVISION_IDENTITY_MAX)
                return 1;
        if (length < 0 && errno == ENOENT)
                return 0;
        if (length < 0 && errno != EINVAL)
                return fail(error, errno, "read", POOL_IDENTITY_LINK);
        if (fstatat(pool_fd, POOL_IDENTITY_LINK, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_size == 0)
                return 1;
        return fail_because(error, EBADMSG, OPERATION_OPEN_POOL, POOL_IDENTITY_LINK,
                            POOL_IDENTITY_LINK " is damaged: it is neither an identity nor an empty file");
}

static void file_name(const char *pool_name, char *ret_file)
{
        (void)snprintf(ret_file, NAME_MAX + 1, "%s" RECORD_SUFFIX, pool_name);
}

int pool_identity_recall(const struct config *config, const char *pool_name, const char *key, const char *value,
                         char *ret_id, struct error *error)
{
        cleanup_state struct state known = STATE_NONE;
        cleanup_json json_t *object = NULL;
        char file[NAME_MAX + 1];
        const char *known_value;
        int r = state_open(config->state_dir, KNOWN, /* create= */ false, &known, error);

        ret_id[0] = '\0';
        file_name(pool_name, file);
        if (r == 0)
                r = json_file_load(known.dir_fd, file, JSON_OBJECT, &object, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        known_value = json_string_value(json_object_get(object, key));
        if (known_value != NULL && strcmp(known_value, value) == 0)
                (void)text_copy(ret_id, PROVISION_IDENTITY_MAX, json_member_text(object, "id"));
        return 0;
}

/* ---- a pool without an identity: of an earlier version of flexgraft, or never used */

struct first_use {
        const struct pool *pool;
        int pool_fd;
        bool expected; /* records name images of the pool */
        bool found;    /* one of them is there */
};

static void expect(struct first_use *use, const char *image)
{
        struct stat st;

        use->expected = true;
        use->found = use->found || fstatat(use->pool_fd, image, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int expect_made(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct first_use *use = argument;

        (void)stem;
        (void)error;
        if (record != NULL && record->lifecycle == PROVISION_CREATED && strcmp(record->pool, use->pool->name) == 0)
                expect(use, record->id);
        return 0;
}

static int expect_attached(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct first_use *use = argument;
        const char *image = record != NULL ? pool_file(use->pool, record->source) : NULL;

        (void)file;
        (void)error;
        if (image != NULL)
                expect(use, image);
        return 0;
}

/* Where records name images, and the directory has none of them, it is not the pool's. */
static int check_first_use(const struct config *config, const struct pool *pool, int pool_fd, struct error *error)
{
        struct first_use use = { .pool = pool, .pool_fd = pool_fd };
        cleanup_state struct state made = STATE_NONE;
        cleanup_state struct state attached = STATE_NONE;
        int r = provision_record_open(config->state_dir, /* create= */ false, &made, error);

        if (r == 0)
                r = provision_record_each(&made, /* set_aside= */ true, expect_made, &use, error);
        if (r < 0 && r != -ENOENT)
                return r;
        r = state_open(config->state_dir, "volumes", /* create= */ false, &attached, error);
        if (r == 0)
                r = volume_record_each(&attached, /* set_aside= */ false, expect_attached, &use, error);
        if (r < 0 && r != -ENOENT)
                return r;
        return !use.expected || use.found
                       ? 0
                       : fail_because(
                                 error, ENODEV, OPERATION_OPEN_POOL, pool->path,
                                 "the pool \"%s\" is missing: %s has none of its images; is its filesystem mounted?",
                                 pool->name, pool->path);
}

/* ---- */

/* Where there is nothing: of several nodes that share the pool, one does. Gives: the identity that it has then. */
static int give(int pool_fd, char *ret_id, struct error *error)
{
        int r = pool_identity_choose(ret_id, error);

        if (r < 0)
                return r;
        if ((symlinkat(ret_id, pool_fd, POOL_IDENTITY_LINK) < 0 && errno != EEXIST) || fsync(pool_fd) < 0)
                return fail(error, errno, "symlink", POOL_IDENTITY_LINK);
        return read_own(pool_fd, ret_id, error);
}

/* In place of the empty file, at once: with neither the pool would be missing. */
static int replace_empty(int pool_fd, const char *id, struct error *error)
{
        static const char temporary[] = POOL_IDENTITY_LINK ".tmp";

        (void)unlinkat(pool_fd, temporary, 0); /* of a call that was killed */
        if (symlinkat(id, pool_fd, temporary) < 0 || renameat(pool_fd, temporary, pool_fd, POOL_IDENTITY_LINK) < 0 ||
            fsync(pool_fd) < 0)
                return fail(error, errno, "symlink", POOL_IDENTITY_LINK);
        return 0;
}

int pool_identity_remember(const struct config *config, const char *pool_name, const char *key, const char *value,
                           const char *id, struct error *error)
{
        cleanup_json json_t *object = json_pack("{s:s, s:s}", "id", id, key, value);
        cleanup_state struct state known = STATE_NONE;
        char file[NAME_MAX + 1];
        int r = state_open(config->state_dir, KNOWN, /* create= */ true, &known, error);

        /* of several at once, each writes the same */
        if (r < 0 || (r = state_lock(&known, hash_text(pool_name), error)) < 0)
                return r;
        file_name(pool_name, file);
        r = json_file_replace(known.dir_fd, file, object, FILE_DURABLE);
        return r < 0 ? fail(error, -r, "write", file) : 0;
}

/*
 * A pool has its identity before that is known, and in place of an empty file afterwards: killed in between, the next
 * call takes the one, or chooses another.
 */
static int take_locked(const struct config *config, const struct pool *pool, int pool_fd, struct error *error)
{
        char id[PROVISION_IDENTITY_MAX];
        int there = read_own(pool_fd, id, error);
        bool empty = there > 0 && id[0] == '\0';
        int r = there;

        if (there == 0)
                r = give(pool_fd, id, error);
        else if (empty)
                r = pool_identity_choose(id, error);
        if (r >= 0)
                r = pool_identity_remember(config, pool->name, "path", pool->path, id, error);
        return r < 0 || !empty ? r : replace_empty(pool_fd, id, error);
}

/* One at a time, also of two pools that share a directory. */
static void take(const struct config *config, const struct pool *pool, int pool_fd)
{
        cleanup_state struct state known = STATE_NONE;
        struct error error;

        if (state_open(config->state_dir, KNOWN, /* create= */ true, &known, &error) < 0 ||
            state_lock(&known, hash_text(pool->path), &error) < 0 || take_locked(config, pool, pool_fd, &error) < 0)
                log_say("the pool %s has no identity yet: %s", pool->name, error_why(&error));
}

int pool_identity_check(const struct config *config, const struct pool *pool, int pool_fd, bool use,
                        struct error *error)
{
        char known[PROVISION_IDENTITY_MAX];
        char own[PROVISION_IDENTITY_MAX];
        int there;
        int r;

        if ((there = read_own(pool_fd, own, error)) < 0)
                return there;
        if ((r = pool_identity_recall(config, pool->name, "path", pool->path, known, error)) < 0)
                return r;
        if (known[0] != '\0' && there == 0 && (there = read_own(pool_fd, own, error)) < 0) /* given meanwhile */
                return there;
        if (own[0] != '\0' && strcmp(own, known) == 0)
                return 0;
        if (known[0] != '\0' && there == 0)
                return fail_because(error, ENODEV, OPERATION_OPEN_POOL, pool->path,
                                    "the pool \"%s\" is missing: there is no " POOL_IDENTITY_LINK
                                    " in %s; is its filesystem mounted?",
                                    pool->name, pool->path);
        if (known[0] != '\0' && own[0] != '\0')
                return fail_because(error, ENODEV, OPERATION_OPEN_POOL, pool->path,
                                    "the pool \"%s\" is missing: %s is another pool, by its " POOL_IDENTITY_LINK,
                                    pool->name, pool->path);
        if (there == 0 && (r = check_first_use(config, pool, pool_fd, error)) < 0)
                return r;
        if (use)
                take(config, pool, pool_fd);
        return 0;
}
