/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing_collect.h - what a list of mounts is of: the records of one container, or of all, and what is wanted in them.
 */
#ifndef FLEXGRAFT_INJECT_LISTING_COLLECT_H
#define FLEXGRAFT_INJECT_LISTING_COLLECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "block/device.h"
#include "container/container.h"
#include "mount/fs_usage.h"
#include "mount/in_container.h"
#include "state/mount_record.h"
#include "state/state_dir.h"

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

struct listing_collection {
        struct listing *listing;
        struct state *state;
        const struct container *container; /* NULL: all containers, or one that does not run */
        const char *called;                /* what that is called; NULL */
        const char *runtime;               /* where; NULL: anywhere */
        bool by_identity;                  /* those of this identity that were named otherwise are looked for */
        const char *boot_id;
};

/* listing_collect_records() - add an entry for each record, which says nothing yet of what is mounted. */
int listing_collect_records(struct listing_collection *collection, struct error *error);

/*
 * listing_collect_wishes() - after the kernel was asked: which of them are wanted, and an entry for each mount that is wanted
 * and has no record.
 */
int listing_collect_wishes(struct listing_collection *collection, const char *state_dir, struct error *error);

#endif
