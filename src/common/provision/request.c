/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/request.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/json_value.h"
#include "base/key.h"
#include "pool/pool.h"
#include "pool/pool_implied.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "state/access.h"

const char *const provision_policies[] = { "delete", "retain", "recycle", NULL };
static const char *const kept_apart[] = { "volume", "snapshot", NULL };

static int take_erase_after(void *object, const char *key, const json_t *value, struct error *error)
{
        struct provision_request *request = object;

        if (!json_is_boolean(value))
                return json_value_refuse(error, key, "must be true or false");
        request->keeps_content = json_is_false(value);
        request->erases = json_is_true(value);
        return 0;
}

/* Traits of the keys of volume-create (base/key.h). */
#define WITH_FROM (1U << 0)   /* a copy need not have it as its source has it */
#define WITH_MODIFY (1U << 1) /* a volume that is there may be given another */

#define FIELD(field) .offset = offsetof(struct provision_request, field)

static const struct key keys[] = {
        { "name", CREATE | DELETE | EXPAND | SNAPSHOT, CREATE | DELETE | EXPAND | SNAPSHOT, KEY_TEXT,
          .maximum = PROVISION_NAME_MAX - 1, FIELD(name), .positional = ~0U, .traits = WITH_FROM | WITH_MODIFY,
          .help = "name of the volume" },
        { "path", LIST, 0, KEY_PATH, FIELD(path),
          .help = "in place of the list: how the volume \"name\" is that is mounted here, and how full" },
        { "size", CREATE, 0, KEY_SIZE, .positional = ~0U, FIELD(size_bytes), .traits = WITH_FROM,
          .help = "bytes, or with k, m, g, t; rounded up as the pool needs it; required unless id or from "
                  "is given" },
        { "size", EXPAND, EXPAND, KEY_SIZE, .positional = ~0U, FIELD(size_bytes),
          .help = "what it is to have, in bytes or with k, m, g, t" },
        { "limit", CREATE | EXPAND, 0, KEY_SIZE, FIELD(limit_bytes), .traits = WITH_FROM,
          .help = "the volume must not have more than that; refused where rounding up would give it more" },
        { "pool", CREATE, 0, KEY_TEXT, .maximum = POOL_NAME_MAX - 1, FIELD(pool), .preset = POOL_DEFAULT,
          .traits = WITH_FROM, .help = "the pool, pools.d/POOL.json; a profile may choose another" },
        { "pool", LIST | CAPACITY, 0, KEY_TEXT, .maximum = POOL_NAME_MAX - 1, .positional = ~0U, FIELD(pool),
          .help = "only this pool" },
        { "name", LIST, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(name),
          .help = "only the volume of this name; pools and disks are left out" },
        { "profile", CREATE, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(profile),
          .help = "profile of profiles.json; it chooses pool, filesystem, mount flags and parameters" },
        { "profile", CAPACITY, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(profile),
          .help = "only this profile" },
        { "targetType", CREATE, 0, KEY_WORD, .words = access_target_types, FIELD(target_type), .preset = "mount",
          .help = "what the volume is used as" },
        { "fsType", CREATE, 0, KEY_TEXT, .maximum = 31, FIELD(fs_type),
          .help = "filesystem that it is formatted with when it is first used" },
        { "parameters", CREATE, 0, KEY_STRINGS, FIELD(parameters),
          .help = "object of strings; eraseAfter and kataContainers (true, false); "
                  "idMappable (auto, always, never); cache (auto, always); " POOL_PARAMETERS },
        { "parameters", CAPACITY, 0, KEY_STRINGS, FIELD(parameters),
          .help = "room for volumes with these parameters, as volume-create has them; needs pool" },
        { "eraseAfter", CREATE, 0, KEY_BOOLEAN, .take = take_erase_after, .preset = "true",
          .traits = WITH_FROM | WITH_MODIFY, .help = "false: volume-delete need not overwrite the content" },
        { "from", CREATE, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(from), .traits = WITH_FROM,
          .help = "a snapshot, or a volume that is not in use: the new one is a copy of it" },
        { "snapshot", SNAPSHOT, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, .positional = ~0U, FIELD(snapshot),
          .help = "name of the snapshot to take" },
        { "restore", SNAPSHOT, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(restore),
          .help = "put back the content of this snapshot, which stays" },
        { "freeze", SNAPSHOT, 0, KEY_BOOLEAN, FIELD(freeze),
          .help = "true: freeze a mounted filesystem also while all is copied" },
        { "id", CREATE, 0, KEY_TEXT, .maximum = PROVISION_ID_MAX - 1, FIELD(id),
          .help = "adopt this disk of the pool, with its content; volume-list shows the disks" },
        { "match", CREATE, 0, KEY_BOOLEAN, FIELD(match),
          .help = "true: adopt the smallest blank disk that is large enough, in all pools unless pool or profile says "
                  "which; make one if there is none" },
        { "modify", CREATE, 0, KEY_BOOLEAN, FIELD(modify), .traits = WITH_FROM | WITH_MODIFY,
          .help = "true: the volume is there, perhaps in use: it gets the eraseAfter and reclaimPolicy of this "
                  "request" },
        { "reclaimPolicy", CREATE, 0, KEY_WORD, .words = provision_policies, FIELD(reclaim_policy),
          .traits = WITH_FROM | WITH_MODIFY,
          .help = "what volume-delete does; if absent, delete, or retain for an adopted disk" },
        { "reclaimPolicy", DELETE, 0, KEY_WORD, .words = provision_policies, FIELD(reclaim_policy),
          .help = "erase the volume and free its space, keep disk and content, or erase it but keep the disk for "
                  "reuse; if absent, what volume-create was given" },
        { "only", DELETE, 0, KEY_WORD, .words = kept_apart, FIELD(only),
          .help = "delete it only if it is of this kind; else it counts as absent" },
        { "target", CREATE, 0, KEY_PATH, .maximum = PROVISION_TARGET_MAX - 1, FIELD(target), .traits = WITH_FROM,
          .help = "where a container gets the volume that asks for it as a device (CDI); if absent, /volumes/NAME" },
        { "namespace", CREATE, 0, KEY_TEXT, .maximum = 63, FIELD(namespace), .traits = WITH_FROM,
          .help = "namespace of Kubernetes whose pods alone get the volume by its name; \"-\": none does, only CSI's "
                  "PersistentVolumes; if absent, that of the first pod" },
        { "operation", CREATE | DELETE, 0, KEY_TEXT, .maximum = PROVISION_NAME_MAX - 1, FIELD(operation),
          .traits = WITH_FROM | WITH_MODIFY,
          .help = "an id of yours: the same request with the same id is one operation, for a week" },
};
const struct key_table provision_keys = KEY_TABLE(keys);

