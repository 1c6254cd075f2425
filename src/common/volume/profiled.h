/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiled.h - the option "profile" of volumes that outlive a pod: the profile that volume-create made them with.
 */
#ifndef FLEXGRAFT_VOLUME_PROFILED_H
#define FLEXGRAFT_VOLUME_PROFILED_H

#include "base/error.h"
#include "volume/call.h"

/*
 * profiled_ensure() - that the volume is of the profile that the options name, if any. A loop volume that is not there yet is
 * made, as volume-create makes it; those of other kinds volume-create must have made before.
 *
 * When:    before provisioned_hold(): volume-create takes the same lock.
 * Errors:  EINVAL it is of another profile, or the options contradict each other; ENOENT it is not there; those of
 *          provision_make().
 */
int profiled_ensure(struct volume_call *call, struct error *error);

/* profiled_tell() - add to the answer that the file of profiles was rejected. problem: provision_make()'s; "": it was not. */
void profiled_tell(struct volume_call *call, const char *problem);

#endif
