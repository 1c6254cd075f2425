/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_policy.h - whether a volume may have the image that its options name: it may hold the data of others.
 */
#ifndef FLEXGRAFT_VOLUME_IMAGE_POLICY_H
#define FLEXGRAFT_VOLUME_IMAGE_POLICY_H

#include "volume/call.h"
#include "volume/loop_image.h"

/*
 * image_policy_check() - the volume's own image needs no permission: the one with its name, one that was made for it, one
 * that it has, and one that is still to be made. For others policy.json must list it. Needs the lock of the image.
 * Errors: EACCES.
 */
int image_policy_check(const struct volume_call *call, const struct loop_image *image, struct error *error);

#endif
