/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "pool/pool_implied.h"
#include "pool/pool_kind.h"
#include "state/access.h"

/* Of a volume for virtual machines, what its own filesystem, ext4, takes for its tables and leaves beside the image. */
#define OUTER_SHARE 8

void provision_call_unlock_pool(struct provision_call *call)
{
        if (!call->pool_locked)
                return;
        if (call->locked_kind->release != NULL)
                call->locked_kind->release();
        state_unlock(&call->state, call->pool_key);
        call->pool_locked = false;
}

/* One pool at a time: two calls with two pools could wait for each other for ever. */
int provision_call_lock_pool(struct provision_call *call, struct error *error)
{
        char location[POOL_LOCATION_SIZE];
        int r = call->kind->locate(&call->config, &call->pool, location, error);
        uint64_t key;

        if (r < 0)
                return r;
        key = hash_text(location);
        if (call->pool_locked && call->pool_key == key)
                return 0;
        provision_call_unlock_pool(call);
        if ((r = state_lock(&call->state, key, error)) < 0)
                return r;
        call->pool_key = key;
        call->pool_locked = true;
        call->pool_locks++;
        call->locked_kind = call->kind;
        if (call->kind->hold != NULL)
                call->kind->hold();
        return 0;
}

int provision_call_use_pool(struct provision_call *call, const char *name, struct error *error)
{
        int r = pool_find(&call->config, name, &call->pool, error);

        if (r == 0)
                call->kind = call->pool.kind;
        return r;
}

/* What was made before locations were noted, or was moved with its pool since. A failure leaves it as it was. */
static void note_location(const struct provision_call *call, struct provision_record *record)
{
        char was[PROVISION_LOCATION_MAX];
        struct error ignored;

        (void)text_copy(was, sizeof was, record->location);
        pool_put_location(&call->config, &call->pool, record->location);
        if (record->lifecycle == PROVISION_CREATED && strcmp(was, record->location) != 0)
                (void)provision_record_write(&call->state, record, FILE_DURABLE, &ignored);
}

static int fail_changed(const struct provision_record *record, const char *now, const char *then, const char *or_else,
                        struct error *error)
{
        return fail_because(error, ENODEV, "find pool of volume", record->pool,
                            "its file says %s, and \"%.200s\" was made when it said %s: have it say that again, and "
                            "make the other pool by another name%s",
                            now, record->name, then, or_else);
}

int provision_call_use_pool_of(struct provision_call *call, const struct provision_record *record, struct error *error)
{
        int r = provision_call_use_pool(call, record->pool, error);

        if (r < 0 || strcmp(call->kind->type, record->pool_type) == 0)
                return r;
        return fail_changed(record, call->kind->type, record->pool_type, /* or_else= */ "", error);
}

int provision_call_check_location(const struct provision_call *call, const struct pool *pool,
                                  const struct provision_record *record, struct error *error)
{
        char location[PROVISION_LOCATION_MAX];

        pool_put_location(&call->config, pool, location);
        if (record->location[0] == '\0' || location[0] == '\0' || strcmp(record->location, location) == 0)
                return 0;
        return fail_changed(record, location, record->location,
                            "; or give the volume up: volume-delete with \"reclaimPolicy\": \"retain\"", error);
}

/* What has the volume's id may be something else, made after the volume was removed by hand. */
bool provision_call_is_volume(const struct provision_record *record, const struct pool_item *item)
{
        if (record->identity[0] != '\0' && item->identity[0] != '\0' && !(pool_kind_is_torn(record) && item->ours))
                return strcmp(record->identity, item->identity) == 0;
        return record->adopted || item->ours;
}

bool provision_call_is_fit(const struct provision_call *call, const struct pool *pool)
{
        const struct provision_request *request = call->request;
        const char *fs_type = request->fs_type ?: profile_fs_type(call->profile);
        const json_t *parameters = call->profile != NULL ? profile_parameters(call->profile) : request->parameters;
        bool block = profile_is_block(call->profile) || access_is_block(request->target_type);
        bool device = block || fs_type[0] != '\0' || pool_parameter_flag(parameters, POOL_FOR_MACHINES, false);

        return !pool->kind->no_device || !device;
}

int provision_call_check_target(const struct provision_call *call, const struct provision_record *record,
                                struct error *error)
{
        if (!call->kind->no_device)
                return 0;
        if (access_is_block(record->target_type))
                return fail_because(error, EINVAL, "find pool", call->pool.name,
                                    "volumes of pool \"%.128s\" are directories, and no block devices",
                                    call->pool.name);
        if (record->fs_type[0] != '\0')
                return fail_because(error, EINVAL, "find pool", call->pool.name,
                                    "volumes of pool \"%.128s\" are directories, without a filesystem of their own: "
                                    "leave out \"fsType\"",
                                    call->pool.name);
        return 0;
}

int provision_call_look_again(const struct provision_call *call, struct provision_record *record,
                              struct pool_item *ret_item, struct error *error)
{
        int r = call->kind->look(&call->config, &call->pool, record->id, ret_item, error);

        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && provision_call_is_volume(record, ret_item)) {
                note_location(call, record);
                return 0;
        }
        r = provision_call_check_location(call, &call->pool, record, error);
        return r < 0 ? r
                     : fail_because(error, ENOENT, OPERATION_LOOK_AGAIN, record->id,
                                    "the volume is not in pool \"%.128s\" any more; volume-delete removes its record",
                                    record->pool);
}

