/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_lvm.c - a logical volume: activated by attach, deactivated by detach, and never made here.
 *
 * "volumegroup" and "volumeID" as in Kubernetes' example driver; or "pool", of type lvm; without either, the volume that
 * volume-create made or adopted under this name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "block/lvm.h"
#include "pool/pool.h"
#include "pool/pool_lvm.h"
#include "process/log.h"
#include "volume/call.h"
#include "volume/device_filesystem.h"
#include "volume/kind.h"
#include "volume/mount_dir.h"
#include "volume/provisioned.h"

#define LOOKED_AT_TRIES 10
#define LOOKED_AT_WAIT_MS 50

struct names {
        char group[LVM_NAME_MAX];
        char volume[LVM_NAME_MAX];
};

static bool take(char *destination, const char *name)
{
        return lvm_name_is_valid(name) && text_copy(destination, LVM_NAME_MAX, name);
}

/* "/dev/GROUP/VOLUME", as lvm_path() makes it. */
static bool take_path(const char *path, struct names *ret_names)
{
        const char *slash = strrchr(path, '/');
        char group[PATH_MAX];

        if (!text_starts(path, "/dev/") || slash <= path + 5)
                return false;
        (void)snprintf(group, sizeof group, "%.*s", (int)(slash - path - 5), path + 5);
        return take(ret_names->group, group) && take(ret_names->volume, slash + 1);
}

/* The volume that volume-create made or adopted under this name. Errors: ENOENT, without a message. */
static int take_made(const struct volume_call *call, struct names *ret_names, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        struct pool pool;
        int r = provisioned_find(call, &kind_lvm, &record, error);

        if (r < 0)
                return r;
        if ((r = pool_find(&call->config, record.pool, &pool, error)) < 0)
                return r;
        return take(ret_names->group, pool.volume_group) && take(ret_names->volume, record.id) ? 0 : -ENOENT;
}

static int take_group_of(const struct volume_call *call, const char *name, struct names *ret_names, struct error *error)
{
        struct pool pool;
        int r = pool_find(&call->config, name, &pool, error);

        if (r == 0 && !take(ret_names->group, pool.volume_group))
                return fail_because(error, EINVAL, "find volume", name, "the pool \"%.128s\" has no volume group",
                                    name);
        return r;
}

static int names_of(const struct volume_call *call, struct names *ret_names, struct error *error)
{
        const char *group;
        const char *volume;
        const char *pool;
        int r;

        if ((r = volume_request_option(call->request, "volumegroup", &group, error)) < 0 ||
            (r = volume_request_option(call->request, "volumeID", &volume, error)) < 0 ||
            (r = volume_request_option(call->request, "pool", &pool, error)) < 0)
                return r;
        if (group == NULL && pool == NULL && volume == NULL) {
                if (call->recorded && take_path(call->record.source, ret_names))
                        return 0;
                r = take_made(call, ret_names, error);
                return r == -ENOENT ? fail_because(error, EINVAL, "find volume", call->request->name,
                                                   "the volume has no \"volumegroup\" and \"volumeID\", and "
                                                   "volume-create has made none of this name; do either")
                                    : r;
        }
        if (group == NULL && (r = take_group_of(call, pool != NULL ? pool : POOL_DEFAULT, ret_names, error)) < 0)
                return r;
        if (group != NULL && !take(ret_names->group, group))
                return fail_because(error, EINVAL, "find volume", group, "\"%.200s\" is not a volume group's name",
                                    group);
        if (!take(ret_names->volume, volume != NULL ? volume : call->request->name))
                return fail_because(error, EINVAL, "find volume", call->request->name,
                                    "\"%.200s\" is not a logical volume's name",
                                    volume != NULL ? volume : call->request->name);
        return 0;
}

static int names_other(struct volume_call *call, char *ret_named, struct error *error)
{
        static struct volume_call anew;
        struct error ignored;
        struct names names;
        int r;

        anew = *call;
        anew.recorded = false;
        if (!provisioned_is_by_name(call) || json_object_get(call->request->options, "pool") != NULL) {
                if ((r = names_of(&anew, &names, error)) < 0)
                        return r;
        } else if ((call->request->verb != VERB_MOUNTDEVICE && call->request->verb != VERB_MOUNT) ||
                   take_made(&anew, &names, &ignored) < 0)
                return 0; /* no options, or none of a volume that was made: they name nothing */
        lvm_path(names.group, names.volume, ret_named);
        return strcmp(ret_named, call->record.source) != 0;
}

static int look(struct volume_call *call, struct error *error)
{
        struct block_device device;

        if (!call->recorded || call->record.device[0] == '\0')
                return 0;
        return block_device_find(call->record.source, &device, error) == 0 &&
               device.number == call->record.device_number;
}

