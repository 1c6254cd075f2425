/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm.h - volume groups and logical volumes, through lvm2's commands and their JSON reports.
 *
 * An exec helper (process/exec_helper) runs lvm(8), with a fixed list of subcommands, and nothing else.
 */
#ifndef FLEXGRAFT_BLOCK_LVM_H
#define FLEXGRAFT_BLOCK_LVM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/need.h"
#include "block/device.h"
#include "block/lvm_report.h"

/*
 * lvm_find_device() - the device of an active volume. Errors: those of block_device_find(); ESTALE lvm_path() leads to
 * another device.
 */
int lvm_find_device(const char *group, const char *volume, struct block_device *ret_device, struct error *error);

/* lvm_device_names() - of what group and volume an active volume is the device; LVM_NAME_MAX bytes each. Returns 0 or
 * negative errno: ENODATA of none. */
int lvm_device_names(const struct block_device *device, char *ret_group, char *ret_volume);

/* lvm_device_uuid() - the uuid of an active volume, as lvm writes it; LVM_UUID_SIZE bytes. Returns 0 or negative errno. */
int lvm_device_uuid(const struct block_device *device, char *ret_uuid);

/* lvm_begin() - start the helper, before privileges_drop(). It ends with this process. */
int lvm_begin(int argc, char **argv, struct error *error);

/* lvm_end() - kill the helper and the command that it runs; nothing if there is no helper. */
void lvm_end(void);

/* lvm_end_ordered() - the same, only if a command is under way: whoever gave the order was killed. Returns whether one was. */
bool lvm_end_ordered(void);

/* lvm_name_is_valid() - whether a volume group or a volume may have this name. */
bool lvm_name_is_valid(const char *name);

/* lvm_type_needs() - what the node must have for volumes of a type of lvcreate(8), besides the device mapper itself. */
need_set lvm_type_needs(const char *type);

/* lvm_path() - "/dev/GROUP/VOLUME"; PATH_MAX bytes. */
void lvm_path(const char *group, const char *volume, char *ret_path);

/*
 * The following need the helper. Errors, besides their own: those of exec_json_run().
 */

/*
 * lvm_hold() - until lvm_release(), what is asked of a group is asked of lvm once: the caller has a lock. What a command
 * changes is asked for anew, and so is what lvm_outdate() says. Each lvm_hold() needs a lvm_release().
 */
void lvm_hold(void);
void lvm_release(void);
void lvm_outdate(void);

/* lvm_find_group() - Errors: ENOENT no such volume group. */
int lvm_find_group(const char *group, struct lvm_group *ret_group, struct error *error);

/* lvm_find_disk() - the volume group of a disk; "" if it has none, or is no physical volume. LVM_NAME_MAX bytes. */
int lvm_find_disk(const char *device, char *ret_group, struct error *error);

/* lvm_add_disk() - add a disk to a volume group, which is created, with LVM_TAG, if it does not exist. Data begins at
 * 2 MiB, in extents of 4 MiB, so that persistent memory can be mapped with huge pages. */
#define LVM_DATA_OFFSET_BYTES ((uint64_t)2 << 20)
#define LVM_EXTENT_BYTES ((uint64_t)4 << 20)
int lvm_add_disk(const char *group, bool exists, const char *device, struct error *error);

/* lvm_free_bytes() - the free space of each physical volume that lvm allocates from, largest first; at most count of them. Returns
 * the number of these. */
int lvm_free_bytes(const char *group, uint64_t *ret_bytes, int count, struct error *error);

/* lvm_each() - call function() for every volume of a group, until it returns other than 0, which is the result. */
int lvm_each(const char *group, lvm_function *function, void *argument, struct error *error);

/* lvm_find() - Errors: ENOENT, without filling error. */
int lvm_find(const char *group, const char *volume, struct lvm_volume *ret_volume, struct error *error);

/*
 * The following have the kernel load what the volume needs (lvm_targets_load()); volume: from lvm_find().
 *
 * lvm_create() - type: of lvcreate(8); words: its other options, besides name, tag and group. The volume is active then;
 * signatures are wiped.
 */
int lvm_create(const char *group, const char *volume, const char *type, const char *const *words, struct error *error);

int lvm_remove(const char *group, const struct lvm_volume *volume, struct error *error);
int lvm_activate(const char *group, const struct lvm_volume *volume, struct error *error);

/*
 * lvm_resume() - an active volume that lvm left suspended when it was killed goes on, perhaps still with parts of what
 * was to be done.
 * lvm_refresh() - it is as the group says.
 */
int lvm_resume(const char *group, const struct lvm_volume *volume, struct error *error);
int lvm_refresh(const char *group, const struct lvm_volume *volume, struct error *error);

/* lvm_go_on() - lvm_refresh(), if lvm was killed while it had the volume suspended. volume: from lvm_find(). */
int lvm_go_on(const char *group, const struct lvm_volume *volume, struct error *error);

int lvm_extend(const char *group, const struct lvm_volume *volume, uint64_t size_bytes, struct error *error);

/*
 * lvm_snapshot() - a snapshot of a volume, with LVM_TAG; the device mapper freezes a filesystem that is mounted
 * meanwhile. words: other options of lvcreate(8). One of a thin volume is a thin volume, and needs no size.
 */
int lvm_snapshot(const char *group, const struct lvm_volume *origin, const char *name, const char *const *words,
                 struct error *error);

/* lvm_split() - a snapshot that is not thin becomes a volume of its own: its room for changes, with what is in it. */
int lvm_split(const char *group, const struct lvm_volume *snapshot, struct error *error);

/* lvm_rename() - needs nothing, and so does lvm_deactivate(). */
int lvm_rename(const char *group, const char *volume, const char *name, struct error *error);
int lvm_deactivate(const char *group, const char *volume, struct error *error);

/*
 * lvm_put_asleep() - deactivate a new volume, and have the machine activate it neither when it boots nor when a disk comes
 * (nothing before lvm 2.03.12); lvm_activate() does. In one run of lvm, as lvcreate can do it for some types alone.
 */
int lvm_put_asleep(const char *group, const char *volume, struct error *error);

/*
 * ---- have the kernel load the device mapper's targets that a volume needs: raid, mirror, thin-pool, ...
 *
 * lvm(8) runs modprobe(8) for them, which may load nothing in an exec helper: neither its capabilities nor its filter allow that. The
 * kernel itself loads a target that it is asked for the version of, with a program, arguments and an environment of its
 * own (DM_GET_TARGET_VERSION, since Linux 5.5; CAP_SYS_ADMIN). It is asked only for the names of a fixed table.
 *
 * Runs in: an exec helper, before lvm.
 */

/*
 * lvm_targets_load() - what a volume of these types needs ("raid1"), or with these modules of lvs ("raid,thin-pool"). A name
 * that is not in the table, and a target that the kernel does not have, is nothing: lvm says what it misses.
 */
void lvm_targets_load(const char *names);

/*
 * lvm_targets_resume() - let a device of the device mapper go on, with the table that was loaded for it, if any: what
 * lvm left when it was killed, and would resume only after the devices on top of it. Nothing, if there is none.
 */
void lvm_targets_resume(const char *device);

#endif
