/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_copy.h - the content of one block device on another.
 */
#ifndef FLEXGRAFT_BLOCK_DEVICE_COPY_H
#define FLEXGRAFT_BLOCK_DEVICE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "block/device.h"

#define BLOCK_DEVICE_CHUNK_BYTES 4096U

/*
 * block_device_copy() - all that from has; it is on the disk then. Nobody else may have either. only_changes: to is read
 * first, and only chunks that differ are written.
 *
 * Gives: ret_begun, true, also after a failure, once something was to be written.
 * Errors: EBUSY; ERANGE to is smaller; ECANCELED the program was interrupted.
 */
int block_device_copy(const struct block_device *from, const struct block_device *to, bool only_changes,
                      bool *ret_begun, struct error *error);

/*
 * block_content_copy() - so many bytes of one device or file at the beginning of another; they are on the disk then.
 *
 * Takes:  blank: what of to is not written is zeroes; then zeroes are not written. name: for the progress, borrowed.
 * Errors: ECANCELED the program was interrupted.
 */
int block_content_copy(int from_fd, uint64_t size_bytes, int to_fd, bool blank, const char *name, struct error *error);

#endif
