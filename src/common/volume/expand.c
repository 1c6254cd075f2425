/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volume.h"

#include <errno.h>
#include <string.h>

#include "block/filesystem.h"
#include "provision/provision.h"
#include "state/access.h"
#include "volume/choose.h"
#include "volume/kata_image.h"
#include "volume/kinds.h"
#include "volume/mount_dir.h"
#include "volume/pod_device.h"
#include "volume/provisioned.h"
#include "volume/same.h"
#include "volume/used.h"

static int grow(void *argument, uint64_t *ret_size_bytes, struct error *error)
{
        struct volume_call *call = argument;
        int r = call->kind->grow(call, call->request->new_size_bytes, ret_size_bytes, error);

        call->answer.new_size_bytes = r < 0 ? 0 : *ret_size_bytes;
        return r < 0 ? r : pod_device_grow(call, error);
}

/*
 * Adds to the options what the record says of an image's blocks. Gives: ret_provisioned, whether a record has to have the
 * new size; ret_block, whether no filesystem is to be on it.
 */
static void look_up(const struct volume_call *call, bool *ret_provisioned, bool *ret_block)
{
        cleanup_provision_record struct provision_record record = {};
        struct error ignored;

        *ret_provisioned = call->kind->pool_types != NULL &&
                           provision_record_find(call->config.state_dir, call->request->name, &record, &ignored) == 0 &&
                           provisioned_is_own(call, &record);
        if (*ret_provisioned)
                provisioned_keep_parameters(call->request->options, &record);
        *ret_block = *ret_provisioned && access_is_block(record.target_type);
}

static int grow_provisioned(struct volume_call *call, struct error *error)
{
        struct provision_growth growth = { .size_bytes = call->request->new_size_bytes };
        int r = volume_kind_flag(call->request, call->kind->allocates, &growth.preallocate, error);

        return r < 0 ? r : provision_grow(&call->config, call->request->name, &growth, grow, call, error);
}

/* What is in an image for virtual machines only the machine could grow. */
static int is_for_machines(const struct volume_call *call, struct error *error)
{
        const struct volume_kind *wrapper = NULL;
        int r = volume_kind_wrapper(call->request, call->kind, &wrapper, error);

        return r < 0 ? r : wrapper != NULL;
}

/* Returns 1: nothing grows, as expandvolume has said. */
static int grow_device(struct volume_call *call, struct error *error)
{
        bool provisioned;
        bool block;
        int r;

        if ((r = volume_call_open(call, error)) < 0 || (r = volume_choose_kind(call, error)) < 0 ||
            (r = volume_call_load_policy(call, error)) < 0)
                return r;
        look_up(call, &provisioned, &block);
        if (call->recorded && ((r = volume_check_same(call, error)) < 0 ||
                               (r = block ? 0 : volume_check_no_raw(call, "grow volume", error)) < 0))
                return r;
        if (call->kind->grow == NULL && call->request->verb == VERB_EXPANDFS)
                return 1; /* as below: kubelet asks when only the PersistentVolume says another size */
        if ((r = volume_choose_growing(call, error)) < 0 || (r = is_for_machines(call, error)) < 0)
                return r;
        if (r > 0 && call->request->verb == VERB_EXPANDFS)
                return 1; /* kubelet starts no pod after a failure */
        if (r > 0)
                return kata_image_refuse("grow volume", call->request->name, error);
        if (provisioned)
                return grow_provisioned(call, error);
        r = call->recorded ? 0 : provisioned_hold(call, error); /* attach has seen whose the disk is */
        return r < 0 ? r : grow(call, &call->answer.new_size_bytes, error);
}

int volume_expand(struct volume_call *call, struct error *error)
{
        int r = grow_device(call, error);

        return r < 0 ? r : 0;
}

int volume_expand_fs(struct volume_call *call, struct error *error)
{
        char type[FILESYSTEM_TYPE_SIZE];
        struct block_device device;
        unsigned ignored;
        int r;

        if ((r = grow_device(call, error)) != 0 || !call->kind->has_device)
                return r < 0 ? r : 0;
        r = mount_dir_look(call, call->request->dir, &ignored, error);
        if (r < 0)
                return r;
        if (r != MOUNT_DIR_OURS)
                return fail_because(error, ENODEV, "grow filesystem", call->request->dir,
                                    "the volume is not mounted on %s; call mountdevice first", call->request->dir);
        volume_call_device(call, &device);
        if ((r = block_device_fs_type(&device, type, error)) < 0)
                return r;
        return filesystem_grow(&device, type, call->request->dir, call->config.command_seconds, error);
}
