/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/provisioned.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "block/loop.h"
#include "block/lvm.h"
#include "pool/pool.h"
#include "pool/pool_count.h"
#include "pool/record.h"
#include "state/access.h"
#include "volume/kinds.h"

/* Where a request names only the pool of a device, that is found by the volume's name: it must be named after it. */
static bool is_named_after(const struct provision_record *record, const struct volume_kind *kind)
{
        size_t length = strlen(record->name);

        return strncmp(record->id, record->name, length) == 0 &&
               strcmp(record->id + length, kind->id_suffix ?: "") == 0;
}

/* Where the request names a pool, it must be the record's. */
static bool is_meant(const struct provision_record *record, const struct volume_kind *kind, const char *pool)
{
        return pool == NULL || (strcmp(record->pool, pool) == 0 && (!kind->has_device || is_named_after(record, kind)));
}

static int find(const struct volume_call *call, struct provision_record *ret_record, struct error *error)
{
        return call->provisioned.dir_fd >= 0
                       ? provision_record_read(&call->provisioned, call->request->name, ret_record, error)
                       : provision_record_find(call->config.state_dir, call->request->name, ret_record, error);
}

static int check_no_snapshot(const struct provision_record *record, struct error *error)
{
        return record->snapshot_of[0] == '\0'
                       ? 0
                       : fail_because(error, EINVAL, "find volume", record->name,
                                      "it is a snapshot of %.200s; make a volume of it with volume-create and \"from\"",
                                      record->snapshot_of);
}

static int check_restored(const struct provision_record *record, struct error *error)
{
        return !pool_kind_is_torn(record)
                       ? 0
                       : fail_because(error, EBUSY, "find volume", record->name,
                                      "the volume is half restored; restore \"%.200s\" again with volume-snapshot, or "
                                      "run volume-reconcile",
                                      record->restoring);
}

/* Not in the middle of being made, deleted or restored: who has it then loses it with the end of that. */
static int check_whole(const struct provision_record *record, struct error *error)
{
        if (record->lifecycle == PROVISION_CREATING && record->driver[0] == '\0')
                return fail_because(error, EBUSY, "find volume", record->name,
                                    "the volume is half made; run the same volume-create again to finish it");
        if (record->lifecycle == PROVISION_DELETING)
                return fail_because(error, EBUSY, "find volume", record->name,
                                    "the volume is half deleted; run volume-delete again to finish it");
        return check_restored(record, error);
}

/* That it may be used: it is no snapshot, and whole. */
static int check_usable(const struct provision_record *record, struct error *error)
{
        int r = check_no_snapshot(record, error);

        return r < 0 ? r : check_whole(record, error);
}

int provisioned_find(const struct volume_call *call, const struct volume_kind *kind,
                     struct provision_record *ret_record, struct error *error)
{
        const char *pool = NULL;
        int r = find(call, ret_record, error);

        if (r < 0 || (r = volume_request_option(call->request, "pool", &pool, error)) < 0)
                return r;
        if (!is_meant(ret_record, kind, pool))
                return -ENOENT;
        return text_among(ret_record->pool_type, kind->pool_types) ? check_usable(ret_record, error) : -ENOENT;
}

int provisioned_find_apart(const struct volume_call *call, struct provision_record *ret_record, struct error *error)
{
        int r = find(call, ret_record, error);

        return r < 0 ? r : check_usable(ret_record, error);
}

static int keep_flags(struct volume_request *request, const json_t *flags, struct error *error)
{
        struct mount_options options = {};
        const char *own;
        const json_t *flag;
        size_t i;
        int r = volume_request_option(request, "mountOptions", &own, error);

        json_array_foreach (flags, i, flag)
                if (r == 0)
                        r = mount_options_add_list(&options, json_string_value(flag), error);
        if (r == 0 && own != NULL)
                r = mount_options_add_list(&options, own, error);
        if (r < 0) {
                mount_options_release(&options);
                return r;
        }
        if (request->mount_options.propagation !=
            0) /* a request that was read has the defaults; one by name alone none */
                mount_options_default(&options);
        mount_options_release(&request->mount_options);
        request->mount_options = options;
        request->read_only = request->read_only || options.read_only;
        return 0;
}

/* NULL: nothing says it. */
static const char *kept_value(const struct volume_kind *kind, const struct volume_option *option,
                              const struct provision_record *record)
{
        const char *value = json_string_value(json_object_get(record->parameters, option->key));
        const bool made =
                !record->adopted && kind->pool_types != NULL && text_among(record->pool_type, kind->pool_types);

        return value != NULL || !made ? value : option->made_with;
}

