/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_pmem.c - a namespace of persistent memory, which always has its device.
 *
 * "pool" and "volumeID"; without them, the volume that volume-create made or adopted under this name. In a pool in mode
 * lvm it is a logical volume, and kind_lvm does the work.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "block/pmem.h"
#include "pool/pool.h"
#include "pool/pool_pmem.h"
#include "volume/call.h"
#include "volume/device_filesystem.h"
#include "volume/kind.h"
#include "volume/mount_dir.h"
#include "volume/provisioned.h"

/* The pool and the id of the volume; PROVISION_ID_MAX bytes for the id. */
static int find_pool(const struct volume_call *call, struct pool *ret_pool, char *ret_id, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        const char *pool_name;
        const char *id;
        int r;

        if ((r = volume_request_option(call->request, "pool", &pool_name, error)) < 0 ||
            (r = volume_request_option(call->request, "volumeID", &id, error)) < 0)
                return r;
        if (pool_name == NULL) {
                r = provisioned_find(call, &kind_pmem, &record, error);
                if (r == -ENOENT)
                        return fail_because(error, EINVAL, "find namespace", call->request->name,
                                            "the volume has no \"pool\" and \"volumeID\", and volume-create has made "
                                            "none of this name; do either");
                if (r < 0)
                        return r;
                if (id != NULL && strcmp(id, record.id) != 0)
                        return fail_because(error, EINVAL, "find namespace", id,
                                            "the volume of this name is \"%.64s\", not \"%.64s\"; to mean that one, "
                                            "give its \"pool\" beside \"volumeID\"",
                                            record.id, id);
                pool_name = record.pool;
                id = record.id;
        }
        if ((r = pool_find(&call->config, pool_name, ret_pool, error)) < 0)
                return r;
        if (strcmp(ret_pool->kind->type, kind_pmem.word) != 0)
                return fail_because(error, EINVAL, "find namespace", pool_name,
                                    "the pool \"%.128s\" is of type %s, not %s", pool_name, ret_pool->kind->type,
                                    kind_pmem.word);
        (void)snprintf(ret_id, PROVISION_ID_MAX, "%.255s", id != NULL ? id : call->request->name);
        return 0;
}

/* It must have a device. */
static int find_namespace(const struct pool *pool, const char *id, struct pmem_namespace *ret_namespace,
                          struct error *error)
{
        int r = pmem_find(pool->region, id, ret_namespace, error);

        if (r == -ENOENT)
                return fail_because(error, ENOENT, "find namespace", id,
                                    "there is no namespace \"%.64s\" in the region of pool \"%s\"", id, pool->name);
        if (r == 0 && ret_namespace->device[0] == '\0')
                return fail_because(error, ENODEV, OPERATION_FIND_DEVICE, id, "the namespace \"%.64s\" has no device",
                                    id);
        return r;
}

/* Whether it is a logical volume, "/dev/GROUP/VOLUME". */
static bool is_logical(const struct volume_call *call)
{
        return text_starts(call->record.source, "/dev/") && strchr(call->record.source + 5, '/') != NULL;
}

static int look(struct volume_call *call, struct error *error)
{
        struct block_device device;

        if (is_logical(call))
                return kind_lvm.look(call, error);
        if (!call->recorded || call->record.device[0] == '\0')
                return 0;
        return block_device_find(call->record.device, &device, error) == 0 &&
               device.number == call->record.device_number;
}

static void put_location(const struct pool *pool, const char *id, char *ret_location)
{
        (void)snprintf(ret_location, PATH_MAX, "%s/%s", pool->name, id);
}

static int names_other(struct volume_call *call, char *ret_named, struct error *error)
{
        bool named = json_object_get(call->request->options, "pool") != NULL ||
                     json_object_get(call->request->options, "volumeID") != NULL;
        char id[PROVISION_ID_MAX];
        struct pool pool;
        int r;

        if (is_logical(call))
                return kind_lvm.names_other(call, ret_named, error);
        if (!named && call->request->verb != VERB_MOUNTDEVICE && call->request->verb != VERB_MOUNT)
                return 0;
        r = find_pool(call, &pool, id, error);
        if (r < 0)
                return named ? r : 0;
        put_location(&pool, id, ret_named);
        return call->record.location[0] != '\0' && strcmp(ret_named, call->record.location) != 0;
}

