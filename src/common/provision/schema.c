/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply.h"

#include "base/failure.h"
#include "pool/pool_words.h"
#include "provision/request.h"
#include "state/access.h"

#define CREATE PROVISION_BIT(PROVISION_CREATE)
#define DELETE PROVISION_BIT(PROVISION_DELETE)
#define LIST PROVISION_BIT(PROVISION_LIST)
#define CAPACITY PROVISION_BIT(PROVISION_CAPACITY)
#define EXPAND PROVISION_BIT(PROVISION_EXPAND)
#define SNAPSHOT PROVISION_BIT(PROVISION_SNAPSHOT)

static const char *const states[] = { "creating", "created", "deleting", NULL };
const char *const provision_health_words[] = { "unknown", "ok", "unfinished", "missing", "failed", NULL };
static const char *const disk_types[] = { "raw", NULL };

static const struct key use_keys[] = {
        { "pod", LIST, 0, KEY_ANY, .help = "uid of the pod that has it" },
        { "container", LIST, 0, KEY_ANY, .help = "or the container: its id, or \"pid N\"" },
        { "mount", LIST, 0, KEY_ANY, .help = "or this node, by its name: mount(8) has it mounted on a directory" },
        { "target", LIST, LIST, KEY_ANY, .help = "where: the directory, or the path in the container" },
        { "readOnly", LIST, LIST, KEY_BOOLEAN, .help = "whether it cannot write" },
        { "raw", LIST, LIST, KEY_BOOLEAN, .help = "whether it has the device itself" },
        { "since", LIST, 0, KEY_COUNT, .help = "seconds since 1970" },
        { "stillOpen", LIST, 0, KEY_BOOLEAN,
          .help = "true: another volume has replaced it there, and a process still has files of it open" },
};
static const struct key_table use = KEY_TABLE(use_keys);

static const struct key volume_keys[] = {
        { "name", ALL, ALL, KEY_ANY, .help = "its name" },
        { "pool", ALL, ALL, KEY_ANY, .help = "the pool it is in" },
        { "type", ALL, ALL, KEY_ANY, .help = "the pool's type" },
        { "id", ALL, ALL, KEY_ANY, .help = "its id in the pool" },
        { "size", ALL, ALL, KEY_COUNT, .help = "bytes" },
        { "targetType", ALL, ALL, KEY_WORD, .words = access_target_types, .help = "what it is used as" },
        { "reclaimPolicy", ALL, ALL, KEY_WORD, .words = provision_policies, .help = "what volume-delete does" },
        { "adopted", ALL, ALL, KEY_BOOLEAN, .help = "whether it was a disk of the pool before" },
        { "state", ALL, ALL, KEY_WORD, .words = states, .help = "how far creating or deleting it came" },
        { "parameters", ALL, ALL, KEY_STRINGS, .help = "what it was created with" },
        { "profile", ALL, 0, KEY_ANY, .help = "the profile it was created with" },
        { "fsType", ALL, 0, KEY_ANY, .help = "the filesystem that it gets" },
        { "accessMode", ALL, 0, KEY_ANY, .help = "CSI's access mode, from the profile" },
        { "path", ALL, 0, KEY_ANY, .help = "of the image or the device" },
        { "driver", ALL, 0, KEY_ANY, .help = "the driver that made it from its option \"size\"" },
        { "snapshotOf", ALL, 0, KEY_ANY, .help = "the volume that it is a snapshot of" },
        { "taken", ALL, 0, KEY_COUNT, .help = "when that was, in seconds since 1970" },
        { "copyOf", ALL, 0, KEY_ANY, .help = "what it was made as a copy of" },
        { "restoring", ALL, 0, KEY_ANY, .help = "the snapshot of which a restore was interrupted; it has to be ended" },
        { "mountFlags", ALL, 0, KEY_ARRAY, .help = "from the profile" },
        { "uses", LIST, 0, KEY_ARRAY, .members = &use,
          .help = "the pods and containers that have it, and the node itself" },
        { "health", LIST, LIST, KEY_WORD, .words = provision_health_words,
          .help = "whether it is well, as far as this node can tell" },
        { "problem", LIST, 0, KEY_ANY, .help = "what is wrong with it" },
        { "used", LIST, 0, KEY_COUNT, .help = "bytes of it that are used; while it is mounted, or if sizeEnforced" },
        { "free", LIST, 0, KEY_COUNT,
          .help = "bytes that can still be written; while it is mounted, or if sizeEnforced" },
        { "sizeEnforced", ALL, 0, KEY_BOOLEAN,
          .help = "of a directory: whether the filesystem refuses what is more than its size" },
        { "onDelete", ALL, 0, KEY_ANY,
          .help = "of a directory on a server: what volume-delete does with it, as the pool says" },
        { "mountOptions", ALL, 0, KEY_ANY, .help = "of a directory on a server: those of its pool" },
        { "missing", LIST, 0, KEY_BOOLEAN, .help = "true: the pool does not have it any more" },
};
static const struct key_table volume = KEY_TABLE(volume_keys);

