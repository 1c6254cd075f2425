/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sighting.h - since when volume-reconcile has seen that no pod has a volume: a file of the state directory, in "sightings", so that
 * the next run knows. Any call that changes the volume's record ends the sighting.
 */
#ifndef FLEXGRAFT_VOLUME_SIGHTING_H
#define FLEXGRAFT_VOLUME_SIGHTING_H

#include <stdbool.h>
#include <stdint.h>

#include "volume/call.h"

/*
 * sighting_see() - how many seconds ago it was first seen, by the clock that counts from boot: 0 for now. kubelet: whether that
 * runs; when that changes, the sighting begins anew. write: remember a new one.
 *
 * The volume's record is on disk, and its lock is held.
 */
uint64_t sighting_see(const struct volume_call *call, bool kubelet, bool write);

/* sighting_forget() - there is none any more: a call uses the volume. */
void sighting_forget(const struct volume_call *call);

#endif