/* names: of a volume that is active. */
static int use_device(struct volume_call *call, const struct names *names, struct error *error)
{
        struct block_device device;
        int r;

        if ((r = volume_device_wait_for(call->record.source, call->config.device_seconds, &device, error)) < 0 ||
            (r = lvm_find_device(names->group, names->volume, &device, error)) < 0 ||
            (r = volume_device_check_alone(call, &device, error)) < 0)
                return r;
        if (device.read_only && !call->request->read_only)
                return fail_because(error, EROFS, OPERATION_FIND_DEVICE, device.path, "the device %s is read-only",
                                    device.path);
        (void)text_copy(call->record.device, sizeof call->record.device, device.path);
        call->record.device_number = device.number;
        call->record.read_only = call->request->read_only;
        return volume_call_save(call, FILE_DURABLE, error);
}

/* The group is missing, the volume is lost, or it never was. */
static int tell_missing(const struct volume_call *call, const struct names *names, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        struct lvm_group group;
        int r = lvm_find_group(names->group, &group, error);

        if (r < 0)
                return r;
        r = provisioned_find_own(call, &made, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0)
                return fail_because(error, ENODATA, OPERATION_FIND_CONTENT, names->volume,
                                    "the volume is lost: there is no logical volume %s/%s any more", names->group,
                                    names->volume);
        return fail_because(error, ENOENT, "find volume", names->volume,
                            "there is no logical volume %s/%s; make one with volume-create", names->group,
                            names->volume);
}

static int activate(struct volume_call *call, const struct names *names, struct error *error)
{
        struct lvm_volume volume = {};
        uint64_t least_bytes;
        int r = volume_request_size(call->request, "size", &least_bytes, error);

        if (r == 0)
                r = lvm_find(names->group, names->volume, &volume, error);
        if (r == -ENOENT)
                return tell_missing(call, names, error);
        if (r < 0 || (r = provisioned_check_identity(call, volume.uuid, error)) < 0)
                return r;
        if (volume.size_bytes < least_bytes)
                return fail_because(error, ENOSPC, "find volume", names->volume,
                                    "the logical volume %s/%s has %llu bytes, and \"size\" says %llu", names->group,
                                    names->volume, (unsigned long long)volume.size_bytes,
                                    (unsigned long long)least_bytes);
        if (!volume.public || strcmp(volume.type, "thin-pool") == 0)
                return fail_because(error, EINVAL, "find volume", names->volume,
                                    "the logical volume %s/%s is a part of another and cannot be used itself",
                                    names->group, names->volume);
        if (!volume.active && (r = lvm_activate(names->group, &volume, error)) < 0)
                return r;
        r = use_device(call, names, error);
        if (r < 0 && !volume.active) {
                struct error ignored; /* the first failure is the one to report */

                (void)lvm_deactivate(names->group, names->volume, &ignored);
        }
        return r;
}

/* Whether a volume may have what its options name, which may be another's. After provisioned_hold(). */
static int check_allowed(const struct volume_call *call, const struct names *names, struct error *error)
{
        char path[PATH_MAX];
        int r;

        if (text_starts(names->volume, POOL_LVM_RESTORED))
                return fail_because(error, EINVAL, "find volume", names->volume,
                                    "it is what a volume is restored to, and has another name then");
        lvm_path(names->group, names->volume, path);
        if ((r = policy_check_device(&call->policy, /* source= */ NULL, path, error)) < 0)
                return r;
        return provisioned_check_disk(call, /* pool= */ NULL, names->group, names->volume, error);
}

static int attach(struct volume_call *call, struct error *error)
{
        struct names names;
        struct error ignored;
        char path[PATH_MAX];
        bool was_recorded = call->recorded;
        int r;

        if (look(call, &ignored) > 0 && mount_dir_is_staged(call))
                return 0;
        if ((r = names_of(call, &names, error)) < 0 || (r = check_allowed(call, &names, error)) < 0)
                return r;
        lvm_path(names.group, names.volume, path);
        if (look(call, &ignored) > 0 && strcmp(call->record.source, path) == 0 && volume_device_was_checked(call))
                return 0;
        if (call->recorded && strcmp(call->record.source, path) != 0) /* a new one has what this call has put there */
                volume_call_forget_source(call);
        volume_call_init_record(call);
        call->record.device[0] = '\0';
        (void)text_copy(call->record.source, sizeof call->record.source, path);
        if ((r = volume_call_save(call, FILE_DURABLE, error)) < 0)
                return r;
        r = activate(call, &names, error);
        if (r < 0 && !was_recorded)
                (void)volume_call_remove_record(call, &ignored); /* the first failure is the one to report */
        return r;
}

