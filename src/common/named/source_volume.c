/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_volume.c - a volume by name as the source of a mount: attached, formatted if it is blank, staged once on the
 * node, and a clone of that for each container.
 *
 * Locks: the volume's, that of its record in provisioned/, then those of mounts. The volume's is held until all is done
 * or undone, so that whoever asks for its users sees this one's record.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "block/device.h"
#include "daemon/remap.h"
#include "inject/attributes.h"
#include "inject/injection.h"
#include "inject/kinds/source_raw.h"
#include "inject/request/request_keys.h"
#include "mount/detached.h"
#include "mount/nfs.h"
#include "pool/record.h"
#include "provision/request.h"
#include "state/access.h"
#include "state/use_index.h"
#include "volume/by_name.h"
#include "volume/exec_helpers.h"
#include "volume/named_stage.h"

#define OPEN_TEXT "lock the volume and read its records"
#define UNDO_UNMOUNT_S 10 /* what it may take to unmount a volume that nobody uses */
#define UNDO_MS 20000     /* that, what is detached lazily, and to detach the device */

/* What the injections of one volume in a call have in common. */
struct kept {
        struct volume_by_name volume;
        struct provision_request create;
        const struct request *chosen; /* by which it was chosen; NULL: it is not yet */
        size_t users;                 /* injections that have it, and are not undone */
};

static int hold(struct injection *injection, const struct injection *like, struct error *error)
{
        const struct request *request = injection->request;
        struct kept *kept = like != NULL ? like->volume : calloc(1, sizeof *kept);

        if (kept == NULL)
                return fail(error, ENOMEM, "find volume", request->source);
        injection->volume = kept;
        kept->users++;
        if (like != NULL)
                return 0;
        kept->volume = (struct volume_by_name)VOLUME_BY_NAME_NONE;
        return volume_by_name_hold(&kept->volume, request->source, request->dry_run, error);
}

/* What a missing or a blank volume is made by can be said once. */
static int check_alike(const struct request *one, const struct request *other, struct error *error)
{
        if (one->raw == other->raw && text_same(one->fs_type, other->fs_type) &&
            one->create.size_bytes == other->create.size_bytes && text_same(one->create.pool, other->create.pool) &&
            text_same(one->create.profile, other->create.profile))
                return 0;
        return fail_because(
                error, EINVAL, "find volume", other->source,
                "\"raw\", \"fsType\" or \"create\" differ from those of mounts[%zu], which is of the same volume",
                one->index);
}

static int choose(struct kept *kept, const struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;

        if (kept->chosen != NULL)
                return check_alike(kept->chosen, request, error);
        kept->chosen = request;
        kept->create = (struct provision_request){ .verb = PROVISION_CREATE,
                                                   .name = request->source,
                                                   .pool = request->create.pool,
                                                   .profile = request->create.profile,
                                                   .target_type = access_target_type(request->raw),
                                                   .fs_type = request->fs_type,
                                                   .size_bytes = request->create.size_bytes };
        kept->volume.raw = request->raw;
        kept->volume.policy = injection_policy(injection);
        return volume_by_name_choose(&kept->volume, request->fs_type,
                                     request->create.size_bytes > 0 ? &kept->create : NULL, error);
}

static const struct source_kind share_kind;
static const struct source_kind directory_kind;
static const struct source_kind unmade_kind;

/* What the volume is, its record says; one that is yet to be made has none. */
static void settle_kind(struct injection *injection)
{
        const struct volume_by_name *volume = &((const struct kept *)injection->volume)->volume;

        if (injection->request->raw)
                return;
        if (volume_by_name_is_apart(volume))
                injection->kind = &share_kind;
        else if (volume->create != NULL)
                injection->kind = &unmade_kind;
        else
                injection->kind = volume_by_name_has_any_filesystem(volume) ? &directory_kind : &source_volume;
}

static int find_volume(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        int r = choose(injection->volume, injection, error);

        injection->directory = !request->raw;
        (void)text_copy(injection->record.volume, sizeof injection->record.volume, request->source);
        if (request->subdir != NULL)
                injection_digest_text(injection, request->subdir);
        settle_kind(injection);
        return r;
}

/* A volume that was deleted and made anew is another one. */
static int identify(const struct injection *injection, char *ret_identity, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        const char *name = injection->request->source;
        struct kept *kept = injection->volume;
        int r = provision_record_find(kept->volume.call.config.state_dir, name, &made, error);

        if (r < 0 && r != -ENOENT)
                return r;
        (void)snprintf(ret_identity, SOURCE_IDENTITY_SIZE, "%llu", (unsigned long long)made.born);
        if (made.born != 0)
                return 0;
        return fail_because(error, EOPNOTSUPP, "write record", name,
                            "\"persist\" needs a volume that volume-create made, with this version of flexgraft");
}

