/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_mount.h - the object of a reply that is a mount, which was made or is listed.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_MOUNT_H
#define FLEXGRAFT_INJECT_REPLY_MOUNT_H

#include <jansson.h>

#include "base/key.h"
#include "inject/apply.h"
#include "inject/listing.h"
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
