/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "block/device.h"
#include "mount/detached.h"
#include "mount/on_node.h"
#include "mount/superblock.h"
#include "process/log.h"
#include "state/access.h"
#include "volume/choose.h"
#include "volume/device_filesystem.h"
#include "volume/exec_helpers.h"
#include "volume/kinds.h"
#include "volume/mappable.h"
#include "volume/mappable_exchange.h"
#include "volume/mount_dir.h"
#include "volume/pod_device.h"
#include "volume/provisioned.h"
#include "volume/same.h"
#include "volume/sighting.h"
#include "volume/used.h"

/* Where it is staged, by the record, or where there is none by mountinfo. Gives PATH_MAX bytes. */
static int find_staged(struct volume_call *call, char *ret_dir, struct error *error)
{
        int r;

        if (mount_dir_is_staged(call)) {
                (void)text_copy(ret_dir, PATH_MAX, call->record.staged.dir); /* as long at most */
                return 0;
        }
        r = mount_dir_find(call, ret_dir, error);
        if (r != -ENOENT)
                return r;
        return fail_because(error, ENODEV, "mount", call->request->dir,
                            "the volume is not staged on this node; call mountdevice first");
}

/* It was staged for a pod that reads, and did not grow; this one writes. */
static int let_write(struct volume_call *call, const char *dir, struct error *error)
{
        const bool grows = provisioned_grows(call) && volume_exec_helpers_suffice(VOLUME_RUNS_FS_TOOLS);
        struct block_device device;
        int r;

        volume_call_device(call, &device);
        if ((grows && (r = provisioned_hold(call, error)) < 0) ||
            (call->kind->has_device && !call->kind->has_image &&
             (r = volume_device_check_others(call, &device, error)) < 0) ||
            (r = superblock_allow_writing(dir, error)) < 0)
                return r;
        call->record.read_only = false;
        if (grows && provisioned_grows(call)) /* still, with the lock */
                device_filesystem_grow_copy(call, dir);
        return 0;
}

static int clone_staged(struct volume_call *call, struct error *error)
{
        cleanup_close int staged_fd = -EBADF;
        char dir[PATH_MAX];
        int r;

        if ((r = find_staged(call, dir, error)) < 0)
                return r;
        if (call->record.read_only && !call->request->read_only && (r = let_write(call, dir, error)) < 0)
                return r;
        staged_fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (staged_fd < 0)
                return fail(error, errno, "open", dir);
        return detached_mount_clone(staged_fd, dir, /* recursive= */ false, error);
}

static int make(struct volume_call *call, struct error *error)
{
        return call->kind->has_device ? clone_staged(call, error) : call->kind->make(call, error);
}

static int make_own(struct volume_call *call, const struct mount_attributes *attributes, struct error *error)
{
        cleanup_close int mount_fd = make(call, error);
        int r;

        if (mount_fd < 0)
                return mount_fd;
        r = detached_mount_set(mount_fd, call->request->dir, attributes, /* user_ns_fd= */ -1, error);
        return r < 0 ? r : fd_take(&mount_fd);
}

static int make_mount(struct volume_call *call, struct volume_served *ret_served, struct error *error)
{
        const struct mount_options *options = &call->request->mount_options;
        /* as it was asked for: an ephemeral volume that an earlier version mounted for writing stays so */
        const bool read_only = call->request->read_only;
        cleanup_close int mount_fd = make(call, error);
        struct mount_attributes attributes;
        int r;

        if (mount_fd < 0)
                return mount_fd;
        /* what the profile of an ephemeral volume says of them, make() has found out */
        attributes = (struct mount_attributes){
                .set = (options->attr_set & ~(uint64_t)MOUNT_ATTR_RDONLY) | (read_only ? MOUNT_ATTR_RDONLY : 0),
                /* a pod's "rw" takes "ro" off no mount that a clone is of */
                .clear = options->attr_clear & ~(uint64_t)MOUNT_ATTR_RDONLY,
                .propagation = (uint64_t)options->propagation,
                .recursive = !call->kind->has_device,
        };
        r = detached_mount_set(mount_fd, call->request->dir, &attributes, /* user_ns_fd= */ -1, error);
        if (r == 0)
                r = volume_mappable_serve(call, &attributes, make_own, &mount_fd, ret_served, error);
        return r < 0 ? r : fd_take(&mount_fd);
}

