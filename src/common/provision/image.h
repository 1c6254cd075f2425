/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - images of a pool that the driver makes from its option "size": volumes with a record like those of volume-create.
 *
 * Once made, an image is not made again until volume-delete has deleted the volume: without its image the volume is lost.
 */
#ifndef FLEXGRAFT_PROVISION_IMAGE_H
#define FLEXGRAFT_PROVISION_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pool/pool.h"
#include "pool/record.h"
#include "state/config.h"
#include "state/state_dir.h"

struct provision_image {
        const char *name;        /* of the volume */
        const char *driver;      /* "vendor~driver" */
        const char *fs_type;     /* "": not given */
        const struct pool *pool; /* a pool of images */
        const char *id;          /* the file's name */
        uint64_t size_bytes;
        bool preallocate;
        bool kata;   /* it is for containers in virtual machines */
        bool exists; /* the image is there, with its size */
};

/*
 * provision_image_ensure() - that the image is there and belongs to the volume. state: of provision_record_open(), with the lock of
 * the volume's name. Gives: ret_made, whether this call made it.
 *
 * Errors: ENODATA the volume was made, and its image is lost; EEXIST a volume of this name is another disk; EBUSY the image is
 * another volume, or this one is half made or half deleted; those of making it.
 */
int provision_image_ensure(const struct config *config, const struct state *state, const struct provision_image *image,
                           bool *ret_made, struct error *error);

/* provision_image_check() - that an image without a size is no other volume's. Errors: EBUSY. */
int provision_image_check(const struct config *config, const struct state *state, const struct provision_image *image,
                          struct error *error);

/* provision_image_undo() - after a failure: remove what this call made. */
void provision_image_undo(const struct config *config, const struct state *state, const struct provision_image *image);

#endif