void provisioned_keep_parameters(json_t *options, const struct provision_record *record)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                for (const struct volume_option *option = volume_kinds[i]->options;
                     option != NULL && option->key != NULL; option++) {
                        const char *value = option->kept ? kept_value(volume_kinds[i], option, record) : NULL;

                        if (value != NULL && json_object_get(options, option->key) == NULL)
                                (void)json_object_set_new(options, option->key, json_string(value));
                }
}

/* A driver that makes a volume does not say for what: it is for a filesystem once it has had one. */
static bool is_for_filesystem(const struct provision_record *record)
{
        return !access_is_block(record->target_type) && (record->driver[0] == '\0' || record->formatted);
}

int provisioned_keep(struct volume_request *request, const struct provision_record *record, struct error *error)
{
        if (request->block && is_for_filesystem(record))
                return fail_because(error, EINVAL, "mount", request->name,
                                    "the volume was made for a filesystem (targetType mount), not as a block device");
        if (!request->block && access_is_block(record->target_type))
                return fail_because(error, EINVAL, "mount", request->name,
                                    "the volume was made as a block device (targetType block) and cannot be mounted");
        if (record->fs_type[0] != '\0' && request->fs_type[0] != '\0' && strcmp(record->fs_type, request->fs_type) != 0)
                return fail_because(error, EINVAL, "mount", request->name, "the volume was made for fsType %s, not %s",
                                    record->fs_type, request->fs_type);
        if (request->fs_type[0] == '\0')
                (void)text_copy(request->fs_type, sizeof request->fs_type, record->fs_type); /* as long at most */
        provisioned_keep_parameters(request->options, record);
        return json_array_size(record->mount_flags) > 0 ? keep_flags(request, record->mount_flags, error) : 0;
}

bool provisioned_is_by_name(const struct volume_call *call)
{
        const char *key;
        const json_t *value;

        json_object_foreach (call->request->options, key, value) {
                const struct volume_option *option = volume_option_find(key);

                if (option != NULL && option->locates)
                        return false;
        }
        return call->kind->pool_types != NULL;
}

static int check_deletion(const struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&call->provisioned, call->request->name, &record, error);

        if (r == 0 && record.lifecycle == PROVISION_DELETING)
                return fail_because(error, EBUSY, "find volume", call->request->name,
                                    "the volume is half deleted; run volume-delete again to finish it");
        if (r < 0 || (r = check_no_snapshot(&record, error)) < 0)
                return r == -ENOENT ? 0 : r;
        return check_restored(&record, error);
}

static int hold(struct volume_call *call, struct error *error)
{
        int r;

        if (call->provisioned.dir_fd >= 0) /* it is held already */
                return 0;
        r = provision_record_open(call->config.state_dir, /* create= */ call->kind->makes_volumes, &call->provisioned,
                                  error);
        if (r == -ENOENT)
                return 0;
        /* volume-delete may have the lock for hours, while it overwrites the volume */
        if (r < 0 || (r = check_deletion(call, error)) < 0)
                return r;
        call->waits = true;
        r = provision_record_lock(&call->provisioned, call->request->name, error);
        call->waits = false;
        return r < 0 ? r : check_deletion(call, error); /* it may have changed meanwhile */
}

int provisioned_hold(struct volume_call *call, struct error *error)
{
        return call->kind->pool_types == NULL ? 0 : hold(call, error);
}

int provisioned_hold_apart(struct volume_call *call, struct error *error)
{
        return hold(call, error);
}

struct disk {
        const struct volume_call *call;
        const struct pool *pool;
        const char *group;
};

/* Two pools may have one place. */
static bool is_one_location(const struct config *config, const struct pool *one, const struct pool *other)
{
        char locations[2][POOL_LOCATION_SIZE];
        struct error ignored;

        return one->kind != NULL && other->kind != NULL &&
               one->kind->locate(config, one, locations[0], &ignored) == 0 &&
               other->kind->locate(config, other, locations[1], &ignored) == 0 &&
               strcmp(locations[0], locations[1]) == 0;
}