/* What mount-list shows. */
static void put_type(int mount_fd, char *ret_type, size_t size)
{
        static const struct {
                long magic;
                const char *type;
        } types[] = { { EXT4_SUPER_MAGIC, "ext4" }, { XFS_SUPER_MAGIC, "xfs" }, { BTRFS_SUPER_MAGIC, "btrfs" } };
        struct statfs fs;

        if (fstatfs(mount_fd, &fs) < 0)
                return;
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if (fs.f_type == types[i].magic)
                        (void)text_copy(ret_type, size, types[i].type);
}

/* Of what is staged already; else the device tells, before it is mounted. ext4 mounts ext2 and ext3, too. */
static int check_type(const struct injection *injection, struct error *error)
{
        const char *asked = injection->request->fs_type ?: "";
        const char *found = injection->fs_type;

        if (asked[0] == '\0' || found[0] == '\0' || strcmp(asked, found) == 0 ||
            (text_starts(asked, "ext") && text_starts(found, "ext")))
                return 0;
        return fail_because(error, EINVAL, "find filesystem", injection->request->source,
                            "the volume holds a filesystem of type %s, and %.64s was requested", found, asked);
}

/* Of a server: its owners only remap shows, on most kernels. */
static int settle_apart(struct injection *injection, const struct volume_by_name *volume, struct error *error)
{
        use_keys_add_all(injection->record.uses, volume->call.record.uses);
        (void)text_copy(injection->fs_type, sizeof injection->fs_type, volume->call.kind->word);
        volume_by_name_add_attributes(volume, &injection->attributes);
        return attributes_map(injection, error);
}

static int take_subdir(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;

        if (injection->mount_fd >= 0 && request->subdir != NULL)
                injection->mount_fd =
                        detached_mount_descend(injection->mount_fd, request->subdir, request->source, error);
        return injection->mount_fd < 0 ? injection->mount_fd : 0;
}

static int make_clone(struct injection *injection, bool owned, struct error *error)
{
        const struct request *request = injection->request;
        struct kept *kept = injection->volume;
        struct volume_by_name *volume = &kept->volume;
        const struct volume_record *record = &volume->call.record;
        int fd = volume_by_name_stage(volume, error);
        int r;

        (void)owned; /* never true: not ownable */
        settle_kind(injection);
        if (fd < 0)
                return fd;
        if (volume_by_name_is_apart(volume))
                injection->mount_fd = fd;
        else
                injection->source_fd = fd;
        if ((r = injection_check_remap(injection, error)) < 0)
                return r;
        if (record->read_only && !request->read_only)
                return fail_because(error, EROFS, "stage", request->source,
                                    "the volume is mounted read-only on this node; set \"readOnly\": true");
        injection->volume_file = record->file;
        if (volume_by_name_is_apart(volume))
                return (r = take_subdir(injection, error)) < 0 ? r : settle_apart(injection, volume, error);
        if (volume->call.kind != NULL && !volume->call.kind->has_device) {
                volume_by_name_add_attributes(volume, &injection->attributes);
                injection->alone = access_is_single(record->access_mode);
                (void)text_copy(injection->record.origin, sizeof injection->record.origin, record->source);
        }
        use_keys_add_device(injection->record.uses, record->device_number);
        use_keys_add_opened(injection->record.uses, injection->source_fd);
        injection->mount_fd =
                detached_mount_clone(injection->source_fd, request->source, /* recursive= */ false, error);
        if ((r = take_subdir(injection, error)) < 0)
                return r;
        put_type(injection->mount_fd, injection->fs_type, sizeof injection->fs_type);
        if ((r = check_type(injection, error)) < 0)
                return r;
        /* not after make(), as of what is mounted from a device: it is not made a second time for remap */
        return volume_by_name_has_any_filesystem(volume) ? attributes_map(injection, error) : 0;
}