static const struct key disk_keys[] = {
        { "id", ALL, ALL, KEY_ANY, .help = "its id in the pool, to adopt it by" },
        { "pool", ALL, ALL, KEY_ANY, .help = "the pool it is in" },
        { "type", ALL, ALL, KEY_ANY, .help = "the pool's type" },
        { "size", ALL, ALL, KEY_COUNT, .help = "bytes" },
        { "path", ALL, ALL, KEY_ANY, .help = "of the image or the device" },
        { "targetType", ALL, ALL, KEY_WORD, .words = disk_types, .help = "it is no volume" },
};
static const struct key_table disk = KEY_TABLE(disk_keys);

static const struct key profile_keys[] = {
        { "profile", ALL, ALL, KEY_ANY, .help = "its name" },
        { "available", ALL, 0, KEY_COUNT, .help = "bytes left for volumes of it" },
        { "largest", ALL, 0, KEY_COUNT, .help = "bytes of the largest volume that there is room for" },
        { "alignment", ALL, 0, KEY_COUNT, .help = "sizes are rounded up to multiples of it" },
        { "problem", ALL, 0, KEY_ANY, .help = "why the profile cannot be used in this pool" },
};
static const struct key_table profile = KEY_TABLE(profile_keys);

static const struct key pool_keys[] = {
        { "name", ALL, ALL, KEY_ANY, .help = "its name" },
        { "type", ALL, ALL, KEY_OWN, .help = POOL_TYPE_LIST "; null where its file cannot be read" },
        { "total", ALL, 0, KEY_COUNT, .help = "bytes of the pool" },
        { "available", ALL, 0, KEY_COUNT, .help = "bytes left" },
        { "largest", ALL, 0, KEY_COUNT, .help = "bytes of the largest volume that there is room for" },
        { "alignment", ALL, 0, KEY_COUNT, .help = "sizes are rounded up to multiples of it" },
        { "inodes", CAPACITY, 0, KEY_COUNT, .help = "of the filesystem that the pool is in" },
        { "inodesFree", CAPACITY, 0, KEY_COUNT, .help = "of those, free" },
        { "targetType", LIST, 0, KEY_WORD, .words = disk_types, .help = "it is no volume" },
        { "profiles", CAPACITY, 0, KEY_ARRAY, .members = &profile, .help = "the profiles that choose this pool" },
        { "problem", ALL, 0, KEY_ANY, .help = "why it cannot be used" },
};
static const struct key_table pool = KEY_TABLE(pool_keys);

