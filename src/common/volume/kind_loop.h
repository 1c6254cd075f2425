/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_loop.h - a volume that is an image file in a pool.
 *
 * Options: pool, image (a file's name; default NAME.img, or what volume-create made under the volume's name), size (the
 * image is made when it is not there), preallocate.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_LOOP_H
#define FLEXGRAFT_VOLUME_KIND_LOOP_H

#include "volume/call.h"

extern const struct volume_kind kind_loop;

/* What is in an image for a virtual machine (volume/kind_kata.h); its record is there before it is attached. */
extern const struct volume_kind kind_kata;

#endif
