/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/provision.h"
#include "provision/reply_object.h"
#include "state/access.h"
#include "volume/choose.h"
#include "volume/device_filesystem.h"
#include "volume/kata_image.h"
#include "volume/kinds.h"
#include "volume/mount_dir.h"
#include "volume/pod_device.h"
#include "volume/provisioned.h"
#include "volume/used.h"

static uint64_t limit_bytes; /* of the request */
static uint64_t size_before;
static char grown_type[FILESYSTEM_TYPE_SIZE]; /* "": it has no filesystem */
static json_t *described;                     /* the volume, as it is then; owned */

static int fail_read_only(const char *where, struct error *error)
{
        return fail_because(error, EBUSY, "grow filesystem", where,
                            "it is mounted read-only; unmount it, or mount it for writing");
}

static int grow_device(void *argument, uint64_t *ret_size_bytes, struct error *error)
{
        struct volume_call *call = argument;

        return call->kind->grow(call, call->request->new_size_bytes, ret_size_bytes, error);
}

/* What is in an image for virtual machines only the machine could grow. */
static bool is_for_machines(const struct provision_record *made)
{
        return made->has_kata_image || pool_parameter_flag(made->parameters, POOL_FOR_MACHINES, false);
}

static int choose(struct volume_call *call, const struct provision_record *made, struct error *error)
{
        struct volume_request *request = call->request;
        int r;

        if (is_for_machines(made))
                return kata_image_refuse("grow volume", request->name, error);
        if (json_object_set_new(request->options, "type", json_string(made->pool_type)) < 0)
                return fail(error, ENOMEM, "grow volume", request->name);
        if ((r = volume_choose_kind(call, error)) < 0 || (r = volume_choose_growing(call, error)) < 0)
                return r;
        if (call->recorded && call->record.source[0] != '\0' && !provisioned_is_own(call, made))
                return fail_because(error, EBUSY, "grow volume", request->name,
                                    "%.1000s is attached under this name, which is another disk than the volume's; "
                                    "detach it first",
                                    call->record.source);
        provisioned_keep_parameters(request->options, made);
        return 0;
}

/* One superblock serves all mounts of a device: a mount of ours, which nobody sees, reaches that of a container, too. */
static int grow_on(struct volume_call *call, const struct block_device *device, struct error *error)
{
        cleanup_close int mount_fd = -EBADF;
        cleanup_close int dir_fd = -EBADF;
        int r = block_device_fs_type(device, grown_type, error);

        if (r < 0) {
                grown_type[0] = '\0';
                return r == -ENODATA ? 0 : r;
        }
        if ((r = block_device_check_unused(device, error)) == 0)
                r = filesystem_repair(device, grown_type, call->config.command_seconds, error);
        if (r < 0 && r != -EBUSY)
                return r;
        mount_fd = device_filesystem_reach(call, device, grown_type, error);
        if (mount_fd == -EBUSY)
                return fail_read_only(device->path, error);
        if (mount_fd < 0)
                return mount_fd;
        dir_fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return fail(error, errno, "open", device->path);
        return filesystem_grow_mounted(device, grown_type, dir_fd, error);
}

/* Attached for the length of this call. Where that needs a record, volume-reconcile detaches what a killed call left. */
static int grow_unattached(struct volume_call *call, struct error *error)
{
        cleanup_close int held_fd = -EBADF;
        struct block_device device;
        struct error ignored;
        int r;

        if (call->kind->attach_held != NULL) {
                held_fd = call->kind->attach_held(call, error);
                if (held_fd < 0)
                        return held_fd;
                volume_call_device(call, &device);
                return grow_on(call, &device, error);
        }
        if ((r = call->kind->attach(call, error)) < 0)
                return r;
        volume_call_device(call, &device);
        if ((r = grow_on(call, &device, error)) < 0) {
                if (call->kind->detach(call, &ignored) == 0) /* the first failure is the one to report */
                        (void)volume_call_remove_record(call, &ignored);
                return r;
        }
        r = call->kind->detach(call, error);
        return r < 0 ? r : volume_call_remove_record(call, error);
}

static int grow_filesystem(struct volume_call *call, struct error *error)
{
        struct block_device device;
        int r = call->kind->look(call, error);

        if (r < 0)
                return r;
        /* an unfinished one is made anew when the volume is mounted */
        if (call->record.formatting[0] != '\0')
                return 0;
        if (r == 0)
                return grow_unattached(call, error);
        volume_call_device(call, &device);
        return grow_on(call, &device, error);
}

static int grow_handed_out(struct volume_call *call, struct error *error)
{
        int r = call->kind->look(call, error);

        return r <= 0 ? r : pod_device_grow(call, error);
}

static int expand(struct volume_call *call, struct error *error)
{
        const struct volume_request *request = call->request;
        cleanup_provision_record struct provision_record made = {};
        struct provision_growth growth = { .size_bytes = request->new_size_bytes,
                                           .limit_bytes = limit_bytes,
                                           .asked = true };
        bool block;
        int r = volume_call_open(call, error);

        if (r < 0)
                return r;
        r = provision_record_find(call->config.state_dir, request->name, &made, error);
        if (r < 0)
                return r == -ENOENT ? provision_fail_absent("find volume", request->name, error) : r;
        block = access_is_block(made.target_type);
        size_before = made.size_bytes;
        if ((r = choose(call, &made, error)) < 0 ||
            (r = volume_kind_flag(request, call->kind->allocates, &growth.preallocate, error)) < 0)
                return r;
        if (call->recorded && !block && (r = volume_check_no_raw(call, "grow volume", error)) < 0)
                return r;
        /* btrfs would make a filesystem writable that others have mounted read-only */
        if (call->recorded && call->record.read_only && mount_dir_is_staged(call))
                return fail_read_only(call->record.staged.dir, error);
        if ((r = provision_grow(&call->config, request->name, &growth, grow_device, call, error)) < 0 ||
            !call->kind->has_device || (r = grow_handed_out(call, error)) < 0 || block)
                return r;
        /* until it is grown, nobody deletes it */
        return (r = provisioned_hold(call, error)) < 0 ? r : grow_filesystem(call, error);
}

/* While there are exec helpers, which the pool may need. */
static int run(struct volume_call *call, struct error *error)
{
        int r = expand(call, error);

        return r < 0 ? r : provision_describe(&call->config, call->request->name, &described, error);
}

int volume_expand_named(const struct provision_request *request, json_t **ret_reply, struct error *error)
{
        static struct volume_request wanted;
        static struct volume_call call;
        int r;

        *ret_reply = NULL;
        wanted.verb = VERB_EXPANDFS;
        wanted.new_size_bytes = request->size_bytes;
        limit_bytes = request->limit_bytes;
        (void)text_copy(wanted.name, sizeof wanted.name, request->name); /* shorter */
        call.request = &wanted;
        call.state = (struct state)STATE_NONE;
        call.provisioned = (struct state)STATE_NONE;
        r = config_load(&call.config, error);
        log_begin("volume-expand", r == 0 ? call.config.log : "syslog");
        if (r < 0)
                return r;
        wanted.options = json_object();
        r = volume_call_run(&call, run, error);
        json_decref(wanted.options);
        if (r < 0)
                return r;
        *ret_reply = provision_object_done(
                PROVISION_EXPAND,
                &(struct provision_done){ .volume = described, .size_before = size_before, .filesystem = grown_type });
        return 0;
}