static const struct key mounted_keys[] = {
        { "name", LIST, LIST, KEY_ANY, .help = "of the volume" },
        { "path", LIST, LIST, KEY_ANY, .help = "where it is mounted" },
        { "type", LIST, 0, KEY_ANY, .help = "as in the options of the driver: loop, nfs, ..." },
        { "ownFilesystem", LIST, 0, KEY_BOOLEAN, .help = "false: it is a directory of another one, and has no size" },
        { "health", LIST, LIST, KEY_WORD, .words = provision_health_words, .help = "as of a volume" },
        { "problem", LIST, 0, KEY_ANY, .help = "what is wrong with it" },
        { "size", LIST, 0, KEY_COUNT, .help = "bytes of its filesystem, or of its device" },
        { "used", LIST, 0, KEY_COUNT, .help = "bytes" },
        { "free", LIST, 0, KEY_COUNT, .help = "bytes that can still be written" },
        { "inodes", LIST, 0, KEY_COUNT, .help = "of its filesystem" },
        { "inodesFree", LIST, 0, KEY_COUNT, .help = "of those, free" },
};
static const struct key_table mounted = KEY_TABLE(mounted_keys);

static const struct key reply_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = schema_success, .help = "it is done" },
        { "volume", CREATE | EXPAND | SNAPSHOT, CREATE | EXPAND | SNAPSHOT, KEY_OBJECT, .members = &volume,
          .help = "the volume" },
        { "sizeBefore", EXPAND, EXPAND, KEY_COUNT, .help = "bytes that it had before" },
        { "filesystem", EXPAND, 0, KEY_ANY,
          .help = "type of its filesystem, which has all of it now; absent: it has none yet" },
        { "existed", SNAPSHOT, 0, KEY_BOOLEAN, .help = "whether the snapshot was taken before, by an earlier call" },
        { "restored", SNAPSHOT, 0, KEY_ANY, .help = "the snapshot whose content the volume has now" },
        { "name", DELETE, DELETE, KEY_ANY, .help = "the volume's name" },
        { "existed", CREATE | DELETE, CREATE | DELETE, KEY_BOOLEAN, .help = "whether it was there before" },
        { "pool", DELETE, 0, KEY_ANY, .help = "the pool it was in" },
        { "reclaimPolicy", DELETE, 0, KEY_WORD, .words = provision_policies, .help = "what was done with it" },
        { "pools", LIST | CAPACITY, LIST | CAPACITY, KEY_ARRAY, .members = &pool, .help = "the pools" },
        { "disks", LIST, LIST, KEY_ARRAY, .members = &disk, .help = "disks that could be adopted" },
        { "mounted", LIST, 0, KEY_OBJECT, .members = &mounted, .help = "the volume of \"path\"" },
        { "volumes", LIST, LIST, KEY_ARRAY, .members = &volume, .help = "the volumes" },
        { "inactiveProfiles", CAPACITY, CAPACITY, KEY_ARRAY,
          .help = "profiles that volumes have and the file does not" },
        { "profilesProblem", CREATE | CAPACITY, 0, KEY_ANY, .help = "why profiles.json was not taken" },
};
static const struct key_table reply = KEY_TABLE(reply_keys);

static const struct schema_form replies[] = { { "done", ALL, &reply }, { "failed", ALL, &failure_keys }, {} };

const struct schema provision_schemas[] = {
        [PROVISION_CREATE] = { .request = &provision_keys,
                               .programs = CREATE,
                               .replies = replies,
                               .people = provision_people_created },
        [PROVISION_DELETE] = { .request = &provision_keys,
                               .programs = DELETE,
                               .replies = replies,
                               .people = provision_people_deleted },
        [PROVISION_LIST] = { .request = &provision_keys,
                             .programs = LIST,
                             .replies = replies,
                             .people = provision_people_listed },
        [PROVISION_CAPACITY] = { .request = &provision_keys,
                                 .programs = CAPACITY,
                                 .replies = replies,
                                 .people = provision_people_capacity },
        [PROVISION_EXPAND] = { .request = &provision_keys,
                               .programs = EXPAND,
                               .replies = replies,
                               .people = provision_people_expanded },
        [PROVISION_SNAPSHOT] = { .request = &provision_keys,
                                 .programs = SNAPSHOT,
                                 .replies = replies,
                                 .people = provision_people_snapshot },
};
