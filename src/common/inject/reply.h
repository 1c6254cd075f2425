/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - a result -> the one JSON object on stdout, and the exit status that goes with it; and what that object may
 * have, for --help and --schema.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_H
#define FLEXGRAFT_INJECT_REPLY_H

#include <jansson.h>

#include "base/key.h"
#include "base/people.h"
#include "base/schema.h"
#include "inject/apply.h"
#include "inject/listing.h"
#include "inject/plan.h"
#include "state/mount_record.h"

/* The programs of replies, a bit for each sort. */
enum inject_replies {
        REPLIES_MOUNT = 1,
        REPLIES_SWITCH = 2, /* of a mount that may take the place of a volume (source_kind.switches) */
        REPLIES_ONE = REPLIES_MOUNT | REPLIES_SWITCH,
        REPLIES_BATCH = 4,
        REPLIES_MADE = REPLIES_ONE | REPLIES_BATCH,
        REPLIES_REMOVE = 8,
        REPLIES_LIST = 16,
};

/* Their programs are enum inject_replies. */
extern const struct schema_form inject_reply_forms[];

/* The replies for people, of all helpers but mount-list, whose table is list_table_say()'s. */
extern const struct people_form inject_people[];

/* Each prints one line and returns the program's exit status; EXIT_FAILED also when the line cannot be written. */
int inject_reply_mounted(const struct outcome *outcome);
int inject_reply_removed(const struct outcome *outcome);
int inject_reply_listed(const struct listing *listing);
int inject_reply_planned(const struct plan *plan, const struct outcome *outcome);
int inject_reply_mounted_all(const struct outcome *outcomes, size_t count);
int inject_reply_planned_all(const struct plan *plans, const struct outcome *outcomes, size_t count);

/* ---- the object of a reply that is a mount, which was made or is listed */

/* What the objects may have. */
extern const struct key_table reply_mount_keys;
extern const struct key_table reply_container_keys;

/* The caller owns each; NULL: no memory. */
json_t *reply_mount_made(unsigned programs, const struct outcome *outcome);
json_t *reply_mount_listed(const struct listing_entry *entry);
json_t *reply_container(pid_t pid, const char *id);

/* reply_mount_id() - as requests name it (mount_record_pending_id()). */
json_t *reply_mount_id(const struct mount_record *record);

/* reply_stays_attached() - why a volume does, in words. */
json_t *reply_stays_attached(const char *volume);

#endif
