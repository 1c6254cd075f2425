/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.c - probes of user namespaces and id-mapped mounts (host/probes.h). */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/probes.h"
#include "mount/detached.h"
#include "mount/identity.h"
#include "mount/idmap.h"
#include "mount/mountinfo.h"
#include "mount/scratch_namespace.h"
#include "mount/superblock.h"
#include "process/namespace.h"
#include "process/sealed_child.h"

/* ids of containers, as /etc/subuid usually gives them to root's; nothing is owned by them */
#define FIRST_ID 100000
#define IDS 65536

void probe_root(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        if (host_has_privileges())
                host_found(ret_finding, HOST_OK, "this program has the capabilities that it keeps");
        else
                host_found(ret_finding, HOST_UNKNOWN, "this program runs without some of the capabilities it needs");
}

void probe_node_namespace(const char *argument, struct host_finding *ret_finding)
{
        char path[64];
        char seen[64];
        ssize_t length;

        (void)snprintf(path, sizeof path, "/proc/self/ns/%.*s", (int)strcspn(argument, ":"), argument);
        length = readlink(path, seen, sizeof seen - 1);
        seen[length > 0 ? length : 0] = '\0';
        if (length < 0)
                host_found_call(ret_finding, errno, "readlink");
        else if (strcmp(seen, argument) == 0)
                host_found(ret_finding, HOST_OK, "this program runs in it");
        else
                host_found(ret_finding, text_starts(argument, "user") ? HOST_MISSING : HOST_UNKNOWN,
                           "this program runs in another one, %s", seen);
}

/* A user namespace with the ids of a container. */
static int open_mapping(struct error *error)
{
        static const struct idmap mapping = {
                .users = { { 0, FIRST_ID, IDS } }, .user_count = 1, .groups = { { 0, FIRST_ID, IDS } }, .group_count = 1
        };

        return idmap_open(&mapping, error);
}

void probe_user_namespaces(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int fd = open_mapping(&error);

        (void)argument;
        if (fd >= 0)
                host_found(ret_finding, HOST_OK, "one was created, with ids %d and up", FIRST_ID);
        else
                host_found_error(ret_finding, &error);
}

/* ---- overlay */

/*
 * In a sealed child: an overlay of directories of a private tmpfs, as a detached mount. Without a capability over files
 * the kernel cannot use a work directory, and the overlay has lower layers alone.
 */
static int make_overlay(bool writable, struct error *error)
{
        static const char *const directories[] = { "lower", "upper", "work" };
        cleanup_close int context_fd = -EBADF;
        int r = scratch_namespace_enter(error);

        for (size_t i = 0; r == 0 && i < sizeof directories / sizeof directories[0]; i++)
                if (mkdirat(AT_FDCWD, directories[i], 0755) < 0)
                        r = fail(error, errno, "mkdir", directories[i]);
        if (r < 0)
                return r;
        context_fd = superblock_open("overlay", error);
        if (context_fd < 0)
                return context_fd;
        if ((r = superblock_set(context_fd, "lowerdir", writable ? "lower" : "lower:upper", error)) < 0 ||
            (writable && ((r = superblock_set(context_fd, "upperdir", "upper", error)) < 0 ||
                          (r = superblock_set(context_fd, "workdir", "work", error)) < 0)) ||
            (r = superblock_create(context_fd, "overlay", error)) < 0)
                return r;
        return superblock_mount(context_fd, "overlay", 0, error);
}

static int overlay_as_node(void *argument, struct error *error)
{
        const int *user_ns_fd = argument;
        cleanup_close int fd = make_overlay(/* writable= */ false, error);
        int r = fd < 0 ? fd : detached_mount_map(fd, "overlay", /* recursive= */ false, *user_ns_fd, error);

        return r < 0 ? r : fd_take(&fd);
}

static int overlay_as_container(void *argument, struct error *error)
{
        const int *user_ns_fd = argument;
        int r = namespace_become_root_of(*user_ns_fd, "a new user namespace", error);

        return r < 0 ? r : make_overlay(/* writable= */ true, error);
}

/* What cannot be tried without loading a module is not tried. */
static bool is_there(const char *type, struct host_finding *ret_finding)
{
        bool there = filesystem_is_registered(type);

        if (!there)
                host_found(ret_finding, HOST_UNKNOWN, "not tried: the kernel has not loaded %s", type);
        return there;
}

static void try_overlay(sealed_child_function *function, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int user_ns_fd = -EBADF;
        cleanup_close int fd = -EBADF;

        if (!is_there("overlay", ret_finding))
                return;
        user_ns_fd = open_mapping(&error);
        fd = user_ns_fd < 0 ? user_ns_fd : sealed_child_run(function, &user_ns_fd, &user_ns_fd, 1, &error);
        if (fd >= 0)
                host_found(ret_finding, HOST_OK, "tried in a private mount namespace");
        else
                host_found_error(ret_finding, &error);
}

void probe_user_overlay(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        try_overlay(overlay_as_container, ret_finding);
}

void probe_map_overlay(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        try_overlay(overlay_as_node, ret_finding);
}

/* ---- id-mapped mounts */

