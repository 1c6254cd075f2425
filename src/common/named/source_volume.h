/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_volume.h - a volume by name as the source of a mount: attached, formatted if it is blank, staged once on the
 * node, and a clone of that for each container.
 *
 * Locks: the volume's, that of its record in provisioned/, then those of mounts. The volume's is held until all is done
 * or undone, so that whoever asks for its users sees this one's record.
 */
#ifndef FLEXGRAFT_NAMED_SOURCE_VOLUME_H
#define FLEXGRAFT_NAMED_SOURCE_VOLUME_H

#include "inject/source.h"

extern const struct source_kind source_volume;
extern const struct source_kind source_volume_raw; /* its device itself: source_volume's check() selects it for "raw" */

#endif