/* Open, and neither mounted nor opened exclusively, as by udev after each process that had it open for writing. */
static bool is_looked_at(const struct names *names, const struct lvm_volume *volume)
{
        struct block_device device;
        struct error ignored;

        return volume->open && lvm_find_device(names->group, names->volume, &device, &ignored) == 0 &&
               block_device_check_unused(&device, &ignored) == 0;
}

static int detach(struct volume_call *call, struct error *error)
{
        struct lvm_volume volume;
        struct names names;
        int r;

        if (!take_path(call->record.source, &names))
                return 0;
        r = lvm_find(names.group, names.volume, &volume, error);
        for (int i = 0; r == 0 && i < LOOKED_AT_TRIES && is_looked_at(&names, &volume); i++) {
                clock_pause_ms(LOOKED_AT_WAIT_MS);
                lvm_outdate();
                r = lvm_find(names.group, names.volume, &volume, error);
        }
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.open)
                return fail_because(error, EBUSY, "detach", call->record.source, "%s is still in use; unmount it first",
                                    call->record.source);
        if (!volume.active)
                return 0;
        return lvm_deactivate(names.group, names.volume, error);
}

/* The device mapper's uuid, made of those of the group and the volume. */
static int identify(const struct volume_call *call, char *ret_identity, struct error *error)
{
        int r = block_device_attribute(call->record.device_number, "dm/uuid", ret_identity, VOLUME_IDENTITY_SIZE);

        return r < 0 ? fail(error, -r, "read dm/uuid", call->record.device) : 0;
}

/* The other node has the pool's file and the volume's record; this one need not. What is wrong waitforattach tells there. */
static int predict(struct volume_call *call, struct error *error)
{
        struct names names;
        struct error ignored;

        (void)error;
        if (names_of(call, &names, &ignored) == 0)
                lvm_path(names.group, names.volume, call->record.device);
        return 0;
}

static int grow(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error)
{
        struct lvm_volume volume;
        struct names names;
        int r;

        if ((r = names_of(call, &names, error)) < 0)
                return r;
        r = lvm_find(names.group, names.volume, &volume, error);
        if (r == -ENOENT) { /* it is on another node, where expandfs grows it */
                *ret_size_bytes = size_bytes;
                return 0;
        }
        if (r < 0 || (r = call->recorded ? 0 : check_allowed(call, &names, error)) < 0)
                return r;
        /* lvm may have been killed when it had noted the size, and not let the volume go on */
        if ((r = lvm_go_on(names.group, &volume, error)) < 0)
                return r;
        if (volume.size_bytes < size_bytes && volume.has_snapshots && volume.active)
                return fail_because(
                        error, EBUSY, "grow volume", call->request->name,
                        "it has snapshots, and LVM lets it grow only while it is not attached: detach it, or "
                        "delete its snapshots");
        if (volume.size_bytes < size_bytes) {
                if ((r = lvm_extend(names.group, &volume, size_bytes, error)) < 0 ||
                    (r = lvm_find(names.group, names.volume, &volume, error)) < 0)
                        return r;
                log_say("grew %s/%s to %llu bytes", names.group, names.volume, (unsigned long long)volume.size_bytes);
        }
        *ret_size_bytes = volume.size_bytes;
        return 0;
}

static bool guess(const struct volume_request *request)
{
        return json_object_get(request->options, "volumegroup") != NULL;
}

static const struct volume_option options[] = {
        { .key = "volumegroup", .help = "volume group of the logical volume", .locates = true },
        { .key = "volumeID", .fallback = "the volume's name", .help = "name of the logical volume", .locates = true },
        { .key = "size", .help = "what the logical volume has at least", .type = VOLUME_OPTION_SIZE },
        { .key = "pool", .help = "pool of type lvm, in place of \"volumegroup\"" },
        { .key = "profile", .help = "profile that volume-create made the volume with" },
        { .key = "usage", .help = "on persistent memory: FileIO mounts it without DAX", .kept = true },
        {},
};

/* A pool of persistent memory in mode lvm is a volume group, too. */
static const char *const pool_types[] = { "lvm", "pmem", NULL };

const struct volume_kind kind_lvm = { VOLUME_KIND(lvm),
                                      .needs = NEED(LVM) | NEED(DEVICE_MAPPER),
                                      .options = options,
                                      .hints = block_hints,
                                      .guess = guess,
                                      .pool_types = pool_types,
                                      .default_pool = true,
                                      .runs = VOLUME_RUNS_LVM,
                                      .grow_runs = VOLUME_RUNS_PMEM,
                                      .direct = true,
                                      .activates_early = true,
                                      .attach = attach,
                                      .look = look,
                                      .detach = detach,
                                      .identify = identify,
                                      .predict = predict,
                                      .grow = grow,
                                      .names_other = names_other };
