/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpublish.h - unmount and unmountdevice: a directory without the volume that is mounted there.
 */
#ifndef FLEXGRAFT_VOLUME_UNPUBLISH_H
#define FLEXGRAFT_VOLUME_UNPUBLISH_H

#include "volume/call.h"

/* volume_unpublish() - unmount. */
int volume_unpublish(struct volume_call *call, struct error *error);

/* volume_unstage() - unmountdevice; where the volume was wrapped, its own filesystem is unmounted next. */
int volume_unstage(struct volume_call *call, struct error *error);

/*
 * volume_unwrap() - with the volume's record and its lock: unmount what the volume was wrapped in, if it is not in use.
 * The lock is released then (state_release()).
 */
int volume_unwrap(struct volume_call *call, struct error *error);

/*
 * volume_take_off() - the work of both: unmount everything on request->dir and below it, remove the directories that
 * were made for it, and forget it in the record.
 */
int volume_take_off(struct volume_call *call, struct error *error);

#endif
