/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply_object.h"

#include <string.h>

#include "base/reply.h"
#include "base/schema.h"
#include "pool/pool_implied.h"
#include "pool/pool_words.h"
#include "state/access.h"

const char *const provision_health_words[] = { "unknown", "ok", "unfinished", "missing", "failed", NULL };

static json_t *count(uint64_t number)
{
        return json_integer((json_int_t)(number > INT64_MAX ? INT64_MAX : number));
}

static json_t *count_if(bool known, uint64_t number)
{
        return known ? count(number) : NULL;
}

static json_t *text(const char *words)
{
        return words != NULL ? members_text(words) : NULL;
}

/* More members of an object, which stays the caller's. */
static struct members members_of(json_t *object)
{
        return (struct members){ .programs = ALL, .object = json_incref(object) };
}

/* ---- who has a volume */

/* A pod, a container, or this node, where it is none of kubelet's directories. */
static bool is_of_node(const struct use *use)
{
        return use->kind == USE_PUBLISHED && use->user[0] == '\0';
}

/* clang-format off */
#define USE(X) \
        X("pod", LIST, 0, use->kind == USE_PUBLISHED ? members_text(use->user) : NULL, \
          KEY_ANY, .help = "uid of the pod that has it") \
        X("container", LIST, 0, use->kind != USE_PUBLISHED ? reply_printable(use->user) : NULL, \
          KEY_ANY, .help = "or the container: its id, or \"pid N\"") \
        X("mount", LIST, 0, is_of_node(use) ? reply_printable(node) : NULL, \
          KEY_ANY, .help = "or this node, by its name: mount(8) has it mounted on a directory") \
        X("target", LIST, LIST, reply_printable(use->target), \
          KEY_ANY, .help = "where: the directory, or the path in the container") \
        X("readOnly", LIST, LIST, json_boolean(!use->writes), KEY_BOOLEAN, .help = "whether it cannot write") \
        X("raw", LIST, LIST, json_boolean(use->kind == USE_RAW), \
          KEY_BOOLEAN, .help = "whether it has the device itself") \
        X("since", LIST, 0, count_if(use->since != 0, use->since), KEY_COUNT, .help = "seconds since 1970") \
        X("stillOpen", LIST, 0, members_true(use->kind == USE_MOUNTED && use->removed), \
          KEY_BOOLEAN, \
          .help = "true: another volume has replaced it there, or it was removed, and the container still uses it")
/* clang-format on */

static const struct key use_rows[] = { USE(MEMBER_ROW) };
static const struct key_table use_keys = KEY_TABLE(use_rows);

json_t *provision_object_use(const struct use *use, const char *node)
{
        struct members members = { .programs = LIST };

        USE(MEMBER_PUT)
        return members_end(&members);
}

/* ---- a volume */

static const char *const states[] = { "creating", "created", "deleting", NULL };

/* Those that it was made with; what "eraseAfter" and "modify" said since counts. Owned by the caller. */
static json_t *parameters_of(const struct provision_record *record)
{
        json_t *parameters;

        if (record->keeps_content == !pool_parameter_flag(record->parameters, "eraseAfter", true))
                return json_incref(record->parameters);
        parameters = json_copy(record->parameters);
        (void)json_object_set_new(parameters, "eraseAfter", json_string(record->keeps_content ? "false" : "true"));
        return parameters;
}

static json_t *flags_of(const struct provision_record *record)
{
        return json_array_size(record->mount_flags) > 0 ? json_incref(record->mount_flags) : NULL;
}

