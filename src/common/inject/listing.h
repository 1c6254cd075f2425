/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - the mounts that flexgraft put into containers, each compared with the kernel's state.
 */
#ifndef FLEXGRAFT_INJECT_LISTING_H
#define FLEXGRAFT_INJECT_LISTING_H

#include <stddef.h>

#include "base/error.h"
#include "inject/request.h"
#include "mount/in_container.h"
#include "state/mount_record.h"

#define LISTING_NOTES_MAX 8

struct listing_entry {
        struct mount_record record;
        enum placement placement;
        bool remap_runs;   /* its remap-daemon runs; false where it needs none */
        char problem[192]; /* why the container could not be looked at; "" */
};

struct listing {
        struct listing_entry *entries; /* owned */
        size_t count;
        char set_aside[LISTING_NOTES_MAX][MOUNT_RECORD_ID_MAX]; /* torn or foreign records */
        size_t set_aside_count;
        char unreadable[LISTING_NOTES_MAX][MOUNT_RECORD_ID_MAX]; /* of another version, or unreadable */
        size_t unreadable_count;
};

/*
 * listing_make() - every record, or those of one container. A container that hangs is skipped within the request's
 * timeout. Errors: those of the state directory and of container_pin(); a broken record is not an error.
 */
int listing_make(struct listing *ret_listing, const struct request *request, struct error *error);

void listing_release(struct listing *listing);
#define cleanup_listing __attribute__((cleanup(listing_release)))

#endif
