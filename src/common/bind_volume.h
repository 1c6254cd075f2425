/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind_volume.h - a directory of the node's, as far as policy.json opens it.
 *
 * Options: source (or path), recursive.
 */
#ifndef FLEXGRAFT_BIND_VOLUME_H
#define FLEXGRAFT_BIND_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind bind_volume;

#endif
