/* SPDX-License-Identifier: Apache-2.0 */
/* kind_block.c - a block device of the node. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "process/log.h"
#include "volume/call.h"
#include "volume/device_filesystem.h"
#include "volume/kind.h"
#include "volume/mount_dir.h"
#include "volume/provisioned.h"

/* The source in the options, else the record's. */
static int source_of(const struct volume_call *call, const char **ret_source, struct error *error)
{
        int r;

        if ((r = volume_request_option(call->request, "source", ret_source, error)) < 0 ||
            (*ret_source == NULL && (r = volume_request_option(call->request, "device", ret_source, error)) < 0))
                return r;
        if (*ret_source == NULL && call->recorded)
                *ret_source = call->record.source;
        if (*ret_source == NULL)
                return fail_because(error, EINVAL, OPERATION_FIND_DEVICE, call->request->name,
                                    "the volume has no \"source\"; set it to a device's path, UUID= or LABEL=");
        if ((*ret_source)[0] != '/' && strchr(*ret_source, '=') == NULL)
                return fail_because(error, EINVAL, OPERATION_FIND_DEVICE, *ret_source,
                                    "\"%.200s\" is neither an absolute path nor UUID=, LABEL=, PARTUUID= or PARTLABEL=",
                                    *ret_source);
        return 0;
}

static int names_other(struct volume_call *call, char *ret_named, struct error *error)
{
        struct block_device device;
        struct error ignored;
        const char *source;
        int r = source_of(call, &source, error);

        if (r < 0)
                return r;
        (void)text_copy(ret_named, PATH_MAX, source);
        /* what had this label or path when it was attached is the volume, whatever has it now */
        if (strcmp(source, call->record.source) == 0)
                return 0;
        return block_device_find(source, &device, &ignored) < 0 || device.number != call->record.device_number;
}

static int look(struct volume_call *call, struct error *error)
{
        struct block_device device;

        if (!call->recorded || call->record.device[0] == '\0')
                return 0;
        return block_device_find(call->record.device, &device, error) == 0 &&
               device.number == call->record.device_number;
}

static int attach(struct volume_call *call, struct error *error)
{
        struct block_device device;
        const char *source;
        int r;

        if ((r = source_of(call, &source, error)) < 0)
                return r;
        /* a mounted volume keeps its device: another may have the same label by now */
        if (call->recorded && look(call, error) > 0 && mount_dir_is_staged(call))
                return 0;
        if ((r = volume_device_wait_for(source, call->config.device_seconds, &device, error)) < 0 ||
            (r = block_device_check_node(&device, error)) < 0 ||
            (r = policy_check_device(&call->policy, source, device.path, error)) < 0 ||
            (r = provisioned_check_device(call, &device, error)) < 0)
                return r;
        if (call->recorded && call->record.device_number == device.number &&
            strcmp(call->record.device, device.path) == 0 && volume_device_was_checked(call))
                return 0;
        if (call->recorded && strcmp(source, call->record.source) != 0)
                volume_call_forget_source(call);
        volume_call_init_record(call);
        if ((r = volume_device_check_alone(call, &device, error)) < 0)
                return r;
        if (device.read_only && !call->request->read_only)
                return fail_because(error, EROFS, OPERATION_FIND_DEVICE, source, "the device %s is read-only",
                                    device.path);
        (void)text_copy(call->record.source, sizeof call->record.source, source);
        (void)text_copy(call->record.device, sizeof call->record.device, device.path);
        call->record.device_number = device.number;
        call->record.read_only = call->request->read_only;
        return volume_call_save(call, FILE_DURABLE, error);
}

/* Nothing: the device was there before. */
static int detach(struct volume_call *call, struct error *error)
{
        (void)call;
        (void)error;
        return 0;
}

/* The kernel reuses device numbers, but within a boot no disk sequence number (BLKGETDISKSEQ, Linux 5.15). */
static int identify(const struct volume_call *call, char *ret_identity, struct error *error)
{
        struct block_device device;
        uint64_t sequence;
        int r;

        volume_call_device(call, &device);
        r = block_device_sequence(&device, &sequence, error);
        if (r < 0 && r != -ENOTTY)
                return r;
        if (r < 0) /* of no other call: what was broken off stays */
                (void)snprintf(ret_identity, VOLUME_IDENTITY_SIZE, "%s:at %lld", call->boot_id,
                               (long long)clock_now_ms());
        else
                (void)snprintf(ret_identity, VOLUME_IDENTITY_SIZE, "%s:%llu", call->boot_id,
                               (unsigned long long)sequence);
        return 0;
}

static int predict(struct volume_call *call, struct error *error)
{
        static const struct {
                const char *tag;
                const char *directory;
        } links[] = {
                { "UUID=", "/dev/disk/by-uuid/" },
                { "LABEL=", "/dev/disk/by-label/" },
                { "PARTUUID=", "/dev/disk/by-partuuid/" },
                { "PARTLABEL=", "/dev/disk/by-partlabel/" },
        };
        const char *source;
        int r = source_of(call, &source, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
                if (text_starts(source, links[i].tag)) {
                        (void)snprintf(call->record.device, sizeof call->record.device, "%s%.255s", links[i].directory,
                                       source + strlen(links[i].tag));
                        return 0;
                }
        (void)text_copy(call->record.device, sizeof call->record.device, source);
        return 0;
}

/* The device grows by other means, as a storage array or a partition table; only the result is checked here. */
static int grow(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error)
{
        struct block_device device;
        int r = look(call, error);

        if (r == 0) { /* it is on another node */
                *ret_size_bytes = size_bytes;
                return 0;
        }
        if (r < 0)
                return r;
        volume_call_device(call, &device);
        if ((r = block_device_size(&device, ret_size_bytes, error)) < 0)
                return r;
        if (*ret_size_bytes < size_bytes)
                return fail_because(error, ENOSPC, "grow device", device.path,
                                    "the device %s has only %llu bytes; grow the device itself first", device.path,
                                    (unsigned long long)*ret_size_bytes);
        return 0;
}

static const struct volume_option options[] = {
        { .key = "source", .help = "path in /dev, or UUID=, LABEL=, PARTUUID=, PARTLABEL=" },
        { .key = "device", .help = "the same as \"source\"" },
        {},
};

const struct volume_kind kind_block = { VOLUME_KIND(block),  .options = options,        .hints = block_hints,
                                        .node_device = true, .attach = attach,          .look = look,
                                        .detach = detach,    .identify = identify,      .predict = predict,
                                        .grow = grow,        .names_other = names_other };
