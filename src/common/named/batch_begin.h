/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_begin.h - which helper processes mount-batch, mount-hook, mount-volume and mount-remove start before they drop their privileges:
 * that of daemon/remap.h, and those of volumes by name (volume/exec_helpers.h). What a request says of it a process
 * without privileges reads (process/sealed_child.h).
 */
#ifndef FLEXGRAFT_NAMED_BATCH_BEGIN_H
#define FLEXGRAFT_NAMED_BATCH_BEGIN_H

#include <stdbool.h>

#include "base/error.h"
#include "inject/former.h"
#include "inject/request/request.h"
#include "state/volume_record.h"

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

/* ---- what is read of a request */

/* Zeroes, and then what may be needed, by a process without privileges. */
struct batch_asked {
        bool remap;
        bool replaces; /* a volume that is replaced is detached */
        bool all;      /* volumes that are not in names */
        unsigned count;
        char names[REQUEST_ENTRIES_MAX][VOLUME_NAME_MAX];
};

/* batch_asked_read() - with a parser. batch: else one volume. What is refused here the program refuses, too. */
void batch_asked_read(const char *request, bool batch, struct batch_asked *asked);

/*
 * batch_is_clear() - whether the strings of a batch show, without a parser, that it has no volume by name. Gives: ret_remap:
 * whether remap-daemon may be needed.
 */
bool batch_is_clear(const char *request, bool *ret_remap);

/* batch_volume_is_clear() - whether those of a request for one volume show its name; VOLUME_NAME_MAX bytes. */
bool batch_volume_is_clear(const char *request, char *ret_name);

#endif
