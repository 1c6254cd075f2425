/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/schema.h"

#include "provision/request.h"

#define CREATE PROVISION_BIT(PROVISION_CREATE)
#define DELETE PROVISION_BIT(PROVISION_DELETE)
#define LIST PROVISION_BIT(PROVISION_LIST)
#define CAPACITY PROVISION_BIT(PROVISION_CAPACITY)
#define ALL ~0U

static const char *const target_types[] = { "mount", "block", NULL };
static const char *const policies[] = { "delete", "retain", "recycle", NULL };
static const char *const states[] = { "creating", "created", "deleting", NULL };
static const char *const disk_types[] = { "raw", NULL };

static const struct key volume_keys[] = {
        { "name", ALL, ALL, KEY_ANY, .help = "its name" },
        { "pool", ALL, ALL, KEY_ANY, .help = "the pool it is in" },
        { "type", ALL, ALL, KEY_ANY, .help = "the pool's type" },
        { "id", ALL, ALL, KEY_ANY, .help = "its id in the pool" },
        { "size", ALL, ALL, KEY_COUNT, .help = "bytes" },
        { "targetType", ALL, ALL, KEY_WORD, .words = target_types, .help = "what it is used as" },
        { "reclaimPolicy", ALL, ALL, KEY_WORD, .words = policies, .help = "what volume-delete does" },
        { "adopted", ALL, ALL, KEY_BOOLEAN, .help = "whether it was a disk of the pool before" },
        { "state", ALL, ALL, KEY_WORD, .words = states, .help = "how far creating or deleting it came" },
        { "parameters", ALL, ALL, KEY_STRINGS, .help = "what it was created with" },
        { "profile", ALL, 0, KEY_ANY, .help = "the profile it was created with" },
        { "fsType", ALL, 0, KEY_ANY, .help = "the filesystem that it gets" },
        { "accessMode", ALL, 0, KEY_ANY, .help = "CSI's access mode, from the profile" },
        { "path", ALL, 0, KEY_ANY, .help = "of the image or the device" },
        { "mountFlags", ALL, 0, KEY_ARRAY, .help = "from the profile" },
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
        { "type", ALL, ALL, KEY_OWN, .help = "loop, lvm or pmem; null where its file cannot be read" },
        { "total", ALL, 0, KEY_COUNT, .help = "bytes of the pool" },
        { "available", ALL, 0, KEY_COUNT, .help = "bytes left" },
        { "largest", ALL, 0, KEY_COUNT, .help = "bytes of the largest volume that there is room for" },
        { "alignment", ALL, 0, KEY_COUNT, .help = "sizes are rounded up to multiples of it" },
        { "targetType", LIST, 0, KEY_WORD, .words = disk_types, .help = "it is no volume" },
        { "profiles", CAPACITY, 0, KEY_ARRAY, .members = &profile, .help = "the profiles that choose this pool" },
        { "problem", ALL, 0, KEY_ANY, .help = "why it cannot be used" },
};
static const struct key_table pool = KEY_TABLE(pool_keys);

static const struct key reply_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = schema_success, .help = "it is done" },
        { "volume", CREATE, CREATE, KEY_OBJECT, .members = &volume, .help = "the volume" },
        { "name", DELETE, DELETE, KEY_ANY, .help = "the volume's name" },
        { "existed", CREATE | DELETE, CREATE | DELETE, KEY_BOOLEAN, .help = "whether it was there before" },
        { "pool", DELETE, 0, KEY_ANY, .help = "the pool it was in" },
        { "reclaimPolicy", DELETE, 0, KEY_WORD, .words = policies, .help = "what was done with it" },
        { "pools", LIST | CAPACITY, LIST | CAPACITY, KEY_ARRAY, .members = &pool, .help = "the pools" },
        { "disks", LIST, LIST, KEY_ARRAY, .members = &disk, .help = "disks that could be adopted" },
        { "volumes", LIST, LIST, KEY_ARRAY, .members = &volume, .help = "the volumes" },
        { "inactiveProfiles", CAPACITY, CAPACITY, KEY_ARRAY,
          .help = "profiles that volumes have and the file does not" },
        { "profilesProblem", CAPACITY, 0, KEY_ANY, .help = "why profiles.json was not taken" },
};
static const struct key_table reply = KEY_TABLE(reply_keys);

static const struct schema_form replies[] = { { "done", ALL, &reply }, { "failed", ALL, &schema_failure }, {} };

const struct schema provision_schemas[] = {
        [PROVISION_CREATE] = { .request = &provision_keys, .programs = CREATE, .replies = replies },
        [PROVISION_DELETE] = { .request = &provision_keys, .programs = DELETE, .replies = replies },
        [PROVISION_LIST] = { .request = &provision_keys, .programs = LIST, .replies = replies },
        [PROVISION_CAPACITY] = { .request = &provision_keys, .programs = CAPACITY, .replies = replies },
};
