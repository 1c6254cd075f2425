/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm.h - volume groups and what is in them, by lvm2's own tools and their reports.
 *
 * The tools are run by a second process, started before the program gives its privileges away (process/exec_helper.h); it runs none
 * but lvm(8), and of that only what makes, changes, removes and reports.
 */
#ifndef FLEXGRAFT_BLOCK_LVM_H
#define FLEXGRAFT_BLOCK_LVM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "block/device.h"
#include "block/lvm_report.h"

/*
 * lvm_find_device() - the device of a volume that is active. Errors: those of block_device_find(); ESTALE what is at
 * lvm_path() is the device of something else.
 */
int lvm_find_device(const char *group, const char *volume, struct block_device *ret_device, struct error *error);

/* lvm_begin() - start the runner. Before privileges_drop(); it ends with us. */
int lvm_begin(int argc, char **argv, struct error *error);

/* lvm_end() - end it, with whatever it runs; nothing if there is none. */
void lvm_end(void);

/* lvm_name_is_valid() - of a volume group, or of a volume. */
bool lvm_name_is_valid(const char *name);

/* lvm_path() - "/dev/GROUP/VOLUME"; PATH_MAX bytes. */
void lvm_path(const char *group, const char *volume, char *ret_path);

/*
 * What follows needs the runner. Errors, besides their own: those of exec_check(), EIO lvm failed, with what it
 * said.
 */

/* lvm_find_group() - Errors: ENOENT no such volume group. */
int lvm_find_group(const char *group, struct lvm_group *ret_group, struct error *error);

/* lvm_find_disk() - the group that a disk is in; "" where it is in none, or no physical volume. LVM_NAME_MAX bytes. */
int lvm_find_disk(const char *device, char *ret_group, struct error *error);

/* lvm_add_disk() - to a group, which is made, with LVM_TAG, if there is none. What it gives away begins at 2 MiB and
 * is in pieces of 4: so that huge pages of persistent memory stay whole. */
#define LVM_DATA_OFFSET_BYTES ((uint64_t)2 << 20)
#define LVM_EXTENT_BYTES ((uint64_t)4 << 20)
int lvm_add_disk(const char *group, bool exists, const char *device, struct error *error);

/* lvm_free_bytes() - how much is free on each physical volume, largest first; at most count of them. Returns how many
 * there are. */
int lvm_free_bytes(const char *group, uint64_t *ret_bytes, int count, struct error *error);

/* lvm_each() - every volume of a group, until function() answers other than 0, which is the result. */
int lvm_each(const char *group, lvm_function *function, void *argument, struct error *error);

/* lvm_find() - Errors: ENOENT, without words. */
int lvm_find(const char *group, const char *volume, struct lvm_volume *ret_volume, struct error *error);

/* lvm_create() - with these words of lvcreate(8), besides name, tag and group; active afterwards, signatures wiped. */
int lvm_create(const char *group, const char *volume, const char *const *words, struct error *error);

int lvm_remove(const char *group, const char *volume, struct error *error);
int lvm_activate(const char *group, const char *volume, bool active, struct error *error);
int lvm_extend(const char *group, const char *volume, uint64_t size_bytes, struct error *error);

#endif
