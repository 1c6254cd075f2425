/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replacement.h - a mount that takes the place of an earlier one of ours, and what a call that was killed left of that.
 */
#ifndef FLEXGRAFT_INJECT_REPLACEMENT_H
#define FLEXGRAFT_INJECT_REPLACEMENT_H

#include "base/error.h"
#include "inject/injection.h"

/* replacement_accept() - the record's mount is on top at the target: done already, if it is the one that is asked for. */
int replacement_accept(struct injection *injection, const struct mount_record *earlier, struct error *error);

/*
 * replacement_check_earlier() - the record's mount is not at the target. Its record may be written over once the mount
 * is nowhere else, either.
 */
int replacement_check_earlier(struct injection *injection, const struct mount_record *earlier, struct error *error);

/* replacement_begin() - what is on top at the target is this record's: it gives way to what is asked for. */
int replacement_begin(struct injection *injection, const struct mount_record *earlier, struct error *error);

/*
 * replacement_finish_swap() - an earlier call swapped mounts and was killed on the way: the new one lies beneath the old
 * one, which goes now. 1 done, 0 there is nothing to finish, or negative errno.
 */
int replacement_finish_swap(struct injection *injection, const struct mount_record *earlier, struct error *error);

/*
 * replacement_finish_other() - the same for another call that was to replace what is there, whatever it called that. 1
 * the target is to be looked at again, 0 nothing was left, or negative errno.
 */
int replacement_finish_other(struct injection *injection, struct error *error);

/* replacement_settle_raw() - the raw device of what was replaced, if it had one, is not needed for that any more. */
int replacement_settle_raw(const struct injection *injection, struct mount_record *record, struct error *error);

/* replacement_forget() - the swap of a killed call is over: the old mount's record goes, and ours forgets about it. */
int replacement_forget(const struct injection *injection, struct mount_record *earlier, struct error *error);

/* replacement_swap() - the new mount is placed and the old one goes, with no moment without a mount where that can be. */
int replacement_swap(struct injection *injection, struct error *error);

/* replacement_restore() - the mount that was to be replaced, at its place again. */
int replacement_restore(struct injection *injection, struct error *error);

#endif
