/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uses_ended.h - what ended containers leave behind of raw devices: the loop devices of their guards
 * (block/loop_guard), with what the container wrote and the kernel has not written to the device yet.
 */
#ifndef FLEXGRAFT_STATE_USES_ENDED_H
#define FLEXGRAFT_STATE_USES_ENDED_H

#include "base/error.h"
#include "state/uses.h"

/*
 * uses_release_ended() - write that out, detach the loop devices, and remove their records, before a device is given
 * on. A guard that a process still has open stays, and is a use (state/uses.h); so does one whose record is locked.
 *
 * Takes:  keys, of the device, as for uses_each(); locked_id: the id of a record whose lock the caller holds, and which
 *         stays; or NULL.
 * Errors: those of uses_each().
 */
int uses_release_ended(const char *state_dir, const char *keys, const char *locked_id, struct error *error);

/*
 * uses_each_released() - uses_each(), after uses_release_ended() where that can change the answer: where there is an
 * ended use, or one that the function stops at.
 */
int uses_each_released(const char *state_dir, const char *keys, uses_function *function, void *argument,
                       struct error *error);

#endif
