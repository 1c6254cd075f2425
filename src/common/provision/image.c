/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/image.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "process/log.h"
#include "provision/call.h"

/* A call on the image's pool with the caller's records, which end_call() leaves to it. */
static void begin_call(struct provision_call *call, const struct provision_request *request,
                       const struct config *config, const struct state *state, const struct provision_image *image)
{
        *call = (struct provision_call){
                .request = request, .config = *config, .state = *state, .pool = *image->pool, .kind = image->pool->kind
        };
}

static void end_call(struct provision_call *call)
{
        provision_call_unlock_pool(call);
        call->state = (struct state)STATE_NONE;
        provision_call_release(call);
}

static int check_owner(struct provision_call *call, const struct provision_image *image, struct error *error)
{
        char owner[PROVISION_NAME_MAX];
        int r = owners_look(call, image->pool->name, image->id, owner, error);

        if (r <= 0 || strcmp(owner, image->name) == 0)
                return r < 0 ? r : 0;
        return fail_because(error, EBUSY, OPERATION_OPEN_IMAGE, image->id,
                            "the image %s of pool \"%s\" is the volume \"%.200s\"", image->id, image->pool->name,
                            owner);
}

/* The image's content is written to the pool's filesystem, after the record. */
static int write_record(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        return provision_record_write(&call->state, record, state_durability_before(&call->state, call->pool.path),
                                      error);
}

/* A sparse image may be larger than the room that is left, unless the pool has a share, which all volumes keep to. */
static int check_room(const struct provision_call *call, const struct provision_image *image, struct error *error)
{
        const struct provision_record none = {};
        struct pool_measure measure = {};

        return call->pool.max_percent < 100 || image->preallocate
                       ? provision_call_check_room(call, &none, image->size_bytes, &measure, error)
                       : 0;
}

/* With the pool's lock. ret_made: the image is there, and this call made it. What fails to be made leaves nothing. */
static int make(struct provision_call *call, const struct provision_image *image, struct provision_record *record,
                bool *ret_made, struct error *error)
{
        struct error ignored; /* the failure before is the one to report */
        struct pool_item item;
        int r = provision_call_check_filesystem(call, record, image->kata, error);

        record->lifecycle = PROVISION_CREATING;
        if (r < 0 || (r = write_record(call, record, error)) < 0)
                return r;
        if ((r = call->kind->create(&call->config, &call->pool, record, &item, error)) < 0) {
                (void)provision_record_remove(&call->state, record->name, record->id, &ignored);
                return r;
        }
        *ret_made = true;
        log_say("made the image %s/%s of %llu bytes", call->pool.path, record->id,
                (unsigned long long)record->size_bytes);
        record->lifecycle = PROVISION_CREATED;
        return write_record(call, record, error);
}

/* Whether the volume is this image, as it was made. */
static bool is_whole(const struct provision_image *image, const struct provision_record *record)
{
        return record->lifecycle == PROVISION_CREATED && strcmp(record->pool, image->pool->name) == 0 &&
               strcmp(record->id, image->id) == 0;
}

/* A record for an image that has none: it is made, or one that an earlier version of the driver made is taken. */
static int begin(struct provision_call *call, const struct provision_image *image, bool *ret_made, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        struct pool_item item;
        int r;

        /* until the record is written: of two volumes that name one image, each would find no other */
        if ((r = provision_call_lock_pool(call, error)) < 0 || (r = check_owner(call, image, error)) < 0)
                return r;
        provision_call_init_record(call, &record);
        (void)text_copy(record.id, sizeof record.id, image->id); /* fits: NAME_MAX */
        (void)text_copy(record.driver, sizeof record.driver, image->driver);
        (void)text_copy(record.reclaim_policy, sizeof record.reclaim_policy, image->exists ? "retain" : "delete");
        record.size_bytes = image->size_bytes;
        if (!image->exists) /* what a killed call began to make has room already, and is not asked again */
                return (r = check_room(call, image, error)) < 0 ? r : make(call, image, &record, ret_made, error);
        if ((r = call->kind->look(&call->config, &call->pool, image->id, &item, error)) < 0)
                return r == -ENOENT ? fail(error, ENOENT, OPERATION_OPEN_IMAGE, image->id) : r;
        record.size_bytes = item.size_bytes;
        record.adopted = true;
        record.lifecycle = PROVISION_CREATED;
        return write_record(call, &record, error);
}