/* What its record says. */
/* clang-format off */
#define OF_RECORD(X) \
        X("name", ALL, ALL, reply_printable(record->name), KEY_ANY, .help = "its name") \
        X("pool", ALL, ALL, json_string(record->pool), KEY_ANY, .help = "the pool it is in") \
        X("type", ALL, ALL, json_string(record->pool_type), KEY_ANY, .help = "the pool's type") \
        X("id", ALL, ALL, reply_printable(record->id), KEY_ANY, .help = "its id in the pool") \
        X("size", ALL, ALL, count(record->size_bytes), KEY_COUNT, .help = "bytes") \
        X("askedSize", ALL, 0, count_if(record->snapshot_of[0] != '\0', record->asked_bytes), \
          KEY_COUNT, .help = "of a snapshot: the least that a copy of it may be asked for, in bytes") \
        X("targetType", ALL, ALL, json_string(record->target_type), \
          KEY_WORD, .words = access_target_types, .help = "what it is used as") \
        X("reclaimPolicy", ALL, ALL, json_string(record->reclaim_policy), \
          KEY_WORD, .words = provision_policies, .help = "what volume-delete does") \
        X("adopted", ALL, ALL, json_boolean(record->adopted), \
          KEY_BOOLEAN, .help = "whether it was a disk of the pool before") \
        X("state", ALL, ALL, json_string(provision_lifecycle_word(record->lifecycle)), \
          KEY_WORD, .words = states, .help = "how far creating or deleting it came") \
        X("parameters", ALL, ALL, parameters_of(record), KEY_STRINGS, .help = "what it was created with") \
        X("profile", ALL, 0, text(record->profile), KEY_ANY, .help = "the profile it was created with") \
        X("fsType", ALL, 0, text(record->fs_type), KEY_ANY, .help = "the filesystem that it gets") \
        X("accessMode", ALL, 0, text(record->access_mode), KEY_ANY, .help = "CSI's access mode, from the profile") \
        X("path", ALL, 0, text(path), KEY_ANY, .help = "of the image or the device") \
        X("driver", ALL, 0, text(record->driver), \
          KEY_ANY, .help = "the driver that made it from its option \"size\"") \
        X("snapshotOf", ALL, 0, text(record->snapshot_of), KEY_ANY, .help = "the volume that it is a snapshot of") \
        X("taken", ALL, 0, count_if(record->taken != 0, (uint64_t)record->taken), \
          KEY_COUNT, .help = "when that was, in seconds since 1970") \
        X("copyOf", ALL, 0, text(record->copy_of), KEY_ANY, .help = "what it was made as a copy of") \
        X("restoring", ALL, 0, pool_kind_is_torn(record) ? text(record->restoring) : NULL, \
          KEY_ANY, .help = "the snapshot of which a restore was interrupted; it has to be ended") \
        X("mountFlags", ALL, 0, flags_of(record), KEY_ARRAY, .help = "from the profile")

#define OF_USES(X) \
        X("uses", LIST, 0, uses, \
          KEY_ARRAY, .members = &use_keys, .help = "the pods and containers that have it, and the node itself") \
        X("missing", LIST, 0, members_true(missing), KEY_BOOLEAN, .help = "true: the pool does not have it any more")

#define HEALTH(X) \
        X("health", LIST, LIST, json_string(condition->health), \
          KEY_WORD, .words = provision_health_words, .help = "whether it is well, as far as this node can tell")

#define CONDITION(X) \
        X("problem", LIST, 0, text(condition->problem), KEY_ANY, .help = "what is wrong with it") \
        X("used", LIST, 0, count_if(condition->measured, condition->used_bytes), \
          KEY_COUNT, .help = "bytes of it that are used; while it is mounted, or if sizeEnforced") \
        X("free", LIST, 0, count_if(condition->measured, condition->free_bytes), \
          KEY_COUNT, .help = "bytes that can still be written; while it is mounted, or if sizeEnforced")

/* of one that is a directory; the options of a pool that is implied are among its parameters */
#define OF_POOL(X) \
        X("sizeEnforced", ALL, 0, json_boolean(item->limited), \
          KEY_BOOLEAN, .help = "of a directory: whether the filesystem refuses what is more than its size") \
        X("onDelete", ALL, 0, text(pool->nfs.on_delete), \
          KEY_ANY, .help = "of a directory on a server: what volume-delete does with it, as the pool says") \
        X("mountOptions", ALL, 0, pool_implied_is_name(pool->name) ? NULL : text(pool->nfs.options), \
          KEY_ANY, .help = "of a directory on a server: those of its pool")
