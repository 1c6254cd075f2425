/* SPDX-License-Identifier: Apache-2.0 */
/* source_raw.c - a block device of the node, as a device node in the container. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "block/device.h"
#include "inject/injection.h"
#include "inject/raw_grant.h"
#include "inject/source.h"
#include "mount/detached.h"
#include "mount/scratch_namespace.h"
#include "process/privileges.h"
#include "process/sealed_child.h"

static int find_device(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct block_device *device = &injection->device;
        int r = block_device_find(request->source, device, error);

        if (r < 0)
                return r;
        (void)text_copy(injection->record.origin, sizeof injection->record.origin, device->path);
        if ((r = injection_check_policy(injection, error)) < 0 ||
            (injection->session->policy != NULL && (r = block_device_check_place(device, error)) < 0))
                return r;
        if (request->read_only && !injection->container->own_user_ns)
                return fail_because(error, EOPNOTSUPP, "find device", device->path,
                                    "the container has no user namespace of its own, so its root can write to any "
                                    "device that it can open, in spite of \"readOnly\"");
        if (device->read_only && !request->read_only)
                return fail_because(error, EROFS, "find device", device->path, "the device is read-only");
        /* two writers would destroy its content */
        return request->read_only ? 0 : block_device_check_unused(device, error);
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
        if (mknodat(AT_FDCWD, "node", S_IFBLK | job->mode, (dev_t)job->injection->device.number) < 0)
                return fail(error, errno, "mknod", job->injection->device.path);
        fd = open_tree(AT_FDCWD, "node", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return fd < 0 ? fail(error, errno, "open_tree", "a device node") : fd;
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
        int r = container_root_ids(injection->container, &job.uid, &job.gid, error);

        (void)owned; /* never true: not ownable */
        if (r < 0)
                return r;
        if (read_only)
                job.uid = 0;
        injection->mount_fd = sealed_child_run(make_in_child, &job, NULL, 0, error);
        if (injection->mount_fd < 0)
                return injection->mount_fd;
        (void)text_copy(injection->fs_type, sizeof injection->fs_type, "raw");
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, "none");
        return raw_grant_prepare(&injection->session->state, injection->container, &injection->record,
                                 injection->device.number, !read_only, error);
}

static int allow_device(struct injection *injection, struct error *error)
{
        injection->device_allowed = true; /* from here on it may be allowed */
        return raw_grant_settle(&injection->session->state, injection->container, &injection->record,
                                /* included= */ true, error);
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

        if (!injection->device_allowed)
                return 0;
        if (injection->replacing && injection->replaced.raw_device != 0) {
                /* the mount that was to be replaced stays, with its device */
                r = raw_grant_settle(state, injection->container, &injection->replaced, /* included= */ true, error);
                if (r < 0 || injection->replaced.raw_device == injection->record.raw_device)
                        return r;
        }
        return raw_grant_settle(&injection->session->state, injection->container, &injection->record,
                                /* included= */ false, error);
}

static int check_policy(const struct request *request, const struct policy *policy, struct error *error)
{
        (void)request;
        return policy_says(policy, "raw") ? 0 : policy_forbid(policy, "true", "raw", error);
}

const struct source_kind source_raw = {
        .word = "block",
        .request = REQUEST_MOUNT_BLOCK,
        .maps = true,
        .open_step = STEP_FIND_DEVICE,
        .make_step = STEP_MAKE_NODE,
        .check_policy = check_policy,
        .open = find_device,
        .make = make_node,
        .allow = allow_device,
        .settle = settle_replaced,
        .undo = forbid_device,
};
