/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_raw.h - what all kinds of raw devices have in common: source_raw of a device of the node, and that of a volume
 * by name.
 */
#ifndef FLEXGRAFT_INJECT_KINDS_SOURCE_RAW_H
#define FLEXGRAFT_INJECT_KINDS_SOURCE_RAW_H

#include "base/error.h"
#include "inject/injection.h"
#include "inject/request/source.h"

#define SOURCE_RAW_MAKES "create a device node for it, detached" /* make_text; ioctl, unshare, mknodat, open_tree */

/* A block device itself: source_block's check() selects it for "raw". */
extern const struct source_kind source_raw;

/* source_raw_check() - of a request with "raw": that nothing in it needs a filesystem. Errors: OPERATION_PARSE. */
int source_raw_check(struct request *request, struct error *error);

/*
 * source_raw_check_device() - that the container may have injection->device. Errors: EROFS; EBUSY the node uses it;
 * EOPNOTSUPP "readOnly" cannot be kept.
 */
int source_raw_check_device(const struct injection *injection, struct error *error);

/*
 * source_raw_check_recorded() - a source_kind's check_recorded(): that no other container has the device, if one of them
 * writes to it, and, where it is the injection's own device and may be written to, that the node does not use it. Errors:
 * EBUSY.
 */
int source_raw_check_recorded(struct injection *injection, struct error *error);

#endif
