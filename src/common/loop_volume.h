/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_volume.h - a volume that is an image file in a pool.
 *
 * Options: pool, image (a file's name; default NAME.img, or what volume-create made under the volume's name), size (the
 * image is made when it is not there), preallocate.
 */
#ifndef FLEXGRAFT_LOOP_VOLUME_H
#define FLEXGRAFT_LOOP_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind loop_volume;

/* What is in an image for a virtual machine (kata.h); its record is there before it is attached. */
extern const struct volume_kind kata_volume;

#endif