/* The device is known only now, so it is in no digest: the volume's name is. */
static int make_raw(struct injection *injection, bool owned, struct error *error)
{
        struct kept *kept = injection->volume;
        const struct volume_record *record = &kept->volume.call.record;
        int r = volume_by_name_attach(&kept->volume, error);

        if (r < 0 || (r = block_device_find(record->device, &injection->device, error)) < 0)
                return r;
        if (injection->device.number != record->device_number)
                return fail_because(error, ESTALE, OPERATION_FIND_DEVICE, record->device,
                                    "another device is there than the volume's");
        injection->volume_file = record->file;
        injection->record.disk = record->device_number;
        injection->record.disk_sequence = block_device_disk(record->device_number);
        use_keys_add_device(injection->record.uses, record->device_number);
        if ((r = source_raw_check_device(injection, error)) == 0)
                r = source_raw.make(injection, owned, error);
        injection->device.number = 0;
        return r;
}

/* Open, they would keep the stage mounted. The last of a volume's mounts detaches it. */
static int undo(struct injection *injection, struct error *error)
{
        struct kept *kept = injection->volume;
        struct volume_by_name *volume;
        int r;

        if (kept == NULL)
                return 0;
        fd_close(&injection->source_fd);
        fd_close(&injection->mount_fd);
        volume = &kept->volume;
        if (--kept->users > 0 || !volume->changed)
                return 0;
        if (volume_exec_helpers_end_killed())
                return fail_because(error, ECANCELED, "detach", volume->request.name,
                                    "a command of its pool was ended; the volume stays attached until "
                                    "volume-reconcile detaches it");
        if (volume->call.config.unmount_seconds > UNDO_UNMOUNT_S)
                volume->call.config.unmount_seconds = UNDO_UNMOUNT_S;
        r = volume_by_name_let_go(volume, injection->record.id, error);
        return r > 0 ? fail_because(error, EBUSY, "detach", volume->request.name,
                                    "something uses it; volume-reconcile detaches it when that has ended")
                     : r;
}

static void release(struct injection *injection)
{
        struct kept *kept = injection->volume;

        if (kept != NULL)
                volume_by_name_release(&kept->volume);
}

static int check_policy(const struct request *request, const struct policy *policy, struct error *error)
{
        return named_policy_check(policy, request->source, request->create.size_bytes > 0, request->create.pool, error);
}

static int check_policy_raw(const struct request *request, const struct policy *policy, struct error *error)
{
        int r = source_raw.check_policy(request, policy, error);

        return r < 0 ? r : check_policy(request, policy, error);
}

static const struct key create_keys[] = {
        { "size", 1, 1, KEY_SIZE, .offset = offsetof(struct request_create, size_bytes),
          .help = "bytes, or with k, m, g, t" },
        { "pool", 1, 0, KEY_TEXT, .maximum = JSON_VALUE_ID_MAX, .offset = offsetof(struct request_create, pool),
          .help = "the pool; a profile may choose it" },
        { "profile", 1, 0, KEY_TEXT, .maximum = MOUNT_RECORD_VOLUME_MAX - 1,
          .offset = offsetof(struct request_create, profile), .help = "profile of profiles.json" },
};
static const struct key_table create_table = KEY_TABLE(create_keys);

static int take_create(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *member;
        json_t *part;
        int r;

        if (!json_is_object(value))
                return json_value_refuse(error, key, "must be an object, {\"size\": ..., \"pool\": ...}");
        json_object_foreach ((json_t *)value, member, part) {
                const struct key *row = key_find(&create_table, 1, member);
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                r = row == NULL ? key_unknown(path, error) : key_take(row, path, &request->create, part, error);
                if (r < 0)
                        return r;
        }
        return request->create.size_bytes > 0 ? 0 : json_value_refuse(error, key, "has no \"size\"");
}

static const char *const ids[] = { "auto", "idmapped", "remap", "host", NULL };

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { "volume", 1, 1, KEY_TEXT, .maximum = MOUNT_RECORD_VOLUME_MAX - 1, .positional = 1, REQUEST_FIELD(source),
          .help = "name of a volume that volume-create made" },
        { REQUEST_KEY_TARGET },
        { "subdir", 1, 0, KEY_STRING, .maximum = PATH_MAX - 1, .pattern = "^(?!(.*/)?\\.\\.(/|$))[^/]",
          REQUEST_FIELD(subdir), .help = "the directory of the volume that is mounted, in place of its root" },
        { "raw", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(raw),
          .help = "true: its device itself, of a volume with targetType block; the target is a file" },
        { "create", 1, 0, KEY_OBJECT, .take = take_create, .members = &create_table, .spelling = SPELLED_MEMBERS,
          .traits = REQUEST_ONCE,
          .help = "{\"size\": \"10g\", \"pool\": P, \"profile\": F}: make the volume if there is none; pool and "
                  "profile may be left out" },
        { "fsType", 1, 0, KEY_STRING, .maximum = JSON_VALUE_ID_MAX, REQUEST_FIELD(fs_type),
          .help = "ext4, xfs or btrfs, made on a blank volume; ext4 if the volume says nothing else" },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_OPTIONS },
        { REQUEST_KEY_FALLBACK("remap") },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT_REPLACING(
                ids, REQUEST_KEY_REPLACE_AS("true: switch to this volume from what flexgraft mounted there before; "
                                            "always atomically")),
};
REQUEST_KEY_TABLE(source_volume_keys, keys);

