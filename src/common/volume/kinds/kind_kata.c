/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_kata.c - volumes for containers in virtual machines (Kata Containers): "kataContainers": "true".
 *
 * The volume's own filesystem is mounted below the state directory, in kata/, and holds an image (volume/kata_image.h);
 * pods get the filesystem in that image, on a loop device. The loop device has a record of its own, "kata-KEY". The
 * virtual machine maps the image, whose path is in the answer of mountdevice, or of mount for an ephemeral volume.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "volume/call.h"
#include "volume/device_filesystem.h"
#include "volume/kata_image.h"
#include "volume/kind.h"
#include "volume/provisioned.h"
#include "volume/sighting.h"
#include "volume/volume.h"

/* ---- the loop device: its record names the image before it is attached */

static int attach(struct volume_call *call, struct error *error)
{
        return kind_loop.attach(call, error);
}

static int look(struct volume_call *call, struct error *error)
{
        return kind_loop.look(call, error);
}

static int detach(struct volume_call *call, struct error *error)
{
        return kind_loop.detach(call, error);
}

static int identify(const struct volume_call *call, char *ret_identity, struct error *error)
{
        return kind_loop.identify(call, ret_identity, error);
}

/* ---- the volume, and the image in it */

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

static struct volume_inner current; /* on the image, or on the volume that has it: one after the other */

/* dir: where the volume's own filesystem is; target: the directory that the inner call mounts or unmounts. */
static void init_inner(const struct volume_call *call, const char *dir, const char *target)
{
        volume_inner_init(&current, call);
        kata_image_record(dir, current.request.name);
        current.request.read_only = call->request->read_only;
        current.request.mount_options = call->request->mount_options;
        (void)text_copy(current.request.fs_type, sizeof current.request.fs_type, call->request->fs_type);
        (void)text_copy(current.request.dir, sizeof current.request.dir, target);
        current.call.kind = &kind_kata;
}

/* The record of the image's loop device; the one that is begun here names the image. */
static int open_image(struct volume_inner *inner, const char *dir, struct error *error)
{
        struct volume_call *call = &inner->call;
        int r = volume_call_open(call, error);

        if (r < 0)
                return r;
        if (!call->recorded) {
                volume_call_init_record(call);
                (void)snprintf(call->record.source, sizeof call->record.source, "%s/" KATA_IMAGE_NAME, dir);
                if ((r = volume_call_save(call, FILE_DURABLE, error)) < 0)
                        return r;
        }
        return 0;
}

/* Mount the volume's own filesystem on dir. */
static int stage_volume(struct volume_call *call, const char *dir, struct error *error)
{
        static struct volume_request request;
        struct volume_request *given = call->request;
        int r;

        request = *given;
        request.fs_type[0] = '\0'; /* that is for the filesystem in the image */
        request.read_only = false; /* likewise */
        (void)text_copy(request.dir, sizeof request.dir, dir);
        call->request = &request;
        r = volume_stage_attached(call, error);
        call->request = given;
        return r;
}

/* Detach the loop device and unmount the volume's own filesystem, which is on dir. */
static int unstage_volume(const struct volume_call *call, const char *dir, struct error *error)
{
        int r;

        init_inner(call, dir, dir);
        if ((r = volume_call_open(&current.call, error)) == 0)
                sighting_forget(&current.call);
        if (r == 0 && (!current.call.recorded || (r = current.call.kind->detach(&current.call, error)) == 0))
                r = volume_call_remove_record(&current.call, error);
        volume_inner_end(&current);
        if (r < 0)
                return r;
        init_inner(call, dir, dir);
        r = volume_unmount(&current.call, error);
        volume_inner_end(&current);
        return r;
}

