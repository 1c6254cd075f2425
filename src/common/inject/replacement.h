/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replacement.h - "replace": a mount in place of an earlier one of flexgraft's, and what killed calls left of that.
 */
#ifndef FLEXGRAFT_INJECT_REPLACEMENT_H
#define FLEXGRAFT_INJECT_REPLACEMENT_H

#include "base/error.h"
#include "inject/injection.h"

/*
 * replacement_accept() - this record's mount is on top at the target: the request is done already if it asks for the
 * same mount. Errors: EBUSY another mount, or it was remounted; ESTALE, ENOTCONN, EIO, ENODEV its filesystem is dead.
 */
int replacement_accept(struct injection *injection, const struct mount_record *earlier, struct error *error);

/*
 * replacement_check_remap() - the same mount is there, and its remap daemon runs: whether the source answers that one.
 * Errors: as above.
 */
int replacement_check_remap(struct injection *injection, struct error *error);

/* replacement_would_do() - whether such a failure is one that "replace" is for. */
bool replacement_would_do(const struct error *error);

/*
 * replacement_check_earlier() - this record's mount is not at the target. Its record may be overwritten only if the
 * mount is nowhere else in the container. Errors: EEXIST, EBUSY.
 */
int replacement_check_earlier(struct injection *injection, const struct mount_record *earlier, struct error *error);

/* replacement_refuse_volume() - EBUSY: this record is of a volume by name, which only mount-remove lets go. */
int replacement_refuse_volume(const struct injection *injection, const struct mount_record *earlier,
                              struct error *error);

/*
 * replacement_begin() - this record's mount is on top at the target, and the new mount is to replace it. 1: it is another
 * record's by now; look again.
 */
int replacement_begin(struct injection *injection, const struct mount_record *earlier, struct error *error);

/*
 * replacement_finish_swap() - a call was killed after it placed this record's mount beneath the old one: unmount the
 * old one. 1 done, 0 nothing to finish, or negative errno.
 */
int replacement_finish_swap(struct injection *injection, const struct mount_record *earlier, struct error *error);

/*
 * replacement_finish_other() - a call with another id was killed while it replaced the mount at the target: finish its
 * swap, or remove its record if it placed no mount. 1 look the target up again, 0 nothing was left, or negative errno.
 */
int replacement_finish_other(struct injection *injection, struct error *error);

/*
 * replacement_settle_pending() - a call was killed while it replaced the mount of this id by another of the same id:
 * finish its swap, or remove its record if it placed no mount. 1 that record is gone now, 0 there is none, or it cannot
 * be finished because the container covered a mount, or negative errno.
 */
int replacement_settle_pending(struct injection *injection, const char *id, struct error *error);

/* replacement_write() - write the record of the new mount: as a pending one if the replaced mount has the same id. */
int replacement_write(const struct injection *injection, struct error *error);

/* replacement_complete() - the new mount is in its place: write its record, and remove that of the replaced mount. */
int replacement_complete(struct injection *injection, struct error *error);

/* replacement_settle_raw() - forbid the raw device of the replaced mount, if no other mount needs it. */
int replacement_settle_raw(const struct injection *injection, struct mount_record *record, struct error *error);

/*
 * replacement_forget() - the swap of a killed call is complete: remove the old mount's record and the reference to it.
 */
int replacement_forget(const struct injection *injection, struct mount_record *earlier, struct error *error);

/* replacement_swap() - place the new mount and unmount the old one, atomically where the kernel can. */
int replacement_swap(struct injection *injection, struct error *error);

/*
 * replacement_restore() - undo: mount the replaced mount again; with beneath, under the new one, which is taken back then,
 * and only where that is on top. In the container's mount namespace afterwards.
 */
int replacement_restore(struct injection *injection, bool beneath, struct error *error);

#endif