/* What is already mounted on the directory: 1 this volume, 0 nothing. */
static int look(struct volume_call *call, unsigned *ret_made, struct error *error)
{
        const char *dir = call->request->dir;
        struct mount_dir *place = call->recorded ? volume_record_mount_dir(&call->record, dir) : NULL;
        int r = mount_dir_look(call, dir, ret_made, error);
        int served;

        if (r == MOUNT_DIR_OURS && place != NULL && (served = volume_mappable_settle(call, place, error)) < 0 &&
            served != -EBUSY) /* the pod has the volume still */
                return served;
        if (r < 0)
                return r;
        if (r == MOUNT_DIR_OURS && place != NULL && (served = volume_mappable_check(call, place, error)) < 0) {
                bool lazy;

                if (served != -ENOTCONN)
                        return served;
                log_say("%s", error_why(error));
                if ((r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ true, &lazy, error)) < 0)
                        return r;
                r = MOUNT_DIR_BARE; /* it is mounted anew */
        }
        if (r == MOUNT_DIR_OURS && place != NULL && place->read_only != call->request->read_only &&
            mount_dir_reads_only(dir) != call->request->read_only)
                return fail_because(error, EEXIST, "mount", dir, "the volume is mounted there %s; unmount it first",
                                    place->read_only ? "read-only" : "for writing");
        if (r == MOUNT_DIR_OURS) {
                r = place != NULL ? 0 : mount_dir_adopt(call, dir, /* staged= */ false, error);
                return r < 0 ? r : 1;
        }
        if (r == MOUNT_DIR_TAKEN)
                return fail_because(error, EBUSY, "mount", dir, "something else is mounted on %s; unmount it first",
                                    dir);
        if (place != NULL) { /* a call was killed; the directories that it made are removed with the mount */
                if (place->made > *ret_made)
                        *ret_made = place->made;
                if (!call->request->block) /* else the pod may have its device still */
                        volume_record_forget(&call->record, dir);
        }
        return 0;
}

static int check_attached(struct volume_call *call, struct error *error)
{
        int r = call->kind->look(call, error);

        if (r < 0)
                return r;
        if (r == 0)
                return fail_because(error, ENODEV, "mount", call->request->dir,
                                    "the volume is not attached to this node; call attach and mountdevice first");
        if (call->recorded)
                return 0;
        /* its record was lost: attach finds the device, too, and begins one that says what it is of */
        return (r = provisioned_hold(call, error)) < 0 ? r : call->kind->attach(call, error);
}

/* Who may open a device's node writes to it, however it is mounted: a reader's device refuses that itself. */
static int clone_node(struct volume_call *call, struct pod_device *ret_device, struct error *error)
{
        const struct volume_record *record = &call->record;
        bool writes = !call->request->read_only && !access_reads_only(record->access_mode);
        struct block_device device;
        cleanup_close int fd = -EBADF;
        int r = block_device_find(record->device, &device, error);

        if (r < 0)
                return r;
        if (device.number != record->device_number)
                return fail_because(error, ESTALE, "open", device.path, "%s is another device by now", device.path);
        if (device.read_only && writes)
                return fail_because(error, EROFS, "mount", call->request->dir, "the device %s is read-only",
                                    record->device);
        /* an image has no device but this one */
        if (writes && !call->kind->has_image && (r = volume_device_check_alone(call, &device, error)) < 0)
                return r;
        fd = pod_device_make(call, writes, ret_device, error);
        if (fd < 0 || (r = pod_device_replace(call, ret_device, error)) < 0)
                return fd < 0 ? fd : r;
        return detached_mount_clone(fd, record->device, /* recursive= */ false, error);
}