static bool is_on_disk(const struct provision_record *record, const struct disk *disk)
{
        struct error ignored;
        struct pool pool;

        if (pool_find(&disk->call->config, record->pool, &pool, &ignored) < 0)
                return false;
        return disk->group != NULL ? strcmp(pool.volume_group, disk->group) == 0
                                   : is_one_location(&disk->call->config, &pool, disk->pool);
}

/* Whether the call means the volume of the record by its name, and not its disk. */
static bool is_named(const struct volume_call *call, const struct provision_record *record)
{
        struct error ignored;
        const char *pool;

        return provisioned_is_by_name(call) && strcmp(record->name, call->request->name) == 0 &&
               volume_request_option(call->request, "pool", &pool, &ignored) == 0 && is_meant(record, call->kind, pool);
}

/* Who may have a volume is asked where it is named. */
static int check_named(const struct volume_call *call, const struct provision_record *record, struct error *error)
{
        if (call->driver[0] == '\0' || record->namespace[0] == '\0' || is_named(call, record))
                return 0;
        return fail_because(error, EACCES, "find volume", call->request->name,
                            "%.64s is the volume \"%.128s\", which is had by that name alone; let the FlexVolume "
                            "volume have it, and leave out what says where it is",
                            record->id, record->name);
}

static int check_disk(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct disk *disk = argument;
        int r;

        (void)stem;
        if (record == NULL || !is_on_disk(record, disk))
                return 0;
        r = check_named(disk->call, record, error);
        return r < 0 ? r : check_usable(record, error);
}

int provisioned_check_disk(const struct volume_call *call, const struct pool *pool, const char *group, const char *id,
                           struct error *error)
{
        struct disk disk = { .call = call, .pool = pool, .group = group };

        return call->provisioned.dir_fd < 0 ? 0 : record_find_each(&call->provisioned, id, check_disk, &disk, error);
}

static int check_device(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct disk *disk = argument;
        int r;

        (void)stem;
        if (record == NULL || !is_on_disk(record, disk))
                return 0;
        r = check_named(disk->call, record, error);
        return r < 0 ? r : check_whole(record, error);
}

/* The loop device of a volume is nobody else's, also to read: whose it is, its own records and image tell. */
static int check_no_image(const struct block_device *device, struct error *error)
{
        struct loop_device loop;
        struct error ignored;
        char path[32];

        if (!loop_device_path(device->number, path) || loop_device_look_soon(path, &loop, &ignored) < 0 ||
            !loop_device_is_volume(loop.tag))
                return 0;
        return fail_because(error, EBUSY, OPERATION_FIND_DEVICE, device->path,
                            "%s is the device of a volume, which has a name of its own", device->path);
}