/* Those of the profile, and what the request says of a claim. A new object, or a reference. */
static json_t *wanted_parameters(const struct provision_request *request, const json_t *profile)
{
        const json_t *given = profile != NULL ? profile_parameters(profile) : request->parameters;
        json_t *parameters;

        if (profile == NULL || request->parameters == NULL)
                return given != NULL ? json_incref((json_t *)given) : json_object();
        parameters = json_copy((json_t *)request->parameters);
        if (given != NULL)
                (void)json_object_update(parameters, (json_t *)given);
        return parameters;
}

void provision_call_init_record(const struct provision_call *call, struct provision_record *ret_record)
{
        const struct provision_request *request = call->request;
        const json_t *profile = call->profile;
        bool block = profile != NULL ? profile_is_block(profile) : access_is_block(request->target_type);
        const json_t *parameters = profile != NULL ? profile_parameters(profile) : request->parameters;
        const json_t *flags = profile != NULL ? profile_mount_flags(profile) : NULL;
        const char *fs_type = request->fs_type != NULL ? request->fs_type
                              : profile != NULL        ? profile_fs_type(profile)
                                                       : "";

        *ret_record = (struct provision_record){
                .born = clock_real_ns(),
                .asked_bytes = request->size_bytes,
                .keeps_content = request->keeps_content ||
                                 (!request->erases && !pool_parameter_flag(parameters, "eraseAfter", true))
        };
        /* each fits: the request's, or the profile's, length was checked */
        (void)text_copy(ret_record->name, sizeof ret_record->name, request->name);
        (void)text_copy(ret_record->pool, sizeof ret_record->pool, call->pool.name);
        (void)text_copy(ret_record->pool_type, sizeof ret_record->pool_type, call->pool.kind->type);
        pool_put_location(&call->config, &call->pool, ret_record->location);
        (void)text_copy(ret_record->profile, sizeof ret_record->profile, request->profile ?: "");
        (void)text_copy(ret_record->target, sizeof ret_record->target, request->target ?: "");
        (void)text_copy(ret_record->namespace, sizeof ret_record->namespace, request->namespace ?: "");
        (void)text_copy(ret_record->target_type, sizeof ret_record->target_type, access_target_type(block));
        (void)text_copy(ret_record->fs_type, sizeof ret_record->fs_type, block ? "" : fs_type);
        (void)text_copy(ret_record->access_mode, sizeof ret_record->access_mode,
                        profile != NULL ? profile_access_mode(profile) : "");
        ret_record->parameters = wanted_parameters(request, profile);
        ret_record->mount_flags = flags != NULL ? json_incref((json_t *)flags) : json_array();
}

int provision_call_check_type(const struct provision_call *call, struct error *error)
{
        const struct provision_request *request = call->request;

        return request->fs_type != NULL
                       ? filesystem_check_type(request->fs_type, request->name, "\"fsType\": ", error)
                       : profile_check_type(call->profile, request->profile ?: "", request->name, error);
}

int provision_call_check_filesystem(const struct provision_call *call, const struct provision_record *record, bool kata,
                                    struct error *error)
{
        uint64_t (*device_bytes)(const json_t *parameters, uint64_t size_bytes) = call->kind->device_bytes;
        uint64_t bytes =
                device_bytes != NULL ? device_bytes(record->parameters, record->size_bytes) : record->size_bytes;
        uint64_t minimum_bytes = filesystem_minimum_bytes(record->fs_type);

        if (kata)
                bytes -= bytes / OUTER_SHARE;
        if (bytes == record->size_bytes || bytes >= minimum_bytes)
                return filesystem_check_size(record->fs_type, bytes, record->name, error);
        return fail_because(
                error, EINVAL, "make filesystem", record->name,
                "a filesystem of type %s needs at least %llu MiB, and of the volume's %llu bytes it has %llu",
                record->fs_type, (unsigned long long)(minimum_bytes >> 20), (unsigned long long)record->size_bytes,
                (unsigned long long)bytes);
}

void provision_call_release(struct provision_call *call)
{
        provision_call_unlock_pool(call);
        profiles_release(&call->profiles);
        json_decref(call->owners);
        json_decref(call->locations);
        json_decref(call->paths);
        json_decref(call->unread);
        state_release(&call->state); /* a worker that hangs shares the descriptors */
}

int provision_call_check_room(const struct provision_call *call, const struct provision_record *record,
                              uint64_t size_bytes, struct pool_measure *ret_measure, struct error *error)
{
        const struct pool_kind *kind = call->kind;
        int r = (record->snapshot_of[0] != '\0' && kind->measure_snapshot != NULL
                         ? kind->measure_snapshot
                         : kind->measure)(&call->config, &call->pool, record->parameters, ret_measure, error);

        if (r < 0)
                return r;
        if (ret_measure->problem != NULL)
                return fail_because(error, ret_measure->problem_errnum, OPERATION_FIND_ROOM, call->pool.name, "%s",
                                    ret_measure->problem);
        return size_bytes <= ret_measure->largest_bytes
                       ? 0
                       : fail_because(error, ENOSPC, "create volume", call->pool.name,
                                      "pool \"%.128s\" has room for a volume of %llu bytes at most, and the request is "
                                      "for %llu",
                                      call->pool.name, (unsigned long long)ret_measure->largest_bytes,
                                      (unsigned long long)size_bytes);
}
