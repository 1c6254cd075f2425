/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kind_kata.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "volume/kata_image.h"
#include "volume/kind.h"
#include "volume/kind_loop.h"
#include "volume/publish.h"
#include "volume/stage.h"
#include "volume/unpublish.h"

/* The loop device's part. */
struct inner {
        struct volume_request request;
        struct volume_call call;
};

static int is_wanted(const struct volume_call *call, bool *ret_wanted, struct error *error)
{
        const char *text;
        int r = volume_request_option(call->request, "kataContainers", &text, error);

        if (r < 0)
                return r;
        *ret_wanted = text != NULL && strcmp(text, "true") == 0;
        if (text != NULL && !*ret_wanted && strcmp(text, "false") != 0)
                return fail_because(error, EINVAL, "check options", "kataContainers",
                                    "kataContainers: must be true or false");
        return 0;
}

static int check_kind(const struct volume_call *call, struct error *error)
{
        return call->kind->attach != NULL
                       ? 0
                       : fail_because(error, EINVAL, "mount", call->request->name,
                                      "volumes of type %s are not for virtual machines", call->kind->word);
}

static uint64_t key_of(const struct volume_call *call, const char *name)
{
        uint64_t key = hash_bytes(HASH_SEED, call->driver, strlen(call->driver) + 1);

        return hash_bytes(key, name, strlen(name));
}

/* Where the volume's own filesystem is; PATH_MAX bytes. */
static int put_dir(const struct volume_call *call, const char *name, char *ret_dir, struct error *error)
{
        return snprintf(ret_dir, PATH_MAX, "%s/kata/%016llx", call->config.state_dir,
                        (unsigned long long)key_of(call, name)) < PATH_MAX - (int)sizeof KATA_IMAGE_NAME - 1
                       ? 0
                       : fail(error, ENAMETOOLONG, "mount", name);
}

/* dir: where the volume's own filesystem is; target: what the call is about there. */
static void begin_inner(struct inner *inner, const struct volume_call *call, const char *dir, const char *target)
{
        volume_call_begin_within(call, &inner->request, &inner->call);
        (void)snprintf(inner->request.name, sizeof inner->request.name, "kata-%.64s", strrchr(dir, '/') + 1);
        inner->request.read_only = call->request->read_only;
        inner->request.mount_options = call->request->mount_options;
        (void)text_copy(inner->request.fs_type, sizeof inner->request.fs_type, call->request->fs_type);
        (void)text_copy(inner->request.dir, sizeof inner->request.dir, target);
        inner->call.kind = &kind_kata;
}

static void end_inner(struct inner *inner)
{
        volume_call_end_within(&inner->request, &inner->call);
}

static int stage_inner(struct inner *inner, const char *dir, struct error *error)
{
        struct volume_call *call = &inner->call;
        int r = volume_call_open(call, error);

        if (r < 0)
                return r;
        if (!call->recorded) {
                volume_call_begin_record(call);
                (void)snprintf(call->record.source, sizeof call->record.source, "%s/" KATA_IMAGE_NAME, dir);
                if ((r = volume_call_save(call, FILE_DURABLE, error)) < 0)
                        return r;
        }
        return volume_stage_attached(call, error);
}

/* After volume_kind_open(). */
static int stage_volume(struct volume_call *call, const char *dir, struct error *error)
{
        static struct volume_request request; /* static, for its size */
        struct volume_request *given = call->request;
        int r;

        request = *given;
        request.fs_type[0] = '\0'; /* that is the image's */
        request.read_only = false; /* likewise */
        (void)text_copy(request.dir, sizeof request.dir, dir);
        call->request = &request;
        r = volume_stage_attached(call, error);
        call->request = given;
        return r;
}

/* The loop device, and the volume's own filesystem, which is on dir. */
static int unstage_volume(const struct volume_call *call, const char *dir, struct error *error)
{
        static struct inner inner; /* static, for their size */
        static struct inner own;
        int r;

        begin_inner(&inner, call, dir, dir);
        if ((r = volume_call_open(&inner.call, error)) == 0 &&
            (!inner.call.recorded || (r = inner.call.kind->detach(&inner.call, error)) == 0))
                r = volume_call_drop(&inner.call, error);
        end_inner(&inner);
        if (r < 0)
                return r;
        begin_inner(&own, call, dir, dir);
        r = volume_take_off(&own.call, error);
        end_inner(&own);
        return r;
}

/* Gives: where the volume's own filesystem is, if it is such a volume; PATH_MAX bytes. */
static int begin(struct volume_call *call, bool *ret_wanted, char *ret_dir, struct error *error)
{
        int r = is_wanted(call, ret_wanted, error);

        if (r < 0 || !*ret_wanted)
                return r;
        if ((r = volume_kind_open(call, error)) < 0 || (r = check_kind(call, error)) < 0)
                return r;
        return put_dir(call, call->request->name, ret_dir, error);
}

int kata_stage(struct volume_call *call, struct error *error)
{
        static struct inner inner; /* static, for its size */
        char dir[PATH_MAX];
        bool wanted;
        int r;

        if ((r = begin(call, &wanted, dir, error)) < 0)
                return r;
        if (!wanted)
                return volume_stage(call, error);
        if ((r = stage_volume(call, dir, error)) < 0)
                return r;
        if ((r = kata_image_make(dir, error)) < 0) {
                struct error ignored; /* the first failure is the one to tell */

                state_release(&call->state); /* the locks are taken anew, in the order of stage */
                (void)unstage_volume(call, dir, &ignored);
                return r;
        }
        begin_inner(&inner, call, dir, call->request->dir);
        r = stage_inner(&inner, dir, error);
        end_inner(&inner);
        if (r == 0)
                (void)snprintf(call->answer.message, sizeof call->answer.message,
                               "kataContainers: the image for the virtual machine is %.400s/" KATA_IMAGE_NAME, dir);
        return r;
}

int kata_publish(struct volume_call *call, struct error *error)
{
        static struct inner inner; /* static, for its size */
        char dir[PATH_MAX];
        bool wanted;
        int r;

        if ((r = begin(call, &wanted, dir, error)) < 0)
                return r;
        if (!wanted)
                return volume_publish(call, error);
        begin_inner(&inner, call, dir, call->request->dir);
        if ((r = volume_call_open(&inner.call, error)) == 0)
                r = volume_publish_attached(&inner.call, error);
        end_inner(&inner);
        return r;
}

/* Where the own filesystem is of the volume that was taken off: its loop device's record says, or, where that is gone
 * already, its own. False: it is not such a volume. */
static bool find_dir(const struct volume_call *call, char *ret_dir)
{
        const struct volume_record *record = &call->record;
        char prefix[PATH_MAX];
        char *end;

        if (!call->recorded)
                return false;
        if (strcmp(record->kind, kind_kata.word) != 0) {
                (void)snprintf(prefix, sizeof prefix, "%.4000s/kata/", call->config.state_dir);
                return record->staged.dir != NULL && text_starts(record->staged.dir, prefix) &&
                       text_copy(ret_dir, PATH_MAX, record->staged.dir);
        }
        (void)text_copy(ret_dir, PATH_MAX, record->source); /* as long at most */
        end = strrchr(ret_dir, '/');
        if (end == NULL)
                return false;
        *end = '\0';
        return strchr(ret_dir, '/') != NULL;
}

int kata_take_off(struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];
        int r = volume_take_off(call, error);

        if (r < 0 || !find_dir(call, dir))
                return r;
        state_release(&call->state); /* the locks are taken anew, in the order of stage */
        return unstage_volume(call, dir, error);
}
