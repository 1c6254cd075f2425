/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kinds/loop_image.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "block/loop.h"

#define ENDING_TRIES 100
#define ENDING_WAIT_MS 20

struct search {
        const struct stat *image;
        struct loop_device found;
};

static int match(const struct loop_device *device, void *argument, struct error *error)
{
        struct search *search = argument;

        (void)error;
        if (!loop_device_is_over(device, search->image))
                return 0;
        search->found = *device;
        return 1;
}

/* What a call that was killed has held ends a moment later. */
static int check_free(const struct loop_image *image, struct error *error)
{
        struct search search = { .image = &image->st };
        int r = 0;

        for (int i = 0; i < ENDING_TRIES && (r = loop_device_each_over(image->fd, match, &search, error)) == 1; i++) {
                if (!search.found.ending)
                        break;
                clock_pause_ms(ENDING_WAIT_MS);
        }
        if (r <= 0)
                return r;
        return fail_because(error, EBUSY, "attach loop device", image->path,
                            "the image %s is already in use by %s%s%s; detach that first", image->path,
                            search.found.path, search.found.tag[0] != '\0' ? ": " : "", search.found.tag);
}

int loop_held_attach(struct volume_call *call, struct error *error)
{
        cleanup_loop_image struct loop_image image = LOOP_IMAGE_NONE;
        struct loop_form form = { .ends = true };
        cleanup_close int fd = -EBADF;
        struct loop_device device;
        char tag[LOOP_TAG_SIZE];
        int r;

        if ((r = loop_image_locate_own(call, &image, error)) < 0 || (r = loop_image_look(&image, error)) < 0)
                return r;
        if (image.read_only)
                return fail_because(error, EROFS, OPERATION_OPEN_IMAGE, image.path, "the image %s cannot be written",
                                    image.path);
        if ((r = check_free(&image, error)) < 0 || (r = loop_image_watch(call, &image, error)) < 0)
                return r;
        form.sector_bytes = loop_image_sector_bytes(&image, 0);
        loop_device_tag(call->config.state_dir, call->driver, volume_record_key(call->request->name),
                        call->request->name, tag);
        fd = loop_device_attach(image.fd, image.path, tag, &form, &device, error);
        if (fd < 0)
                return fd;
        if ((r = loop_image_watch(call, &image, error)) < 0)
                return r;
        (void)text_copy(call->record.device, sizeof call->record.device, device.path);
        (void)text_copy(call->record.source, sizeof call->record.source, image.path);
        call->record.device_number = device.number;
        return fd_take(&fd);
}
