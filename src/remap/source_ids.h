/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_ids.h - the ids of the source, where they are not those that FUSE says: a directory of one container, mounted in
 * another. Uid N in requests and answers is uid N in either container, and at the source that is what the first one's map
 * makes of it. This module alone knows that map. Elsewhere, ids of requests and answers are those of the source, and
 * nothing changes here.
 *
 * To take an id is to make one of the source of what the kernel says, to show it the inverse.
 */
#ifndef FLEXGRAFT_REMAP_SOURCE_IDS_H
#define FLEXGRAFT_REMAP_SOURCE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* source_ids_differ() - whether they are other ids. */
bool source_ids_differ(void);

/* source_ids_take_user(), source_ids_take_group() - in place; false: the source has none for it, and nothing is changed. */
bool source_ids_take_user(uid_t *uid);
bool source_ids_take_group(gid_t *gid);

/* source_ids_take() - both. False: the source has none for one of them, and nothing is changed. */
bool source_ids_take(uid_t *uid, gid_t *gid);

/* source_ids_take_groups() - in place, without those that the source has none for. Returns: their number. */
int source_ids_take_groups(gid_t *groups, int count);

/*
 * source_ids_show_user(), source_ids_show_group(), source_ids_show() - in place. One that the first container's map lacks becomes 4294967295,
 * which no user namespace has: the kernel shows 65534 for it, and gives nobody its rights (HAS_UNMAPPED_ID() in
 * fs/internal.h, capable_wrt_inode_uidgid()).
 */
void source_ids_show_user(uid_t *uid);
void source_ids_show_group(gid_t *gid);
void source_ids_show(uid_t *uid, gid_t *gid);

#endif