/* clang-format on */

static const struct key volume_rows[] = { OF_RECORD(MEMBER_ROW) OF_USES(MEMBER_ROW) HEALTH(MEMBER_ROW)
                                                  CONDITION(MEMBER_ROW) OF_POOL(MEMBER_ROW) };
static const struct key_table volume_keys = KEY_TABLE(volume_rows);

json_t *provision_object_volume(const struct provision_record *record, const char *path)
{
        struct members members = { .programs = ALL };

        OF_RECORD(MEMBER_PUT)
        return members_end(&members);
}

void provision_object_put_uses(json_t *volume, json_t *uses, bool missing)
{
        struct members members = members_of(volume);

        OF_USES(MEMBER_PUT)
        json_decref(members_end(&members));
}

void provision_object_put_condition(json_t *volume, const struct provision_condition *condition)
{
        struct members members = members_of(volume);

        if (condition->health != NULL) {
                HEALTH(MEMBER_PUT)
        }
        CONDITION(MEMBER_PUT)
        json_decref(members_end(&members));
}

void provision_object_put_pool(json_t *volume, const struct pool *pool, const struct pool_item *item)
{
        struct members members = members_of(volume);

        if (pool->kind->no_device) {
                OF_POOL(MEMBER_PUT)
        }
        json_decref(members_end(&members));
}

json_t *provision_object_found(const struct pool *pool, const struct provision_record *record,
                               const struct pool_item *item)
{
        json_t *volume = provision_object_volume(record, item->path);

        if (volume != NULL)
                provision_object_put_pool(volume, pool, item);
        return volume;
}

/* ---- a disk of a pool that is no volume */

static const char *const disk_types[] = { "raw", NULL };

/* clang-format off */
#define DISK(X) \
        X("id", ALL, ALL, reply_printable(item->id), KEY_ANY, .help = "its id in the pool, to adopt it by") \
        X("pool", ALL, ALL, json_string(pool->name), KEY_ANY, .help = "the pool it is in") \
        X("type", ALL, ALL, json_string(pool->kind->type), KEY_ANY, .help = "the pool's type") \
        X("size", ALL, ALL, count(item->size_bytes), KEY_COUNT, .help = "bytes") \
        X("path", ALL, ALL, reply_printable(item->path), KEY_ANY, .help = "of the image or the device") \
        X("targetType", ALL, ALL, json_string(disk_types[0]), \
          KEY_WORD, .words = disk_types, .help = "it is no volume")
/* clang-format on */

static const struct key disk_rows[] = { DISK(MEMBER_ROW) };
static const struct key_table disk_keys = KEY_TABLE(disk_rows);

json_t *provision_object_disk(const struct pool *pool, const struct pool_item *item)
{
        struct members members = { .programs = LIST };

        DISK(MEMBER_PUT)
        return members_end(&members);
}

/* ---- a pool, and a profile in it */

/* Whether it is known what there is, and what is left. */
static bool is_measured(const struct pool_measure *measure)
{
        return measure != NULL && !measure->unknown;
}

static json_t *alignment_of(const struct pool_measure *measure)
{
        return measure != NULL ? count(measure->alignment_bytes) : NULL;
}

static json_t *inodes_of(const struct pool_measure *measure, uint64_t number)
{
        return count_if(measure->inodes > 0, number);
}

static const struct pool_measure no_measure = { .unknown = true };

/* clang-format off */
#define ROOM(X) \
        X("largest", ALL, 0, count_if(is_measured(measure), room->largest_bytes), \
          KEY_COUNT, .help = "bytes of the largest volume that there is room for") \
        X("alignment", ALL, 0, alignment_of(measure), \
          KEY_COUNT, .help = "sizes are rounded up to multiples of it")

#define PROFILE(X) \
        X("profile", ALL, ALL, reply_printable(name), KEY_ANY, .help = "its name") \
        X("parameters", ALL, 0, json_incref((json_t *)parameters), \
          KEY_STRINGS, .help = "what its volumes are created with") \
        X("available", ALL, 0, count_if(is_measured(measure), room->available_bytes), \
          KEY_COUNT, .help = "bytes left for volumes of it") \
        ROOM(X) \
        X("problem", ALL, 0, text(problem), KEY_ANY, .help = "why the profile cannot be used in this pool")
