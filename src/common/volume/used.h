/* SPDX-License-Identifier: Apache-2.0 */
/*
 * used.h - the uses of a volume (state/uses.h), besides its being attached.
 */
#ifndef FLEXGRAFT_VOLUME_USED_H
#define FLEXGRAFT_VOLUME_USED_H

#include "volume/call.h"

/*
 * volume_used_keys() - what to ask about the volume of the call: its device, with what stands on it, its image, and its
 * filesystem. USE_KEYS_SIZE bytes.
 */
int volume_used_keys(const struct volume_call *call, unsigned flags, char *ret_keys, struct error *error);

/*
 * volume_check_unused() - that nothing but its own record uses it: no container, and no other volume, as one on an image
 * in it. Where the record says that it is mounted, mount_dir_look() tells. Errors: EBUSY, naming one.
 */
int volume_check_unused(const struct volume_call *call, const char *operation, struct error *error);

/*
 * volume_check_detachable() - likewise, before detach. ret_shared: other volumes have the device for reading, and go on
 * to have it.
 */
int volume_check_detachable(struct volume_call *call, bool *ret_shared, struct error *error);

/*
 * volume_check_no_raw() - that no container may write to the device itself, with a filesystem or a partition table of its own on
 * it. Errors: EBUSY, naming it.
 */
int volume_check_no_raw(const struct volume_call *call, const char *operation, struct error *error);

/* volume_check_no_writer() - likewise, and no pod, which has the device as a block volume. */
int volume_check_no_writer(const struct volume_call *call, const char *operation, struct error *error);

#endif
