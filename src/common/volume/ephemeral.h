/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ephemeral.h - volumes of a pool that live as long as they are mounted for a pod.
 *
 * Options: "pool" or "profile", "size", and "usage", "eraseAfter" as volume-create has them; fsType. What is made is a
 * volume like any other, named after the pod's directory, so that unmount, which gets that alone, finds it. The
 * directory is in the driver's record before anything is made.
 */
#ifndef FLEXGRAFT_VOLUME_EPHEMERAL_H
#define FLEXGRAFT_VOLUME_EPHEMERAL_H

#include <stdbool.h>

#include "volume/call.h"

extern const struct volume_ephemeral ephemeral;

/* ephemeral_begin_mount() - start who runs commands for it, where the call speaks of such a volume. Before
 * privileges_drop(). */
int ephemeral_begin_mount(int argc, char **argv, struct error *error);

/* ephemeral_begin_unmount() - the same, where such a volume is on the directory. */
int ephemeral_begin_unmount(int argc, char **argv, struct error *error);

/* ephemeral_begun() - whether anybody was started. */
bool ephemeral_begun(void);

#endif