static int check_snapshot(const struct provision_request *request, struct error *error)
{
        if (request->snapshot == NULL && request->restore == NULL)
                return json_value_refuse(error, "snapshot", "is missing");
        if (request->snapshot != NULL && request->restore != NULL)
                return json_value_refuse(error, "restore", "cannot be combined with \"snapshot\"");
        if (strcmp(request->name, request->snapshot ?: request->restore) == 0)
                return json_value_refuse(error, request->snapshot != NULL ? "snapshot" : "restore",
                                         "is the volume itself");
        if (request->restore != NULL && request->freeze)
                return json_value_refuse(error, "freeze", "is for \"snapshot\"");
        return 0;
}

/* That no key is there without the trait. One that is false says nothing. */
static int check_all_have(const struct provision_request *request, unsigned trait, const char *complaint,
                          struct error *error)
{
        const char *name;
        const json_t *value;

        json_object_foreach (request->json, name, value) {
                const struct key *key = key_find(&provision_keys, PROVISION_BIT(request->verb), name);

                if (key != NULL && (key->traits & trait) == 0 && !json_is_false(value))
                        return json_value_refuse(error, name, complaint);
        }
        return 0;
}

/* What the other volume says. */
static int check_copy(const struct provision_request *request, struct error *error)
{
        int r = check_all_have(request, WITH_FROM, "cannot be combined with \"from\": the copy has that of its source",
                               error);

        if (r < 0)
                return r;
        return strcmp(request->name, request->from) == 0 ? json_value_refuse(error, "from", "is the volume itself") : 0;
}

/* A profile sets the others. */
static bool are_of_claim(const json_t *parameters)
{
        const char *key;
        const json_t *ignored;

        json_object_foreach ((json_t *)parameters, key, ignored)
                if (!pool_kind_is_of_claim(key))
                        return false;
        return true;
}

static int check(const struct provision_request *request, struct error *error)
{
        bool adopts = request->id != NULL;

        if (request->verb == PROVISION_SNAPSHOT)
                return check_snapshot(request, error);
        if (request->path != NULL && request->name == NULL)
                return json_value_refuse(error, "name", "is missing");
        if (request->path != NULL && request->pool != NULL)
                return json_value_refuse(error, "pool", "cannot be combined with \"path\", which names one volume");
        if (request->verb == PROVISION_CAPACITY && request->parameters != NULL &&
            (request->pool == NULL || request->profile != NULL))
                return json_value_refuse(error, "parameters", "are for one \"pool\", without a \"profile\"");
        if (request->verb != PROVISION_CREATE)
                return 0;
        if (request->modify)
                return check_all_have(request, WITH_MODIFY, "cannot be changed with \"modify\"", error);
        if (request->from != NULL)
                return check_copy(request, error);
        if (adopts && request->match)
                return json_value_refuse(error, "match", "cannot be combined with \"id\"");
        if (!adopts && request->size_bytes == 0)
                return json_value_refuse(error, "size", "is missing");
        if (request->parameters != NULL && request->profile != NULL && !are_of_claim(request->parameters))
                return json_value_refuse(error, "parameters", "cannot be combined with \"profile\", which sets them");
        if ((adopts || request->match) && request->parameters != NULL &&
            !(adopts && pool_implied_by(request->parameters)))
                return json_value_refuse(error, "parameters", "apply to new volumes, not to adopted disks");
        if (access_is_block(request->target_type) && request->fs_type != NULL)
                return json_value_refuse(error, "fsType", "a block volume has no filesystem");
        return 0;
}

int provision_request_parse(struct provision_request *ret_request, enum provision_verb verb, int argc, char **argv,
                            struct error *error)
{
        int r;

        *ret_request = (struct provision_request){ .verb = verb };
        if ((r = key_read_request(argc, argv, &ret_request->json, error)) < 0 ||
            (r = key_take_all(&provision_keys, PROVISION_BIT(verb), ret_request, ret_request->json, error)) < 0)
                return r;
        return check(ret_request, error);
}

void provision_request_release(struct provision_request *request)
{
        json_decref(request->json);
        request->json = NULL;
}