/* Mount the volume's own filesystem, with an image in it. Gives PATH_MAX bytes: where it is. */
static int stage_image(struct volume_call *call, char *ret_dir, struct error *error)
{
        int r;

        if ((r = put_dir(call, call->request->name, ret_dir, error)) < 0 ||
            (r = stage_volume(call, ret_dir, error)) < 0)
                return r;
        r = kata_image_exists(ret_dir) ? 0 : provisioned_check_kata(call, error);
        if (r < 0 || (r = kata_image_make(ret_dir, error)) < 0 ||
            (r = provisioned_note(call, /* has_kata_image= */ true, FILE_DURABLE, error)) < 0) {
                struct error ignored; /* the first failure is the one to report */

                state_release(&call->state); /* stage takes the locks in another order: begin anew */
                (void)unstage_volume(call, ret_dir, &ignored);
        }
        return r;
}

static void tell_image(struct volume_call *call, const char *dir)
{
        (void)snprintf(call->answer.message, sizeof call->answer.message,
                       POOL_FOR_MACHINES ": the image for the virtual machine is %.400s/" KATA_IMAGE_NAME, dir);
}

static int stage(struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];
        int r = stage_image(call, dir, error);

        if (r < 0)
                return r;
        init_inner(call, dir, call->request->dir);
        r = open_image(&current, dir, error);
        if (r == 0)
                r = volume_stage_attached(&current.call, error);
        volume_inner_end(&current);
        if (r == 0)
                tell_image(call, dir);
        return r;
}

static int wrap(struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];
        int r = stage_image(call, dir, error);

        if (r < 0)
                return r;
        init_inner(call, dir, /* target= */ "");
        r = open_image(&current, dir, error);
        if (r == 0)
                r = device_filesystem_attach(&current.call, error);
        volume_inner_end(&current);
        if (r >= 0)
                tell_image(call, dir);
        return r;
}

static int publish(struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];
        int r = put_dir(call, call->request->name, dir, error);

        if (r < 0)
                return r;
        init_inner(call, dir, call->request->dir);
        if ((r = volume_call_open(&current.call, error)) == 0) {
                (void)text_copy(current.call.record.access_mode, sizeof current.call.record.access_mode,
                                call->record.access_mode);
                r = volume_publish_attached(&current.call, error);
        }
        volume_inner_end(&current);
        return r;
}

/*
 * Where the own filesystem of the unmounted volume is: by its loop device's record, or where that is gone by the
 * volume's own. False: it is no such volume.
 */
static bool find_dir(const struct volume_call *call, char *ret_dir)
{
        const struct volume_record *record = &call->record;
        char *end;

        if (!call->recorded)
                return false;
        if (strcmp(record->kind, kind_kata.word) != 0)
                return record->staged.dir != NULL && kata_image_is_below(call->config.state_dir, record->staged.dir) &&
                       text_copy(ret_dir, PATH_MAX, record->staged.dir);
        (void)text_copy(ret_dir, PATH_MAX, record->source); /* as long at most */
        end = strrchr(ret_dir, '/');
        if (end == NULL)
                return false;
        *end = '\0';
        return strchr(ret_dir, '/') != NULL;
}

static int unstage(struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];

        if (!find_dir(call, dir))
                return 0;
        state_release(&call->state); /* stage takes the locks in another order: begin anew */
        return unstage_volume(call, dir, error);
}

static const struct volume_option options[] = {
        { .key = POOL_FOR_MACHINES,
          .type = VOLUME_OPTION_BOOLEAN,
          .fallback = "false",
          .help = "true: the volume is for containers in virtual machines",
          .kept = true },
        {},
};

const struct volume_kind kind_kata = { VOLUME_KIND(kata),
                                       .needs = NEED(LOOP) | NEED(LOOP_CONFIGURE),
                                       .options = options,
                                       .find_offset = kata_image_find_offset,
                                       .attach = attach,
                                       .look = look,
                                       .detach = detach,
                                       .identify = identify,
                                       .flag = POOL_FOR_MACHINES,
                                       .stage = stage,
                                       .publish = publish,
                                       .unstage = unstage,
                                       .wrap = wrap };
