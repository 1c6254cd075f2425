/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kind_lvm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "block/lvm.h"
#include "process/log.h"
#include "provision/pool.h"
#include "volume/device.h"
#include "volume/mount_dir.h"
#include "volume/provisioned.h"

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

/* What volume-create has made, or adopted, under this name. Errors: ENOENT, without words. */
static int take_made(const struct volume_call *call, struct names *ret_names, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        struct pool pool;
        int r = provisioned_find(call, "lvm", &record, error);

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
                                                   "the volume does not say its \"volumegroup\" and \"volumeID\", and "
                                                   "none of this name was made by volume-create")
                                    : r;
        }
        if (group == NULL && (r = take_group_of(call, pool != NULL ? pool : POOL_DEFAULT, ret_names, error)) < 0)
                return r;
        if (group != NULL && !take(ret_names->group, group))
                return fail_because(error, EINVAL, "find volume", group, "\"%.200s\" is no volume group's name", group);
        if (!take(ret_names->volume, volume != NULL ? volume : call->request->name))
                return fail_because(error, EINVAL, "find volume", call->request->name,
                                    "\"%.200s\" is no logical volume's name",
                                    volume != NULL ? volume : call->request->name);
        return 0;
}

static int look(struct volume_call *call, struct error *error)
{
        struct block_device device;

        if (!call->recorded || call->record.device[0] == '\0')
                return 0;
        return block_device_find(call->record.source, &device, error) == 0 &&
               device.number == call->record.device_number;
}

/* Of a volume that is active. */
static int use_device(struct volume_call *call, const struct names *names, struct error *error)
{
        struct block_device device;
        int r;

        if ((r = volume_device_wait_for(call->record.source, call->config.device_seconds, &device, error)) < 0 ||
            (r = lvm_find_device(names->group, names->volume, &device, error)) < 0 ||
            (r = volume_device_check_alone(call, &device, error)) < 0)
                return r;
        if (device.read_only && !call->request->read_only)
                return fail_because(error, EROFS, "find device", device.path, "the device %s is read-only",
                                    device.path);
        (void)text_copy(call->record.device, sizeof call->record.device, device.path);
        call->record.device_number = device.number;
        call->record.read_only = call->request->read_only;
        return volume_call_save(call, FILE_DURABLE, error);
}

static int activate(struct volume_call *call, const struct names *names, struct error *error)
{
        struct lvm_volume volume;
        int r = lvm_find(names->group, names->volume, &volume, error);

        if (r == -ENOENT)
                return fail_because(error, ENOENT, "find volume", names->volume,
                                    "there is no logical volume %s/%s; volume-create makes one", names->group,
                                    names->volume);
        if (r < 0)
                return r;
        if (!volume.public || strcmp(volume.type, "thin-pool") == 0)
                return fail_because(error, EINVAL, "find volume", names->volume,
                                    "the logical volume %s/%s is a part of others", names->group, names->volume);
        if (!volume.active && (r = lvm_activate(names->group, names->volume, /* active= */ true, error)) < 0)
                return r;
        r = use_device(call, names, error);
        if (r < 0 && !volume.active) {
                struct error ignored; /* the first failure is the one to tell */

                (void)lvm_activate(names->group, names->volume, /* active= */ false, &ignored);
        }
        return r;
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
        if ((r = names_of(call, &names, error)) < 0)
                return r;
        lvm_path(names.group, names.volume, path);
        if ((r = policy_check_device(&call->policy, path, error)) < 0)
                return r;
        if (look(call, &ignored) > 0 && strcmp(call->record.source, path) == 0)
                return 0;
        if (strcmp(call->record.source, path) != 0)
                call->record.formatting[0] = '\0'; /* of another volume */
        volume_call_begin_record(call);
        call->record.device[0] = '\0';
        (void)text_copy(call->record.source, sizeof call->record.source, path);
        if ((r = volume_call_save(call, FILE_DURABLE, error)) < 0)
                return r;
        r = activate(call, &names, error);
        if (r < 0 && !was_recorded)
                (void)volume_call_drop(call, &ignored); /* the first failure is the one to tell */
        return r;
}

static int detach(struct volume_call *call, struct error *error)
{
        struct lvm_volume volume;
        struct names names;
        int r;

        if (!take_path(call->record.source, &names))
                return 0;
        r = lvm_find(names.group, names.volume, &volume, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.open)
                return fail_because(error, EBUSY, "detach", call->record.source, "%s is in use still",
                                    call->record.source);
        if (!volume.active)
                return 0;
        return lvm_activate(names.group, names.volume, /* active= */ false, error);
}

/* The device mapper's own name for it, which holds the ids of group and volume. */
static int identify(const struct volume_call *call, char *ret_identity, struct error *error)
{
        int r = block_device_attribute(call->record.device_number, "dm/uuid", ret_identity, VOLUME_IDENTITY_SIZE);

        return r < 0 ? fail(error, -r, "read dm/uuid", call->record.device) : 0;
}

static int predict(struct volume_call *call, struct error *error)
{
        struct names names;
        int r = names_of(call, &names, error);

        if (r == 0)
                lvm_path(names.group, names.volume, call->record.device);
        return r;
}

static int grow(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error)
{
        struct lvm_volume volume;
        struct names names;
        int r;

        if ((r = names_of(call, &names, error)) < 0)
                return r;
        r = lvm_find(names.group, names.volume, &volume, error);
        if (r == -ENOENT) { /* another node's: expandfs, there, does the work */
                *ret_size_bytes = size_bytes;
                return 0;
        }
        if (r < 0)
                return r;
        if (volume.size_bytes < size_bytes) {
                if ((r = lvm_extend(names.group, names.volume, size_bytes, error)) < 0 ||
                    (r = lvm_find(names.group, names.volume, &volume, error)) < 0)
                        return r;
                log_say("grew %s/%s to %llu bytes", names.group, names.volume, (unsigned long long)volume.size_bytes);
        }
        *ret_size_bytes = volume.size_bytes;
        return 0;
}

const struct volume_kind kind_lvm = { .word = "lvm",
                                      .of_pool = true,
                                      .direct = true,
                                      .wakes = true,
                                      .attach = attach,
                                      .look = look,
                                      .detach = detach,
                                      .identify = identify,
                                      .predict = predict,
                                      .grow = grow };
