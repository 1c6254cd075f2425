/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named_stage.h - the directory that a volume is staged on for containers: STATE_DIR/named/KIND/NAME.
 *
 * It stays until the volume is detached: it says which kinds of volumes are there, and with that which helpers a
 * removal needs.
 */
#ifndef FLEXGRAFT_VOLUME_NAMED_STAGE_H
#define FLEXGRAFT_VOLUME_NAMED_STAGE_H

#include <stdbool.h>

#include "base/error.h"
#include "volume/call.h"

/* named_stage_dir() - its path, of PATH_MAX bytes, for call->kind. */
int named_stage_dir(const struct volume_call *call, char *ret_dir, struct error *error);

/* named_stage_is() - whether a directory is such a one. */
bool named_stage_is(const struct config *config, const char *dir);

/*
 * named_stage_make() - ensure that the directory exists; named_stage_unmake() - that there is none of the volume, of
 * any kind.
 */
int named_stage_make(const char *dir, struct error *error);
int named_stage_unmake(const struct volume_call *call, struct error *error);

/*
 * named_stage_kind_dir() - the directory that has the stages of a kind: of the first kind from *kind on that can be
 * staged so.
 * Gives: kind, its index in volume_kinds; ret_dir, of PATH_MAX bytes. Returns: false: there is no more.
 */
bool named_stage_kind_dir(const char *state_dir, size_t *kind, char *ret_dir);

/* named_stage_runs() - the programs (VOLUME_RUNS_*) that detaching may run, for any volume that is staged so. */
unsigned named_stage_runs(void);

/*
 * named_stage_unmount() - unmount the volume there, which nobody uses as far as records say.
 * Returns: 0, or 1: something of which there is no record uses it still.
 */
int named_stage_unmount(const struct volume_call *call, const char *dir, struct error *error);

/*
 * named_stage_unstage() - for kubelet, which unmounts only what it has mounted: unmount it and forget it in the
 * record, if the record says that the volume is staged so.
 * Errors: EBUSY somebody uses it; the message says who.
 */
int named_stage_unstage(struct volume_call *call, const char *operation, struct error *error);

#endif
