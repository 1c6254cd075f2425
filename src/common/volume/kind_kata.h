/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_kata.h - volumes for containers in virtual machines (Kata Containers): "kataContainers": "true".
 *
 * The volume's own filesystem is mounted below the state directory, in kata/, and holds an image (volume/kata_image.h); what
 * pods get is the filesystem in that image, on a loop device. The loop device has a record of its own, "kata-KEY". The
 * machine maps the image, whose path mountdevice tells.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_KATA_H
#define FLEXGRAFT_VOLUME_KIND_KATA_H

#include "volume/call.h"

/* kata_stage(), kata_publish() and kata_take_off() - volume_stage(), volume_publish() and, of unmountdevice,
 * volume_take_off(), for such volumes and all others. */
int kata_stage(struct volume_call *call, struct error *error);
int kata_publish(struct volume_call *call, struct error *error);
int kata_take_off(struct volume_call *call, struct error *error);

#endif
