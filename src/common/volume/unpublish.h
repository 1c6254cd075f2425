/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpublish.h - unmount and unmountdevice: a directory without the volume that is mounted there.
 */
#ifndef FLEXGRAFT_VOLUME_UNPUBLISH_H
#define FLEXGRAFT_VOLUME_UNPUBLISH_H

#include "volume/call.h"

/*
 * volume_take_off() - unmount and unmountdevice: whatever is mounted on request->dir and below it, the directories that
 * were made for it, and what the record remembers of it.
 */
int volume_take_off(struct volume_call *call, struct error *error);

#endif