static const char *const oci_types[] = { "volume", NULL };

static int allow_raw(struct injection *injection, struct error *error)
{
        return source_raw.allow(injection, error);
}

static int settle_raw(struct injection *injection, const struct mount_record *record, struct error *error)
{
        return source_raw.settle(injection, record, error);
}

static int undo_raw(struct injection *injection, struct error *error)
{
        int r = source_raw.undo(injection, error);

        return r < 0 ? r : undo(injection, error);
}

/* Its device itself: check() chooses it for "raw". */
static const struct source_kind raw_kind = {
        .word = "volume",
        .needs = NEED(DEVICE_CGROUP),
        .hints = block_hints,
        .maps = true,
        .fresh = true,
        .open_text = OPEN_TEXT,
        .make_text = SOURCE_RAW_MAKES,
        .check_policy = check_policy_raw,
        .hold = hold,
        .open = find_volume,
        .identify = identify,
        .make = make_raw,
        .check_recorded = source_raw_check_recorded,
        .allow = allow_raw,
        .settle = settle_raw,
        .undo = undo_raw,
        .undo_ms = UNDO_MS,
        .release = release,
};

/* In all rows of a volume whose filesystem is mounted. */
#define FILESYSTEM                                                                                                     \
        .word = "volume", .foreign = true, .shared = true, .switches = true, .open_text = OPEN_TEXT,                   \
        .check_policy = check_policy, .hold = hold, .open = find_volume, .identify = identify, .make = make_clone,     \
        .undo = undo, .undo_ms = UNDO_MS, .release = release

#define DEVICE_MAKE_TEXT "attach the volume, format it if it is blank, mount it on the node, clone that mount"

/* settle_kind() chooses these: a directory of a server, one of the node, and what may become either. */
static const struct source_kind share_kind = {
        FILESYSTEM,
        .close_waits = true,
        .hints = nfs_hints,
        .remap = REMAP_FALLBACK,
        .make_text = "find the server, mount the volume's directory, detached; map owners with remap where the kernel "
                     "cannot",
};

static const struct source_kind directory_kind = {
        FILESYSTEM,
        .hints = block_hints,
        .clones = true,
        .remap = REMAP_FALLBACK,
        .make_text = "clone the mount that the volume's directory is on; map owners with remap where the kernel cannot",
};

static const struct source_kind unmade_kind = {
        FILESYSTEM,
        .hints = nfs_hints,
        .remap = REMAP_ASKED,
        .make_text = "make the volume; " DEVICE_MAKE_TEXT,
};

static int check(struct request *request, struct error *error)
{
        if (request->source[0] == '\0')
                return json_value_refuse(error, "volume", "must not be empty");
        if (request->subdir != NULL && (request->subdir[0] == '/' || text_climbs(request->subdir)))
                return json_value_refuse(error, "subdir", "must be a path below the volume's root");
        if (request->raw && request->subdir != NULL)
                return json_value_refuse(error, "subdir", "is not for \"raw\"");
        if (request->raw && request->replace)
                return json_value_refuse(error, "replace", "is not for \"raw\": a process may have the device open");
        if (request->raw) {
                request->source_kind = &raw_kind;
                return source_raw_check(request, error);
        }
        if (request->options.fs_count > 0)
                return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                    "options: \"%.*s\" is an option of the filesystem, which all containers share; "
                                    "give it to the volume, in its profile",
                                    (int)strcspn(request->options.fs_options[0], "="), request->options.fs_options[0]);
        return 0;
}

const struct source_kind source_volume = {
        FILESYSTEM,
        .keys = &source_volume_keys,
        .needs = NEED(USER_NAMESPACES),
        .hints = block_hints,
        .oci_types = oci_types,
        .oci_source = "volume",
        .remap = REMAP_NEVER,
        .make_text = DEVICE_MAKE_TEXT,
        .make_undo = "close it; unmount and detach the volume unless it has another user",
        .check = check,
};