static int go_on(struct provision_call *call, const struct provision_image *image, struct provision_record *record,
                 bool *ret_made, struct error *error)
{
        int r;

        if (strcmp(record->pool, image->pool->name) != 0 || strcmp(record->id, image->id) != 0)
                return fail_because(error, EEXIST, OPERATION_OPEN_IMAGE, image->name,
                                    "a volume of this name exists: it is %s of pool \"%s\", not %s of pool \"%s\"",
                                    record->id, record->pool, image->id, image->pool->name);
        if (record->lifecycle == PROVISION_DELETING)
                return fail_because(error, EBUSY, OPERATION_OPEN_IMAGE, image->name,
                                    "the volume is half deleted; run volume-delete again to finish it");
        if (record->lifecycle == PROVISION_CREATED)
                return image->exists ? 0
                                     : fail_because(error, ENODATA, OPERATION_FIND_CONTENT, image->name,
                                                    "the volume is lost: its image %s/%s is gone", image->pool->path,
                                                    image->id);
        if (record->driver[0] == '\0')
                return fail_because(error, EBUSY, OPERATION_OPEN_IMAGE, image->name,
                                    "the volume is half made; run the same volume-create again to finish it");
        /* an earlier call was killed: what is there has all of its size, and nothing in it */
        if ((r = provision_call_lock_pool(call, error)) < 0)
                return r;
        if (!image->exists) {
                record->size_bytes = image->size_bytes;
                record->asked_bytes = call->request->size_bytes;
                return make(call, image, record, ret_made, error);
        }
        record->lifecycle = PROVISION_CREATED;
        return write_record(call, record, error);
}

int provision_image_ensure(const struct config *config, const struct state *state, const struct provision_image *image,
                           bool *ret_made, struct error *error)
{
        static struct provision_call call;
        cleanup_provision_record struct provision_record record = {};
        cleanup_json json_t *parameters = json_pack("{s:s}", "preallocate", image->preallocate ? "true" : "false");
        const struct provision_request request = { .verb = PROVISION_CREATE,
                                                   .name = image->name,
                                                   .fs_type = image->fs_type[0] != '\0' ? image->fs_type : NULL,
                                                   .size_bytes = image->size_bytes,
                                                   .parameters = parameters };
        int r;

        *ret_made = false;
        if (strlen(image->name) >= PROVISION_NAME_MAX)
                return fail_because(error, ENAMETOOLONG, "make image", image->id,
                                    "the volume's name is longer than %d bytes", PROVISION_NAME_MAX - 1);
        r = provision_record_read(state, image->name, &record, error);
        if (r == 0 && image->exists && is_whole(image, &record))
                return 0; /* mostly, and without a call, which is large */
        begin_call(&call, &request, config, state, image);
        if (r == 0)
                r = go_on(&call, image, &record, ret_made, error);
        else if (r == -ENOENT)
                r = begin(&call, image, ret_made, error);
        if (r < 0 && *ret_made)
                provision_image_undo(config, state, image);
        *ret_made = *ret_made && r == 0;
        end_call(&call);
        return r;
}

int provision_image_check(const struct config *config, const struct state *state, const struct provision_image *image,
                          struct error *error)
{
        static struct provision_call call;
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(state, image->name, &record, error);

        if (r == 0 && record.lifecycle != PROVISION_CREATED)
                return fail_because(error, EBUSY, OPERATION_OPEN_IMAGE, image->name,
                                    "the volume is half made or half deleted; set \"size\" to finish it");
        if (r == 0 && is_whole(image, &record))
                return 0;
        if (r < 0 && r != -ENOENT)
                return r;
        begin_call(&call, /* request= */ NULL, config, state, image);
        r = check_owner(&call, image, error);
        end_call(&call);
        return r;
}

void provision_image_undo(const struct config *config, const struct state *state, const struct provision_image *image)
{
        struct error ignored; /* the failure before is the one to report */

        if (image->pool->kind->remove(config, image->pool, image->id, &ignored) == 0)
                (void)provision_record_remove(state, image->name, image->id, &ignored);
}
