/* SPDX-License-Identifier: Apache-2.0 */
/* source_raw.c - a block device of the node, as a device node in the container. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json_value.h"
#include "base/text.h"
#include "block/device.h"
#include "block/loop_guard.h"
#include "inject/injection.h"
#include "inject/kinds/device_mount.h"
#include "inject/kinds/source_raw.h"
#include "inject/raw_grant.h"
#include "inject/request/source.h"
#include "mount/detached.h"
#include "mount/scratch_namespace.h"
#include "process/privileges.h"
#include "process/sealed_child.h"

int source_raw_check_device(const struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const struct block_device *device = &injection->device;

        if (request->read_only && !injection->container->own_user_ns)
                return fail_because(error, EOPNOTSUPP, OPERATION_FIND_DEVICE, device->path,
                                    "the container has no user namespace of its own, so its root can write to any "
                                    "device that it can open, in spite of \"readOnly\"");
        if (device->read_only && !request->read_only)
                return fail_because(error, EROFS, OPERATION_FIND_DEVICE, device->path, "the device is read-only");
        /* two writers would destroy its content */
        return request->read_only ? 0 : block_device_check_unused(device, error);
}

static int find_device(struct injection *injection, struct error *error)
{
        int r = device_mount_find(injection, error);

        return r < 0 ? r : source_raw_check_device(injection, error);
}

struct node_job {
        const struct injection *injection;
        uid_t uid;
        gid_t gid;
        mode_t mode;
};

/*
 * In a sealed child on the node: creates the device node on a private tmpfs, and clones the node alone. nodev is
 * cleared later, on the clone, with the other attributes.
 */
static int make_in_child(void *argument, struct error *error)
{
        const struct node_job *job = argument;
        int fd;
        int r = scratch_namespace_enter(error);

        if (r < 0 || (r = privileges_file_owner(job->uid, job->gid, error)) < 0)
                return r;
        (void)umask(0); /* cannot fail; the child creates nothing else */
        if (mknodat(AT_FDCWD, "node", S_IFBLK | job->mode, (dev_t)job->injection->record.raw_device) < 0)
                return fail(error, errno, "mknod", job->injection->device.path);
        fd = open_tree(AT_FDCWD, "node", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return fd < 0 ? fail(error, errno, OPERATION_OPEN_TREE, "a device node") : fd;
}

/* See make_node(): a read-only device is safe only while the node's root is nobody in the container. */
static int check_no_root(const struct injection *injection, struct error *error)
{
        static struct id_maps maps;
        uint32_t id = 0;
        int r = container_read_maps(injection->container, &maps, error);

        if (r < 0 || !id_ranges_map(maps.users.ranges, maps.users.count, /* inside= */ false, &id))
                return r;
        return fail_because(error, EOPNOTSUPP, "make device node", injection->device.path,
                            "the container's user namespace has the node's root (as uid %u), which can write to any "
                            "device that it can open, in spite of \"readOnly\"",
                            id);
}

/* The container gets a loop device on the device: the one that it has already, or a new one. */
static int guard_device(struct injection *injection, struct error *error)
{
        const struct block_device *device = &injection->device;
        struct mount_record *record = &injection->record;
        const char *state_dir = injection->session->state_dir;
        bool writes = !injection->request->read_only;
        int r = raw_grant_check_alone(state_dir, record, device->number, writes, error);

        if (r < 0)
                return r;
        r = raw_grant_find_guard(state_dir, record, device->number, writes, &record->raw_device, error);
        if (r == -ENOENT) {
                r = loop_guard_make(device->path, device->number, mount_record_guard_key(record), writes,
                                    &record->raw_device, error);
                injection->guard_made = r >= 0;
        }
        if (r < 0)
                return r;
        injection->source_fd = r; /* holds it, until the record is written */
        record->raw_source = device->number;
        return 0;
}

/*
 * A read-only mount does not prevent writes to a device. So with "readOnly" the node's mode does: the container's root
 * may read it as its group. Its owner has no mapping in the container, so that the root's capabilities do not override
 * the mode (capable_wrt_inode_uidgid() in the kernel requires both ids mapped).
 */
static int make_node(struct injection *injection, bool owned, struct error *error)
{
        bool read_only = injection->request->read_only;
        struct node_job job = { .injection = injection, .mode = read_only ? 0040 : 0600 };
        int r = container_own_root_ids(injection->container, &job.uid, &job.gid, error);

        (void)owned; /* never true: not ownable */
        if (r < 0 || (read_only && (r = check_no_root(injection, error)) < 0) ||
            (r = guard_device(injection, error)) < 0)
                return r;
        if (read_only)
                job.uid = 0;
        injection->mount_fd = sealed_child_run(make_in_child, &job, NULL, 0, error);
        if (injection->mount_fd < 0)
                return injection->mount_fd;
        (void)text_copy(injection->fs_type, sizeof injection->fs_type, "raw");
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, "none");
        return raw_grant_prepare(&injection->session->state, injection->container, &injection->record, !read_only,
                                 error);
}

