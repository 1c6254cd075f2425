/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - the access mode of a volume (state/access.h), which its profile gave it, or the request has.
 */
#ifndef FLEXGRAFT_VOLUME_ACCESS_H
#define FLEXGRAFT_VOLUME_ACCESS_H

#include "volume/call.h"

/* volume_access_apply() - take over the mode that volume-create recorded, or that of the request where the former allows
 * all: a volume for reading is read-only from here on. */
int volume_access_apply(struct volume_call *call, struct error *error);

/* volume_access_check() - that the directory of the request may have it besides its other uses. The record has been
 * written. Errors: EBUSY. */
int volume_access_check(struct volume_call *call, struct error *error);

#endif