/* The device's node must work as one: no nodev. */
static int publish_block(struct volume_call *call, struct error *error)
{
        const struct mount_attributes attributes = {
                .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | (call->request->read_only ? MOUNT_ATTR_RDONLY : 0),
                .propagation = MS_PRIVATE,
        };
        cleanup_pod_device struct pod_device device = POD_DEVICE_NONE;
        cleanup_close int mount_fd = -EBADF;
        unsigned made;
        int r;

        if (!call->kind->has_device || call->wrapper != NULL)
                return fail_because(error, EINVAL, "mount", call->request->dir,
                                    "volumes of type %s have no device for a pod", call->kind->word);
        if ((r = check_attached(call, error)) < 0 || (r = look(call, &made, error)) != 0)
                return r < 0 ? r : 0;
        if (!call->request->read_only && (r = volume_check_no_raw(call, "mount", error)) < 0)
                return r; /* as two containers may not write to it */
        mount_fd = clone_node(call, &device, error);
        if (mount_fd < 0)
                return mount_fd;
        if ((r = detached_mount_set(mount_fd, call->request->dir, &attributes, /* user_ns_fd= */ -1, error)) < 0)
                return r;
        return mount_dir_put(
                call,
                &(struct mount_dir_new){
                        .mount_fd = mount_fd, .made = made, .durability = FILE_ORDERED, .device = &device },
                error);
}

/*
 * A driver for all types has told kubelet that the files are a volume's own: it gives them to the pod's fsGroup next. Those of
 * a directory of the node, or of a server, are others' as well.
 */
static int check_group(const struct volume_call *call, struct error *error)
{
        const char *group;
        int r = volume_request_option(call->request, "kubernetes.io/mounterArgs.FsGroup", &group, error);

        if (r < 0 || group == NULL || call->kind->owned || call->request->read_only ||
            volume_kind_of_driver(call->driver) != NULL)
                return r;
        return fail_because(error, EPERM, "mount", call->request->dir,
                            "kubelet would give the volume's files, which are not its own, to the pod's fsGroup: use "
                            "a driver named %s, as flexgraft/%s, or mount it read-only",
                            call->kind->word, call->kind->word);
}

static int publish(struct volume_call *call, struct error *error)
{
        int r = volume_choose_open(call, error);

        if (r < 0 || (r = check_group(call, error)) < 0)
                return r;
        if ((r = volume_check_namespace(call, error)) < 0)
                return r;
        if (call->request->block)
                return publish_block(call, error);
        return call->wrapper != NULL ? call->wrapper->publish(call, error) : volume_publish_attached(call, error);
}

int volume_publish(struct volume_call *call, struct error *error)
{
        int r = publish(call, error);

        if (r < 0)
                sighting_forget(call); /* a pod is to have it: kubelet tries again, and does not stage it anew */
        return r;
}

int volume_publish_attached(struct volume_call *call, struct error *error)
{
        cleanup_close int mount_fd = -EBADF;
        struct volume_served served;
        unsigned made;
        int r;

        r = call->kind->has_device ? check_attached(call, error) : 0;
        if (!call->kind->has_device)
                volume_call_init_record(call);
        if (r < 0 || (r = look(call, &made, error)) < 0)
                return r;
        if (r > 0)
                return volume_mappable_again(call, volume_record_mount_dir(&call->record, call->request->dir), error);
        mount_fd = make_mount(call, &served, error);
        if (mount_fd < 0)
                return mount_fd;
        return mount_dir_put(call,
                             &(struct mount_dir_new){
                                     .mount_fd = mount_fd, .made = made, .durability = FILE_ORDERED, .served = served },
                             error);
}

