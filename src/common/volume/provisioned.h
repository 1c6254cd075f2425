/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provisioned.h - what volume-create recorded of a volume that it made or adopted: the driver's verbs hold to it.
 */
#ifndef FLEXGRAFT_VOLUME_PROVISIONED_H
#define FLEXGRAFT_VOLUME_PROVISIONED_H

#include <stdbool.h>

#include "base/error.h"
#include "pool/pool.h"
#include "pool/record.h"
#include "volume/call.h"

/*
 * provisioned_find() - the record of volume-create under the request's name, of a pool that this kind of volume is made
 * in.
 *
 * Gives:   ret_record, released by provision_record_release(), also after a failure.
 * Errors:  ENOENT there is none, without a message; EBUSY it is half made or half deleted.
 */
int provisioned_find(const struct volume_call *call, const struct volume_kind *kind,
                     struct provision_record *ret_record, struct error *error);

/*
 * provisioned_find_apart() - likewise for a kind with mount_apart(); after provisioned_hold_apart(), which does for it
 * what provisioned_hold() does for a kind that has pools.
 */
int provisioned_find_apart(const struct volume_call *call, struct provision_record *ret_record, struct error *error);
int provisioned_hold_apart(struct volume_call *call, struct error *error);

/*
 * provisioned_keep() - add the record's filesystem, mount flags and parameters to the request. What the request says
 * itself of mount flags and parameters takes precedence.
 *
 * Errors: EINVAL it was made as a block device, or for another filesystem.
 */
int provisioned_keep(struct volume_request *request, const struct provision_record *record, struct error *error);

/* provisioned_keep_parameters() - add only the parameters that a mount of the volume depends on, to these options. */
void provisioned_keep_parameters(json_t *options, const struct provision_record *record);

/*
 * provisioned_hold() - keep volume-create and volume-delete from a volume of this name until the call ends, where its
 * kind has pools.
 * Errors: EBUSY it is half deleted.
 */
int provisioned_hold(struct volume_call *call, struct error *error);

/*
 * provisioned_check_disk() - that what has this id in the volume group, or where that is NULL where the pool is, whatever
 * volume it is asked for as, is neither a snapshot nor half made, deleted or restored; nor, where a FlexVolume driver asks for it by other
 * than its name, what CSI or the pods of a namespace have had. After provisioned_hold(). Errors: EINVAL; EBUSY; EACCES.
 *
 * provisioned_check_device() - all but the first of a device of the node that is a logical volume. Errors: EBUSY; EACCES.
 */
int provisioned_check_disk(const struct volume_call *call, const struct pool *pool, const char *group, const char *id,
                           struct error *error);
int provisioned_check_device(const struct volume_call *call, const struct block_device *device, struct error *error);

/*
 * provisioned_check_blank() - that a blank device may be formatted, and provisioned_check_kata() that an image for
 * virtual machines may be made: a volume is formatted once. After provisioned_hold(). Errors: ENODATA it had content,
 * which is lost.
 */
int provisioned_check_blank(const struct volume_call *call, struct error *error);
int provisioned_check_kata(const struct volume_call *call, struct error *error);

/*
 * provisioned_check_identity() - that a disk of the volume's name is the volume's: another may have the name since that was removed
 * by hand. identity: as its pool says it. After provisioned_hold(). Errors: ENODATA.
 */
int provisioned_check_identity(const struct volume_call *call, const char *identity, struct error *error);

/* provisioned_note() - record that the volume has a filesystem, and perhaps an image for virtual machines. */
int provisioned_note(const struct volume_call *call, bool has_kata_image, enum file_durability durability,
                     struct error *error);

/*
 * provisioned_grows() - whether the filesystem of the volume may be smaller than its device, as that of a copy which is
 * larger than what it is of. provisioned_note_grown() - it is not any more.
 */
bool provisioned_grows(const struct volume_call *call);
int provisioned_note_grown(const struct volume_call *call, struct error *error);

/*
 * provisioned_is_own() - whether the record is of the disk that the call has attached, or that its options name while
 * nothing is attached: a volume of the record's name may have another disk.
 *
 * provisioned_find_own() - the record of the volume that the call has attached. Gives: ret_record, released by
 * provision_record_release(), also after a failure. Errors: ENOENT there is none, without a message.
 */
bool provisioned_is_own(const struct volume_call *call, const struct provision_record *record);
int provisioned_find_own(const struct volume_call *call, struct provision_record *ret_record, struct error *error);

/* provisioned_is_by_name() - whether only the volume's name says which volume of a pool it is. */
bool provisioned_is_by_name(const struct volume_call *call);

/*
 * provisioned_find_meant() - as provisioned_find(), where provisioned_is_by_name(), or where the options say the image,
 * logical volume or namespace that the volume of this name has. Needs call->kind.
 */
int provisioned_find_meant(const struct volume_call *call, struct provision_record *ret_record, struct error *error);

/* provisioned_apply() - provisioned_keep() of that. Needs call->kind. */
int provisioned_apply(struct volume_call *call, struct error *error);

/* ---- access.c: the access mode of a volume (state/access.h), which its profile gave it, or the request has */

/* volume_access_apply() - take over the mode that volume-create recorded, or that of the request where the former allows
 * all: a volume for reading is read-only from here on. */
int volume_access_apply(struct volume_call *call, struct error *error);

/* volume_access_check() - that the directory of the request may have it besides its other uses. The record has been
 * written. Errors: EBUSY. */
int volume_access_check(struct volume_call *call, struct error *error);

/* ---- profiled.c: the option "profile" of volumes that outlive a pod: the profile that volume-create made them with */

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
