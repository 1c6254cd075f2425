/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/mappable_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/hash.h"
#include "daemon/id_mappable.h"
#include "daemon/remap.h"
#include "mount/identity.h"
#include "mount/options.h"
#include "volume/kind.h"

#define EVERY_ATTRIBUTE                                                                                                \
        ((uint64_t)(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR__ATIME | \
                    MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW))

/* What is to be served. */
struct wanted {
        int fd;
        const char *dir; /* where it is to be */
        struct stat root;
        bool reads_only; /* the source's mount, which is what holds behind the daemon */
        struct mount_attributes attributes;
};

static int look(const struct mount_attributes *attributes, struct wanted *wanted, struct error *error)
{
        uint64_t own;
        int r;

        if (fstat(wanted->fd, &wanted->root) < 0)
                return fail(error, errno, "stat", wanted->dir);
        if ((r = mount_options_of(wanted->fd, &own)) < 0)
                return fail(error, -r, "statfs", wanted->dir);
        wanted->reads_only = (own & MOUNT_ATTR_RDONLY) != 0;
        wanted->attributes = (struct mount_attributes){
                .set = attributes->set | (own & REMAP_KEPT_ATTRIBUTES & ~attributes->clear),
                .clear = EVERY_ATTRIBUTE,
                .propagation = attributes->propagation,
        };
        return 0;
}

/* ---- another pod's */

uint64_t volume_mappable_source(const struct volume_call *call)
{
        const struct volume_option *option = call->kind->any_filesystem ? call->kind->options : NULL;
        uint64_t hash = HASH_SEED;
        struct error ignored;
        const char *value;

        if (option == NULL)
                return 0;
        for (; option->key != NULL; option++)
                /* whichever key says it: "path" is the same as "source" */
                if (option->type != VOLUME_OPTION_BOOLEAN &&
                    volume_request_option(call->request, option->key, &value, &ignored) == 0 && value != NULL)
                        hash = hash_bytes(hash, value, strlen(value) + 1);
        return hash >> 2 | 1; /* a number of JSON */
}

/* Of an exchange the record knows it: volume-reconcile has no options. */
static uint64_t source_of(const struct volume_call *call, const char *dir)
{
        for (size_t i = 0; i < call->record.published_count; i++)
                if (strcmp(call->record.published[i].dir, dir) == 0 && call->record.published[i].source_key != 0)
                        return call->record.published[i].source_key;
        return volume_mappable_source(call);
}

/* Whether another pod's directory has a mount that a daemon serves. */
static bool is_served(const struct volume_call *call, const struct mount_dir *place, const char *dir)
{
        struct error ignored;

        return place->remap_key != 0 && place->replaces == 0 && strcmp(place->dir, dir) != 0 &&
               id_mappable_is_served(call->config.state_dir, place->remap_key, &ignored) > 0;
}

static bool is_of(const struct volume_call *call, const struct mount_dir *place, const struct wanted *wanted, int fd)
{
        struct mount_seen seen;
        struct stat root;

        return place->source_device == wanted->root.st_dev &&
               (place->source_reads_only || place->read_only) == wanted->reads_only && mount_see(fd, "", &seen) == 0 &&
               mount_seen_is(&seen, &place->identity) && fstat(fd, &root) == 0 && root.st_ino == wanted->root.st_ino &&
               id_mappable_cache(place->dir) == call->request->cache;
}

/*
 * A mount of its own of what the daemon serves: what is mounted below it is not below the other. Returns false: it is no
 * such daemon.
 */
static bool share(const struct volume_call *call, const struct mount_dir *place, const struct wanted *wanted,
                  int *ret_fd)
{
        static const struct mount_attributes apart = { .propagation = MS_PRIVATE };
        cleanup_close int top_fd = open(place->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        cleanup_close int fd = -EBADF;
        struct error ignored; /* then there is one more daemon */

        if (top_fd < 0 || !is_of(call, place, wanted, top_fd))
                return false;
        fd = detached_mount_clone(top_fd, place->dir, /* recursive= */ false, &ignored);
        if (fd < 0 || detached_mount_set(fd, place->dir, &apart, /* user_ns_fd= */ -1, &ignored) < 0 ||
            detached_mount_set(fd, place->dir, &wanted->attributes, /* user_ns_fd= */ -1, &ignored) < 0)
                return false;
        *ret_fd = fd_take(&fd);
        return true;
}

/* With a daemon each, neither would see what the other's pods change. */
static int check_alone(const struct volume_call *call, const struct mount_dir *place, const char *dir,
                       struct error *error)
{
        if (call->request->cache == REMAP_CACHE_AUTO && id_mappable_cache(place->dir) == REMAP_CACHE_AUTO)
                return 0;
        return fail_because(error, EBUSY, "id-map", dir,
                            "what the volume's files hold is remembered (\"cache\": \"always\"), and %s has it through "
                            "another remap-daemon, read-only or with other options; end that pod first",
                            place->dir);
}

/* Returns 1 and a mount; 0: there is none to share. */
static int find_shared(const struct volume_call *call, const struct wanted *wanted, uint64_t *ret_key, int *ret_fd,
                       struct error *error)
{
        const uint64_t source = source_of(call, wanted->dir);
        const struct mount_dir *other = NULL;

        for (size_t i = 0; i < call->record.published_count; i++) {
                const struct mount_dir *place = &call->record.published[i];

                /* pods' own volumes of one name may be different ones, whose servers need not answer; 0: an earlier
                 * version's may be the same */
                if ((place->source_key != 0 && place->source_key != source) || !is_served(call, place, wanted->dir))
                        continue;
                if (share(call, place, wanted, ret_fd)) {
                        *ret_key = place->remap_key;
                        return 1;
                }
                other = place;
        }
        return other == NULL ? 0 : check_alone(call, other, wanted->dir, error);
}

/* ---- a new one */

static int start(const struct volume_call *call, const struct wanted *wanted, uint64_t *ret_key, struct error *error)
{
        const struct remap_source source = { .mount_fd = wanted->fd,
                                             .name = call->record.name, /* several pods show it */
                                             .cache = call->request->cache };
        cleanup_close int fd =
                id_mappable_serve(source, wanted->attributes.set, call->config.state_dir, ret_key, error);
        int r = fd < 0 ? fd : detached_mount_set(fd, wanted->dir, &wanted->attributes, /* user_ns_fd= */ -1, error);

        return r < 0 ? r : fd_take(&fd);
}

int volume_mappable_mount(const struct volume_call *call, int source_fd, const char *dir,
                          const struct mount_attributes *attributes, struct volume_served *ret_served,
                          struct error *error)
{
        struct wanted wanted = { .fd = source_fd, .dir = dir };
        int fd = -EBADF;
        int r = look(attributes, &wanted, error);

        if (r < 0 || (r = find_shared(call, &wanted, &ret_served->key, &fd, error)) < 0)
                return r;
        ret_served->source_device = wanted.root.st_dev;
        ret_served->source_reads_only = wanted.reads_only;
        return r > 0 ? fd : start(call, &wanted, &ret_served->key, error);
}
