/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - the mounts that flexgraft put into containers, each compared with the kernel's state; and what mount-list
 * prints of them where that is not the reply.
 */
#ifndef FLEXGRAFT_INJECT_LISTING_H
#define FLEXGRAFT_INJECT_LISTING_H

#include "base/error.h"
#include "inject/listing_collect.h"
#include "inject/request/request.h"
#include "state/mount_record.h"

/*
 * listing_make() - every record, or those of one container. A container that hangs is skipped within the request's
 * timeout. Errors: those of the state directory and of container_pin(); a broken record is not an error.
 */
int listing_make(struct listing *ret_listing, const struct request *request, struct error *error);

/* listing_record() - the record of an entry, its options as they are now; valid until the next call. */
const struct mount_record *listing_record(const struct listing_entry *entry);

/* listing_state() - "present", "covered", "gone", "wanted" and not there, or "unknown" if there is a problem. */
const char *listing_state(const struct listing_entry *entry);

/* list_table_say() - print it as a table for people, a line per mount. Returns the program's exit status. */
int list_table_say(const struct listing *listing);

/*
 * listing_metrics_say() - print it as metrics, of METRICS_THINGS_MAX mounts at most. Returns the program's exit status.
 */
int listing_metrics_say(const struct listing *listing);

void listing_release(struct listing *listing);
#define cleanup_listing __attribute__((cleanup(listing_release)))

#endif