void probe_map_tmpfs(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int user_ns_fd = open_mapping(&error);
        cleanup_close int fd = user_ns_fd < 0 ? user_ns_fd : superblock_new_tmpfs(&error);

        (void)argument;
        if (fd < 0 || detached_mount_map(fd, "tmpfs", /* recursive= */ false, user_ns_fd, &error) < 0)
                host_found_error(ret_finding, &error);
        else
                host_found(ret_finding, HOST_OK, "tried on a new tmpfs");
}

/* Whether a line of mountinfo is of this type: nfs4 is nfs, too. */
static bool is_type(const struct mountinfo *line, const char *type)
{
        return strcmp(line->type, type) == 0 || (strcmp(type, "nfs") == 0 && strcmp(line->type, "nfs4") == 0);
}

/* Map a detached clone of a mount. Errors: ESTALE something else is mounted over it. */
static int map_mounted(const struct mountinfo *line, int user_ns_fd, struct error *error)
{
        cleanup_close int source_fd = open(line->mount_point, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        cleanup_close int fd = -EBADF;
        uint64_t id = 0;

        if (source_fd < 0)
                return fail(error, errno, "open", line->mount_point);
        if (mount_see_short_id(source_fd, &id) < 0 || id != line->id)
                return fail(error, ESTALE, "open", line->mount_point);
        fd = detached_mount_clone(source_fd, line->mount_point, /* recursive= */ false, error);
        if (fd < 0)
                return fail(error, ESTALE, OPERATION_OPEN_TREE, line->mount_point);
        return detached_mount_map(fd, line->mount_point, /* recursive= */ false, user_ns_fd, error);
}

void probe_map_mounted(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int user_ns_fd = open_mapping(&error);
        cleanup_mount_table struct mountinfo line = {};

        host_found(ret_finding, HOST_UNKNOWN, "not tried: no %s is mounted here that could be mapped", argument);
        if (user_ns_fd < 0) {
                host_found_error(ret_finding, &error);
                return;
        }
        if (mountinfo_open_own(&line) < 0)
                return;
        while (ret_finding->state == HOST_UNKNOWN && mountinfo_next(&line)) {
                int r = is_type(&line, argument) ? map_mounted(&line, user_ns_fd, &error) : -ESTALE;

                if (r == 0)
                        host_found(ret_finding, HOST_OK, "tried on %.256s", line.mount_point);
                else if (r == -EINVAL)
                        host_found(ret_finding, HOST_MISSING, "tried on %.256s: the kernel refuses it",
                                   line.mount_point);
                /* else it is mapped already, or covered: another may do */
        }
}

/* ---- FUSE */

/* The flags of INIT, as the kernel offers them (docs/KERNEL.md#fuse). */
#define FLAG_MORE ((uint64_t)1 << 30) /* FUSE_INIT_EXT: there are flags above 31 */
static const struct {
        const char *word;
        uint64_t flag;
} offers[] = { { "id-mapping", (uint64_t)1 << 40 }, { "passthrough", (uint64_t)1 << 37 } };

/* A FUSE filesystem without a mount: its first request says what the kernel can do. It ends with the descriptors. */
static int read_offer(uint64_t *ret_flags, struct error *error)
{
        static char request[FUSE_MIN_READ_BUFFER];
        const struct fuse_in_header *header = (const void *)request;
        struct fuse_init_in init;
        cleanup_close int device_fd = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        cleanup_close int context_fd = -EBADF;
        char number[16];
        ssize_t length;
        int r;

        if (device_fd < 0)
                return fail(error, errno, "open", "/dev/fuse");
        (void)snprintf(number, sizeof number, "%d", device_fd);
        context_fd = superblock_open("fuse", error);
        if (context_fd < 0)
                return context_fd;
        if ((r = superblock_set(context_fd, "fd", number, error)) < 0 ||
            (r = superblock_set(context_fd, "rootmode", "40000", error)) < 0 ||
            (r = superblock_set(context_fd, "user_id", "0", error)) < 0 ||
            (r = superblock_set(context_fd, "group_id", "0", error)) < 0 ||
            (r = superblock_create(context_fd, "fuse", error)) < 0)
                return r;
        length = read(device_fd, request, sizeof request);
        if (length < 0)
                return fail(error, errno, "read", "/dev/fuse");
        if ((size_t)length < sizeof *header + sizeof init || header->opcode != FUSE_INIT)
                return fail(error, EPROTO, "read", "/dev/fuse");
        (void)memcpy(&init, request + sizeof *header, sizeof init);
        *ret_flags = init.flags | ((init.flags & FLAG_MORE) != 0 ? (uint64_t)init.flags2 << 32 : 0);
        return 0;
}

void probe_fuse_offer(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        uint64_t flags = 0;

        if (!is_there("fuse", ret_finding))
                return;
        if (read_offer(&flags, &error) < 0) {
                host_found_error(ret_finding, &error);
                return;
        }
        for (size_t i = 0; i < sizeof offers / sizeof offers[0]; i++)
                if (strcmp(offers[i].word, argument) == 0)
                        host_found(ret_finding, (flags & offers[i].flag) != 0 ? HOST_OK : HOST_MISSING,
                                   (flags & offers[i].flag) != 0 ? "the kernel offers it"
                                                                 : "the kernel does not offer it");
}
