/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/id_mappable.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "daemon/remap.h"
#include "mount/authority.h"
#include "mount/detached.h"
#include "mount/idmap.h"
#include "mount/options.h"
#include "state/mount_record.h"

#define TRIED_BASE 100000 /* as those that runtimes choose; nothing is seen through it */
#define TRIED_COUNT 65536

static int tried_ns_fd = -EBADF; /* kept until the program ends */
static struct error no_ns;       /* why there is none */

int id_mappable_begin(int argc, char **argv, struct error *error)
{
        static const struct id_range range = { .outside = TRIED_BASE, .count = TRIED_COUNT };
        static struct idmap mapping;

        mapping.users[0] = mapping.groups[0] = range;
        mapping.user_count = mapping.group_count = 1;
        tried_ns_fd = idmap_open(&mapping, &no_ns);
        return remap_begin_mappable(argc, argv, error);
}

int id_mappable_try(int mount_fd, const char *source, bool recursive, struct error *error)
{
        int r;

        if (tried_ns_fd < 0 && no_ns.errnum != 0) {
                *error = no_ns;
                return -no_ns.errnum;
        }
        if (tried_ns_fd < 0)
                return fail_because(error, ENOSYS, "id-map", source,
                                    "this program was not started for a mount that can be id-mapped");
        r = detached_mount_map(mount_fd, source, recursive, tried_ns_fd, error);
        return r == -EINVAL ? 1 : r;
}

int id_mappable_serve(struct remap_source source, uint64_t attributes, const char *state_dir, uint64_t *ret_key,
                      struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int known = authority_is_known(source.mount_fd);
        uint64_t own;
        int pid;
        int r;

        if (known < 0)
                return fail(error, -known, "statfs", source.name);
        if (known == 0)
                return fail_because(error, EOPNOTSUPP, "id-map", source.name,
                                    "it is on a filesystem that remap-daemon does not serve: one that is not for files "
                                    "of users, or that it does not know");
        if ((r = mount_options_of(source.mount_fd, &own)) < 0)
                return fail(error, -r, "statfs", source.name);
        if ((r = state_open(state_dir, "mounts", /* create= */ true, &state, error)) < 0)
                return r;
        source.state = &state;
        return remap_mount_mappable(&source, (unsigned)(attributes | (own & REMAP_KEPT_ATTRIBUTES)), ret_key, &pid,
                                    error);
}

enum remap_cache id_mappable_cache(const char *dir)
{
        const char *always = remap_cache_words[REMAP_CACHE_ALWAYS];
        char word[16];
        ssize_t n = getxattr(dir, REMAP_CACHE_ATTRIBUTE, word, sizeof word);

        return n == (ssize_t)strlen(always) && memcmp(word, always, strlen(always)) == 0 ? REMAP_CACHE_ALWAYS
                                                                                         : REMAP_CACHE_AUTO;
}

int id_mappable_is_served(const char *state_dir, uint64_t key, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = key == 0 ? 0 : state_open(state_dir, "mounts", /* create= */ false, &state, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r; /* without the directory there is no lock in it */
        return key == 0 || mount_record_remap_lives(&state, key);
}
