/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - what is on a disk, all of it.
 */
#ifndef FLEXGRAFT_BLOCK_CONTENT_H
#define FLEXGRAFT_BLOCK_CONTENT_H

#include "base/error.h"
#include "block/device.h"

/* content_erase() - every byte, so that whoever gets the room reads nothing; where the disk can do it by itself it
 * does. Errors: EBUSY somebody uses it; ESTALE at its path there is another by now. */
int content_erase(const struct block_device *device, struct error *error);

/* content_is_blank() - whether there is nothing but zeroes on it: 1 or 0. */
int content_is_blank(const struct block_device *device, struct error *error);

#endif
