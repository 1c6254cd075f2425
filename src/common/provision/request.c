/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/request.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/json_value.h"
#include "base/key.h"
#include "provision/pool.h"
#include "provision/record.h"

#define CREATE PROVISION_BIT(PROVISION_CREATE)
#define DELETE PROVISION_BIT(PROVISION_DELETE)
#define LIST PROVISION_BIT(PROVISION_LIST)
#define CAPACITY PROVISION_BIT(PROVISION_CAPACITY)

static const char *const target_types[] = { "mount", "block", NULL };
static const char *const policies[] = { "delete", "retain", "recycle", NULL };

static int take_erase_after(void *object, const char *key, const json_t *value, struct error *error)
{
        struct provision_request *request = object;

        if (!json_is_boolean(value))
                return json_value_refuse(error, key, "must be true or false");
        request->keeps_content = json_is_false(value);
        return 0;
}

#define FIELD(field) .offset = offsetof(struct provision_request, field)

static const struct key keys[] = {
        { "name", CREATE | DELETE, CREATE | DELETE, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(name),
          .help = "name of the volume" },
        { "size", CREATE, 0, KEY_SIZE, FIELD(size_bytes),
          .help = "bytes, or with k, m, g, t; rounded up as the pool needs it; required unless id is given" },
        { "pool", CREATE, 0, KEY_TEXT, .maximum = POOL_NAME_MAX - 1, FIELD(pool), .preset = POOL_DEFAULT,
          .help = "the pool, pools.d/POOL.json; a profile may choose another" },
        { "pool", LIST | CAPACITY, 0, KEY_TEXT, .maximum = POOL_NAME_MAX - 1, FIELD(pool), .help = "only this pool" },
        { "profile", CREATE, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(profile),
          .help = "profile of profiles.json; it chooses pool, filesystem, mount flags and parameters" },
        { "profile", CAPACITY, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(profile),
          .help = "only this profile" },
        { "targetType", CREATE, 0, KEY_WORD, .words = target_types, FIELD(target_type), .preset = "mount",
          .help = "what the volume is used as" },
        { "fsType", CREATE, 0, KEY_TEXT, .maximum = 31, FIELD(fs_type),
          .help = "filesystem that it is formatted with when it is first used" },
        { "parameters", CREATE, 0, KEY_STRINGS, FIELD(parameters),
          .help = "object of strings; loop: preallocate (true, false); lvm: type (linear, striped, mirror, raid1, "
                  "raid5, raid6, raid10, thin), stripes, mirrors, stripesize, thinpool; pmem: usage (AppDirect, "
                  "FileIO)" },
        { "eraseAfter", CREATE, 0, KEY_BOOLEAN, .take = take_erase_after, .preset = "true",
          .help = "false: volume-delete need not overwrite the content" },
        { "id", CREATE, 0, KEY_TEXT, .maximum = PROVISION_ID_MAX - 1, FIELD(id),
          .help = "adopt this disk of the pool, with its content; volume-list shows the disks" },
        { "match", CREATE, 0, KEY_BOOLEAN, FIELD(match),
          .help = "true: adopt the smallest blank disk that is large enough; make one if there is none" },
        { "reclaimPolicy", CREATE, 0, KEY_WORD, .words = policies, FIELD(reclaim_policy),
          .help = "what volume-delete does; if absent, delete, or retain for an adopted disk" },
        { "reclaimPolicy", DELETE, 0, KEY_WORD, .words = policies, FIELD(reclaim_policy),
          .help = "erase the volume and free its space, keep disk and content, or erase it but keep the disk for "
                  "reuse; "
                  "if absent, what volume-create was given" },
        { "operation", CREATE | DELETE, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(operation),
          .help = "an id of yours: the same request with the same id is one operation, for a week" },
};
const struct key_table provision_keys = KEY_TABLE(keys);

static int check(const struct provision_request *request, struct error *error)
{
        bool adopts = request->id != NULL;

        if (request->verb == PROVISION_LIST || request->verb == PROVISION_CAPACITY)
                return 0;
        if (request->verb == PROVISION_DELETE)
                return 0;
        if (adopts && request->match)
                return json_value_refuse(error, "match", "looks for a disk, and \"id\" names one");
        if (!adopts && request->size_bytes == 0)
                return json_value_refuse(error, "size", "is missing");
        if (request->parameters != NULL && request->profile != NULL)
                return json_value_refuse(error, "parameters", "are the profile's to say");
        if ((adopts || request->match) && request->parameters != NULL)
                return json_value_refuse(error, "parameters", "are for what is made, not for what is there");
        if (request->target_type != NULL && strcmp(request->target_type, "block") == 0 && request->fs_type != NULL)
                return json_value_refuse(error, "fsType", "a block volume has no filesystem");
        return 0;
}

int provision_request_parse(struct provision_request *ret_request, enum provision_verb verb, int argc, char **argv,
                            struct error *error)
{
        bool optional = verb == PROVISION_LIST || verb == PROVISION_CAPACITY;
        int r;

        *ret_request = (struct provision_request){ .verb = verb };
        if ((r = key_read_request(argc, argv, optional, &ret_request->json, error)) < 0 ||
            (r = key_take_all(&provision_keys, PROVISION_BIT(verb), ret_request, ret_request->json, error)) < 0)
                return r;
        return check(ret_request, error);
}

void provision_request_release(struct provision_request *request)
{
        json_decref(request->json);
        request->json = NULL;
}