/* clang-format on */

static const struct key profile_rows[] = { PROFILE(MEMBER_ROW) };
static const struct key_table profile_keys = KEY_TABLE(profile_rows);

json_t *provision_object_profile(const char *name, const json_t *profile, const struct pool_measure *measure,
                                 const char *problem)
{
        struct members members = { .programs = CAPACITY };
        const json_t *parameters = profile_parameters(profile);
        const struct pool_measure *room = measure != NULL ? measure : &no_measure;

        PROFILE(MEMBER_PUT)
        return members_end(&members);
}

/* clang-format off */
#define POOL(X) \
        X("name", ALL, ALL, json_string(pool->name), KEY_ANY, .help = "its name") \
        X("type", ALL, ALL, pool->kind != NULL ? json_string(pool->kind->type) : json_null(), \
          KEY_OWN, .help = POOL_TYPE_LIST "; null where its file cannot be read") \
        X("total", ALL, 0, count_if(is_measured(measure), room->total_bytes), \
          KEY_COUNT, .help = "bytes of the pool") \
        X("available", ALL, 0, count_if(is_measured(measure), room->available_bytes), KEY_COUNT, .help = "bytes left") \
        ROOM(X) \
        X("inodes", CAPACITY, 0, inodes_of(room, room->inodes), \
          KEY_COUNT, .help = "of the filesystem that the pool is in") \
        X("inodesFree", CAPACITY, 0, inodes_of(room, room->inodes_free), KEY_COUNT, .help = "of those, free") \
        X("targetType", LIST, 0, measure != NULL ? json_string(disk_types[0]) : NULL, \
          KEY_WORD, .words = disk_types, .help = "it is no volume") \
        X("profiles", CAPACITY, 0, measure != NULL ? json_array() : NULL, \
          KEY_ARRAY, .members = &profile_keys, .help = "the profiles that choose this pool") \
        X("problem", ALL, 0, text(problem), KEY_ANY, .help = "why it cannot be used")
/* clang-format on */

static const struct key pool_rows[] = { POOL(MEMBER_ROW) };
static const struct key_table pool_members = KEY_TABLE(pool_rows);

json_t *provision_object_pool(enum provision_verb verb, const struct pool *pool, const struct pool_measure *measure,
                              const char *problem)
{
        struct members members = { .programs = PROVISION_BIT(verb) };
        const struct pool_measure *room = measure != NULL ? measure : &no_measure;

        POOL(MEMBER_PUT)
        return members_end(&members);
}

/* ---- the volume that is mounted on a directory */

/* clang-format off */
#define MOUNTED(X) \
        X("name", LIST, LIST, reply_printable(mounted->name), KEY_ANY, .help = "of the volume") \
        X("path", LIST, LIST, reply_printable(mounted->path), KEY_ANY, .help = "where it is mounted") \
        X("type", LIST, 0, text(mounted->type), KEY_ANY, .help = "as in the options of the driver: loop, nfs, ...") \
        X("ownFilesystem", LIST, 0, mounted->known ? json_boolean(mounted->owned) : NULL, \
          KEY_BOOLEAN, .help = "false: it is a directory of another one, and has no size") \
        X("health", LIST, LIST, json_string(condition->health), \
          KEY_WORD, .words = provision_health_words, .help = "as of a volume") \
        X("problem", LIST, 0, text(condition->problem), KEY_ANY, .help = "what is wrong with it") \
        X("size", LIST, 0, count_if(mounted->size_bytes > 0, mounted->size_bytes), \
          KEY_COUNT, .help = "bytes of its filesystem, or of its device") \
        X("used", LIST, 0, count_if(condition->measured, condition->used_bytes), KEY_COUNT, .help = "bytes") \
        X("free", LIST, 0, count_if(condition->measured, condition->free_bytes), \
          KEY_COUNT, .help = "bytes that can still be written") \
        X("inodes", LIST, 0, count_if(mounted->inodes > 0, mounted->inodes), \
          KEY_COUNT, .help = "of its filesystem") \
        X("inodesFree", LIST, 0, count_if(mounted->inodes > 0, mounted->inodes_free), \
          KEY_COUNT, .help = "of those, free")