int provisioned_check_device(const struct volume_call *call, const struct block_device *device, struct error *error)
{
        cleanup_state struct state records = STATE_NONE;
        char group[LVM_NAME_MAX];
        char volume[LVM_NAME_MAX];
        struct disk disk = { .call = call, .group = group };
        int r = check_no_image(device, error);

        if (r < 0)
                return r;
        if (call->driver[0] == '\0' || lvm_device_names(device, group, volume) < 0)
                return 0;
        r = provision_record_open(call->config.state_dir, /* create= */ false, &records, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return record_find_each(&records, volume, check_device, &disk, error);
}

static bool is_in_pool(const struct volume_call *call, const struct provision_record *record, const char *name)
{
        static struct pool asked;
        static struct pool own;
        struct error ignored;

        if (strcmp(name, record->pool) == 0)
                return true;
        return pool_find(&call->config, name, &asked, &ignored) == 0 &&
               pool_find(&call->config, record->pool, &own, &ignored) == 0 &&
               is_one_location(&call->config, &asked, &own);
}

static bool is_in_group(const struct volume_call *call, const struct provision_record *record, const char *group)
{
        static struct pool own;
        struct error ignored;

        return pool_find(&call->config, record->pool, &own, &ignored) == 0 && strcmp(own.volume_group, group) == 0;
}

/* Whether the options mean the record's disk: its image, logical volume or namespace. */
static bool is_asked(const struct volume_call *call, const struct provision_record *record)
{
        const char *pool;
        const char *group;
        const char *id;
        struct error ignored;

        if (volume_request_option(call->request, "pool", &pool, &ignored) < 0 ||
            volume_request_option(call->request, "volumegroup", &group, &ignored) < 0 ||
            volume_request_option(call->request, call->kind->has_image ? "image" : "volumeID", &id, &ignored) < 0)
                return false;
        if (pool == NULL && group == NULL && id == NULL)
                return true;
        if (id != NULL ? strcmp(id, record->id) != 0 : call->kind->has_device && !is_named_after(record, call->kind))
                return false;
        if (group != NULL)
                return is_in_group(call, record, group);
        if (pool == NULL && !call->kind->default_pool)
                return true;
        return is_in_pool(call, record, pool != NULL ? pool : POOL_DEFAULT);
}

/* Whether a logical volume that is attached is the record's. */
static bool is_attached_lv(const struct volume_call *call, const struct provision_record *record)
{
        struct error ignored;
        struct pool pool;
        char path[PATH_MAX];

        if (call->record.source[0] == '\0' || pool_find(&call->config, record->pool, &pool, &ignored) < 0 ||
            pool.volume_group[0] == '\0')
                return true;
        lvm_path(pool.volume_group, record->id, path);
        return strcmp(call->record.source, path) == 0;
}

bool provisioned_is_own(const struct volume_call *call, const struct provision_record *record)
{
        struct error ignored;
        struct pool pool;
        const char *asked;
        const char *last;

        if (!call->kind->has_image)
                return provisioned_is_by_name(call) && text_among(record->pool_type, call->kind->pool_types) &&
                       volume_request_option(call->request, "pool", &asked, &ignored) == 0 &&
                       is_meant(record, call->kind, asked) && is_attached_lv(call, record);
        if (call->kind->pool_types == NULL || !text_among(record->pool_type, call->kind->pool_types))
                return false;
        if (call->record.source[0] == '\0')
                return is_asked(call, record);
        if (pool_find(&call->config, record->pool, &pool, &ignored) < 0) { /* its file is gone */
                last = strrchr(call->record.source, '/');
                return last != NULL && strcmp(last + 1, record->id) == 0;
        }
        return text_same(pool_file(&pool, call->record.source), record->id);
}

int provisioned_find_own(const struct volume_call *call, struct provision_record *ret_record, struct error *error)
{
        int r = call->kind->pool_types == NULL ? -ENOENT : find(call, ret_record, error);

        return r == 0 && (ret_record->lifecycle != PROVISION_CREATED || !provisioned_is_own(call, ret_record)) ? -ENOENT
                                                                                                               : r;
}

int provisioned_check_blank(const struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find_own(call, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return !record.formatted ? 0
                                 : fail_because(error, ENODATA, OPERATION_FIND_CONTENT, call->record.device,
                                                "the volume is lost: %s is blank, and it was formatted before",
                                                call->record.source);
}

int provisioned_check_identity(const struct volume_call *call, const char *identity, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find_own(call, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (record.identity[0] == '\0' || pool_kind_is_torn(&record) || strcmp(record.identity, identity) == 0)
                return 0;
        return fail_because(error, ENODATA, OPERATION_FIND_CONTENT, call->record.source,
                            "the volume is lost: %s is another one by now, which was made since", record.id);
}

int provisioned_check_kata(const struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find_own(call, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return !record.has_kata_image ? 0
                                      : fail_because(error, ENODATA, OPERATION_FIND_CONTENT, call->record.source,
                                                     "the volume is lost: its image for virtual machines is gone");
}

int provisioned_note(const struct volume_call *call, bool has_kata_image, enum file_durability durability,
                     struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find_own(call, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (record.formatted && (record.has_kata_image || !has_kata_image))
                return 0;
        record.formatted = true;
        record.has_kata_image = record.has_kata_image || has_kata_image;
        return provision_record_write(&call->provisioned, &record, durability, error);
}

bool provisioned_grows(const struct volume_call *call)
{
        cleanup_provision_record struct provision_record record = {};
        struct error ignored;

        return provisioned_find_own(call, &record, &ignored) == 0 && record.grows;
}

int provisioned_note_grown(const struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find_own(call, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        record.grows = false;
        return provision_record_write(&call->provisioned, &record, FILE_ORDERED, error);
}

int provisioned_find_meant(const struct volume_call *call, struct provision_record *ret_record, struct error *error)
{
        int r = call->kind->pool_types == NULL ? -ENOENT : find(call, ret_record, error);

        if (r < 0)
                return r;
        return text_among(ret_record->pool_type, call->kind->pool_types) && is_asked(call, ret_record)
                       ? check_usable(ret_record, error)
                       : -ENOENT;
}

int provisioned_apply(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find_meant(call, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return provisioned_keep(call->request, &record, error);
}
