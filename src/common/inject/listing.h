/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - the mounts that flexgraft put into containers, each compared with the kernel's state; and what mount-list
 * prints of them where that is not the reply.
 */
#ifndef FLEXGRAFT_INJECT_LISTING_H
#define FLEXGRAFT_INJECT_LISTING_H

#include <stddef.h>

#include "base/error.h"
#include "block/device.h"
#include "inject/request/request.h"
#include "mount/fs_usage.h"
#include "mount/in_container.h"
#include "state/mount_record.h"

#define LISTING_NOTES_MAX 8

/* One mount. There may be ten thousand: an entry is small, and its record as long as its texts are. */
struct listing_entry {
        char *packed; /* its record (state/record_flat.h), owned */
        pid_t pid;    /* these of its record */
        const char *container_id;
        const char *target;
        bool asked; /* the kernel was asked of it, or gave no answer */
        enum placement placement;
        bool wanted;                    /* whenever the container runs ("persist") */
        const char *wishes;             /* in packed: the file of what is wanted in its container (state/wish); "" */
        bool remap_runs;                /* its remap-daemon runs; false where it needs none */
        enum block_device_state device; /* with record.disk */
        bool known;                     /* what follows is: the mount is present */
        unsigned long flags;            /* statfs(2)'s, of the mount */
        struct fs_usage usage;          /* of its filesystem */
        char problem[384];              /* why the container could not be looked at; "" */
};

struct listing {
        struct listing_entry *entries; /* owned */
        size_t count;
        size_t room;                                            /* for entries */
        char set_aside[LISTING_NOTES_MAX][MOUNT_RECORD_ID_MAX]; /* torn or foreign records */
        size_t set_aside_count;
        size_t aside_count; /* those that are there, of earlier calls, too; 0 of one container */
        char unreadable[LISTING_NOTES_MAX][MOUNT_RECORD_ID_MAX]; /* of another version, or unreadable */
        size_t unreadable_count;
};

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