int source_raw_check_recorded(struct injection *injection, struct error *error)
{
        const struct mount_record *record = &injection->record;
        int r = raw_grant_check_alone(injection->session->state_dir, record, record->raw_source, record->raw_writes,
                                      error);

        return r < 0 || !record->raw_writes || injection->device.number != record->raw_source
                       ? r
                       : block_device_check_unused(&injection->device, error);
}

static int allow_device(struct injection *injection, struct error *error)
{
        int r = injection->guard_made ? loop_guard_keep(injection->source_fd, error) : 0;

        if (r < 0)
                return r;
        injection->device_allowed = true; /* from here on it may be allowed */
        r = raw_grant_settle(&injection->session->state, injection->container, &injection->record,
                             /* included= */ true, error);
        fd_close(&injection->source_fd); /* the record and the keeper hold it now */
        return r;
}

/* The replaced mount no longer needs its device, or needs less access to the same one. */
static int settle_replaced(struct injection *injection, const struct mount_record *record, struct error *error)
{
        return raw_grant_settle_replaced(&injection->session->state, injection->container, record, error);
}

static int forbid_device(struct injection *injection, struct error *error)
{
        const struct state *state = &injection->session->state;
        int r;

        fd_close(&injection->source_fd);
        if (!injection->device_allowed)
                return injection->guard_made && (r = raw_grant_release(state, &injection->record, error)) < 0 ? r : 0;
        if (injection->replacing && injection->replaced.raw_device != 0) {
                /* the mount that was to be replaced stays, with its device */
                r = raw_grant_settle(state, injection->container, &injection->replaced, /* included= */ true, error);
                if (r < 0 || injection->replaced.raw_device == injection->record.raw_device)
                        return r;
        }
        r = raw_grant_settle(state, injection->container, &injection->record, /* included= */ false, error);
        return r < 0 ? r : 0;
}

int source_raw_check(struct request *request, struct error *error)
{
        if (request->fs_type != NULL)
                return json_value_refuse(error, "fsType", "a raw device is not mounted as a filesystem");
        if (request->options.fs_count > 0)
                return json_value_refuse(error, "options", "a raw device has no options of a filesystem");
        if ((request->options.attr_set & MOUNT_ATTR_NODEV) != 0)
                return json_value_refuse(error, "options", "\"nodev\" would make a raw device useless");
        if (request->ids != IDS_AUTO)
                return json_value_refuse(error, "ids",
                                         "a raw device has nothing to map: it belongs to the container's root");
        if (request->fallback == FALLBACK_REMAP)
                return json_value_refuse(error, "fallback", "a raw device has nothing to map");
        request->options.attr_clear |= MOUNT_ATTR_NODEV;
        return 0;
}

static int identify(const struct injection *injection, char *ret_identity, struct error *error)
{
        (void)ret_identity;
        return fail_because(error, EOPNOTSUPP, "write record", injection->request->source,
                            "\"persist\" is not for raw devices, as another disk may have the name after a reboot; use "
                            "a volume with \"raw\" (mount-volume)");
}

static int check_policy(const struct request *request, const struct policy *policy, struct error *error)
{
        (void)request;
        return policy_require(policy, "raw", error);
}

const struct source_kind source_raw = {
        .word = "block",
        .needs = NEED(DEVICE_CGROUP) | NEED(LOOP) | NEED(LOOP_CONFIGURE),
        .hints = block_hints,
        .maps = true,
        .fresh = true,
        .open_text = SOURCE_FINDS_DEVICE, /* open, libblkid */
        .make_text = SOURCE_RAW_MAKES,    /* ioctl; unshare, mknodat, open_tree */
        .check_policy = check_policy,
        .open = find_device,
        .identify = identify,
        .make = make_node,
        .check_recorded = source_raw_check_recorded,
        .allow = allow_device,
        .settle = settle_replaced,
        .undo = forbid_device,
};