/* clang-format on */

static const struct key mounted_rows[] = { MOUNTED(MEMBER_ROW) };
static const struct key_table mounted_keys = KEY_TABLE(mounted_rows);

json_t *provision_object_mounted(const struct provision_mounted *mounted)
{
        struct members members = { .programs = LIST };
        const struct provision_condition *condition = &mounted->condition;

        MOUNTED(MEMBER_PUT)
        return members_end(&members);
}

/* ---- the reply */

#define WITH_VOLUME (CREATE | EXPAND | SNAPSHOT)

/* clang-format off */
#define DONE(X) \
        X("status", ALL, ALL, json_string(schema_success[0]), KEY_WORD, .words = schema_success, .help = "it is done") \
        X("volume", WITH_VOLUME, WITH_VOLUME, done->volume, \
          KEY_OBJECT, .members = &volume_keys, .help = "the volume") \
        X("sizeBefore", EXPAND, EXPAND, count(done->size_before), KEY_COUNT, .help = "bytes that it had before") \
        X("filesystem", EXPAND, 0, text(done->filesystem), \
          KEY_ANY, .help = "type of its filesystem, which has all of it now; absent: it has none yet") \
        X("existed", SNAPSHOT, 0, done->restored == NULL ? json_boolean(done->existed) : NULL, \
          KEY_BOOLEAN, .help = "whether the snapshot was taken before, by an earlier call") \
        X("restored", SNAPSHOT, 0, text(done->restored), \
          KEY_ANY, .help = "the snapshot whose content the volume has now") \
        X("name", DELETE, DELETE, reply_printable(done->name), KEY_ANY, .help = "the volume's name") \
        X("existed", CREATE | DELETE, CREATE | DELETE, json_boolean(done->existed), \
          KEY_BOOLEAN, .help = "whether it was there before") \
        X("pool", DELETE, 0, text(done->pool), KEY_ANY, .help = "the pool it was in") \
        X("reclaimPolicy", DELETE, 0, text(done->reclaim_policy), \
          KEY_WORD, .words = provision_policies, .help = "what was done with it") \
        X("pools", LIST | CAPACITY, LIST | CAPACITY, json_array(), \
          KEY_ARRAY, .members = &pool_members, .help = "the pools") \
        X("disks", LIST, LIST, json_array(), \
          KEY_ARRAY, .members = &disk_keys, .help = "disks that could be adopted") \
        X("mounted", LIST, 0, done->mounted, \
          KEY_OBJECT, .members = &mounted_keys, .help = "the volume of \"path\"") \
        X("volumes", LIST, LIST, json_array(), KEY_ARRAY, .members = &volume_keys, .help = "the volumes") \
        X("inactiveProfiles", CAPACITY, CAPACITY, profiles_inactive(done->profiles), \
          KEY_ARRAY, .help = "profiles that volumes have and the file does not") \
        X("profilesProblem", CREATE | CAPACITY, 0, done->profiles != NULL ? text(done->profiles->problem) : NULL, \
          KEY_ANY, .help = "why profiles.json was not taken") \
        X("profilesIgnored", CREATE | CAPACITY, 0, done->profiles != NULL ? profiles_ignored(done->profiles) : NULL, \
          KEY_ARRAY, .help = "fields of profiles.json that are unknown")
/* clang-format on */

static const struct key done_rows[] = { DONE(MEMBER_ROW) };
const struct key_table provision_done_keys = KEY_TABLE(done_rows);

json_t *provision_object_done(enum provision_verb verb, const struct provision_done *done)
{
        struct members members = { .programs = PROVISION_BIT(verb) };

        DONE(MEMBER_PUT)
        return members_end(&members);
}