/* What was made for a directory alone, which no record has: the directory tells of which kind it is. */
static int unmake_unrecorded(const struct volume_call *call, const char *dir, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->unmake != NULL)
                        r = volume_kinds[i]->unmake(call, dir, error);
        return r;
}

/*
 * What was made for a directory alone, without the lock: it is not the volume of other pods, though it has the name of
 * theirs, and none waits while it is overwritten. The record names the directory until then. Returns 1: a call has made
 * another for the directory meanwhile, which stays.
 */
static int unmake(struct volume_call *call, const char *dir, struct error *error)
{
        const struct volume_kind *kind = call->recorded ? volume_kind_find(call->record.kind) : NULL;
        int r;

        if (!call->recorded)
                return unmake_unrecorded(call, dir, error);
        if (kind == NULL || kind->unmake == NULL)
                return 0;
        state_release(&call->state);
        if ((r = kind->unmake(call, dir, error)) < 0)
                return r; /* still in the record, for the next call */
        volume_record_release(&call->record);
        call->recorded = false;
        if ((r = volume_call_open_dir(call, error)) < 0)
                return r;
        return kind->has_made(call->config.state_dir, dir);
}

/* For CSI, whose driver removes the directory, or the file, also where an earlier boot made it. kubelet does it for FlexVolume. */
static bool removes_dir(const struct volume_call *call)
{
        return call->request->verb == VERB_UNMOUNT && call->driver[0] == '\0';
}

/* The number is that of another filesystem next; while a container hides a mount, it still is this one's. */
static void forget_filesystem(struct volume_call *call)
{
        struct block_device device;
        struct error ignored;

        if (call->record.filesystem == 0 || call->record.staged.dir != NULL)
                return;
        volume_call_device(call, &device);
        if (block_device_check_unused(&device, &ignored) == 0)
                call->record.filesystem = 0;
}

int volume_unmount(struct volume_call *call, struct error *error)
{
        const char *dir = call->request->dir;
        struct mount_dir *place;
        bool lazy;
        int r;

        if ((r = volume_call_open_dir(call, error)) < 0)
                return r;
        r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ true, &lazy, error);
        if (r < 0)
                return r;
        call->was_unmounted = r == 0;
        place = call->recorded ? volume_record_mount_dir(&call->record, dir) : NULL;
        if (place != NULL && mount_dir_has(call, place))
                return fail_because(error, EBUSY, "unmount", dir,
                                    "it is mounted there still, below what is mounted on a directory above: unmount "
                                    "that first");
        if (lazy) {
                log_say("%s was busy or did not answer, and was detached lazily", dir);
                (void)snprintf(call->answer.message, sizeof call->answer.message,
                               "%.300s was busy or did not answer within %u s, and was detached lazily", dir,
                               call->config.unmount_seconds);
        }
        if (call->request->verb == VERB_UNMOUNT && (r = unmake(call, dir, error)) != 0)
                return r < 0 ? r : 0;
        if (removes_dir(call))
                mount_dir_unmake(dir, 1);
        place = call->recorded ? volume_record_mount_dir(&call->record, dir) : NULL; /* unmake() may have changed it */
        if (place != NULL && (r = pod_device_give_back(call, place, error)) < 0)
                return r;
        if (place != NULL) {
                mount_dir_unmake(dir, place->made);
                volume_record_forget(&call->record, dir);
                forget_filesystem(call);
        } else if (!call->recorded || volume_kind_has_device(call->record.kind))
                return 0;
        return mount_dir_save_unmounted(call, error);
}

int volume_unpublish(struct volume_call *call, struct error *error)
{
        return volume_unmount(call, error);
}

int volume_unwrap(struct volume_call *call, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->unstage != NULL)
                        r = volume_kinds[i]->unstage(call, error);
        return r;
}

int volume_unstage(struct volume_call *call, struct error *error)
{
        int r = volume_unmount(call, error);

        return r < 0 ? r : volume_unwrap(call, error);
}
