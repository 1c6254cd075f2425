/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_bind.h - a directory of the node's, as far as policy.json opens it.
 *
 * Options: source (or path), recursive.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_BIND_H
#define FLEXGRAFT_VOLUME_KIND_BIND_H

#include "volume/call.h"

extern const struct volume_kind kind_bind;

#endif
