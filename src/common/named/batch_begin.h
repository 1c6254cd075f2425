/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_begin.h - which helper processes mount-batch, mount-hook, mount-volume and mount-remove start before they drop their privileges:
 * that of daemon/remap.h, and those of volumes by name (volume/exec_helpers.h). What a request says of it a process
 * without privileges reads (process/sealed_child.h).
 */
#ifndef FLEXGRAFT_NAMED_BATCH_BEGIN_H
#define FLEXGRAFT_NAMED_BATCH_BEGIN_H

#include "base/error.h"
#include "inject/former.h"

/* batch_begin_for_request() - those that the entries may need; all of them if the request is on standard input. */
int batch_begin_for_request(int argc, char **argv, struct error *error);

/* batch_begin_for_volume() - those that the one volume of a request may need, and the one that it replaces. */
int batch_begin_for_volume(int argc, char **argv, struct error *error);

/*
 * batch_begin_by_policy() - those that may be needed by the kinds of mounts that policy.json lets annotations ask for;
 * after a container has ended, those that detaching its volumes may need.
 */
int batch_begin_by_policy(int argc, char **argv, struct error *error);

/* ---- releaser.c: volumes by name, for mount-remove */

extern const struct volume_releaser named_releaser;

/*
 * named_releaser_begin() - start the helpers that detaching a volume may need (volume/exec_helpers.h); before
 * privileges_drop().
 */
int named_releaser_begin(int argc, char **argv, struct error *error);

#endif