static int attach(struct volume_call *call, struct error *error)
{
        struct pmem_namespace namespace;
        struct block_device device;
        struct error ignored;
        struct pool pool;
        char id[PROVISION_ID_MAX];
        char location[PATH_MAX];
        int r;

        if (look(call, &ignored) > 0 && mount_dir_is_staged(call))
                return 0;
        if ((r = find_pool(call, &pool, id, error)) < 0)
                return r;
        pool_pmem_know(&call->config, &pool);
        if (pool.volume_group[0] != '\0')
                return kind_lvm.attach(call, error);
        if ((r = provisioned_check_disk(call, &pool, /* group= */ NULL, id, error)) < 0 ||
            (r = find_namespace(&pool, id, &namespace, error)) < 0 ||
            (r = provisioned_check_identity(call, namespace.uuid, error)) < 0 ||
            (r = pmem_wait_for(&namespace, call->config.device_seconds, &device, error)) < 0 ||
            (r = policy_check_device(&call->policy, /* source= */ NULL, device.path, error)) < 0)
                return r;
        if (look(call, &ignored) > 0 && call->record.device_number == device.number && volume_device_was_checked(call))
                return 0;
        put_location(&pool, id, location);
        if (call->record.location[0] != '\0' && strcmp(call->record.location, location) != 0)
                volume_call_forget_source(call);
        volume_call_init_record(call);
        if ((r = volume_device_check_alone(call, &device, error)) < 0)
                return r;
        (void)text_copy(call->record.source, sizeof call->record.source, namespace.device);
        (void)text_copy(call->record.location, sizeof call->record.location, location);
        (void)text_copy(call->record.device, sizeof call->record.device, device.path);
        call->record.device_number = device.number;
        call->record.read_only = call->request->read_only;
        return volume_call_save(call, FILE_DURABLE, error);
}

/* A namespace keeps its device: nothing to do. */
static int detach(struct volume_call *call, struct error *error)
{
        return is_logical(call) ? kind_lvm.detach(call, error) : 0;
}

static int identify(const struct volume_call *call, char *ret_identity, struct error *error)
{
        int r;

        if (is_logical(call))
                return kind_lvm.identify(call, ret_identity, error);
        r = block_device_attribute(call->record.device_number, "device/uuid", ret_identity, VOLUME_IDENTITY_SIZE);
        return r < 0 ? fail(error, -r, "read device/uuid", call->record.device) : 0;
}

/* Only the other node knows which device a namespace gets. */
static int predict(struct volume_call *call, struct error *error)
{
        char id[PROVISION_ID_MAX];
        struct error ignored; /* this node need not know the pool, or the volume */
        struct pool pool;

        if (find_pool(call, &pool, id, &ignored) < 0 || pool.volume_group[0] == '\0')
                return 0;
        return kind_lvm.predict(call, error);
}

/* A namespace cannot grow. */
static int grow(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error)
{
        struct pmem_namespace namespace;
        char id[PROVISION_ID_MAX];
        struct pool pool;
        int r = find_pool(call, &pool, id, error);

        if (r < 0)
                return r;
        if (pool.volume_group[0] != '\0')
                return kind_lvm.grow(call, size_bytes, ret_size_bytes, error);
        if ((r = find_namespace(&pool, id, &namespace, error)) < 0)
                return r;
        if (size_bytes > namespace.size_bytes)
                return fail_because(error, EOPNOTSUPP, "expand", id,
                                    "a namespace of persistent memory cannot grow: %s has %llu bytes",
                                    namespace.device_name, (unsigned long long)namespace.size_bytes);
        *ret_size_bytes = namespace.size_bytes;
        return 0;
}

static const struct volume_option options[] = {
        { .key = "pool", .help = "pool of type pmem" },
        { .key = "volumeID",
          .fallback = "the volume's name",
          .help = "name of the namespace or logical volume",
          .locates = true },
        { .key = "profile", .help = "profile that volume-create made the volume with" },
        { .key = "usage", .help = "FileIO mounts it without DAX", .kept = true },
        {},
};

static const char *const pool_types[] = { "pmem", NULL };

const struct volume_kind kind_pmem = { VOLUME_KIND(pmem),
                                       .needs = NEED(PMEM_REGIONS) | NEED(PMEM_NAMESPACES),
                                       .options = options,
                                       .hints = block_hints,
                                       .pool_types = pool_types,
                                       .runs = VOLUME_RUNS_PMEM | VOLUME_RUNS_LVM,
                                       .direct = true,
                                       .activates_early = true,
                                       .attach = attach,
                                       .look = look,
                                       .detach = detach,
                                       .identify = identify,
                                       .predict = predict,
                                       .grow = grow,
                                       .names_other = names_other };
