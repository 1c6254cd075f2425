/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets.h - the nodes in use by their files' device and inode numbers: a hash table in shared->buckets, in lists that
 * node.next links. Few buckets are in use for few nodes: they take less memory, and are in the processor's caches. All
 * but buckets_begin() with the mutex of the nodes held.
 */
#ifndef FLEXGRAFT_REMAP_BUCKETS_H
#define FLEXGRAFT_REMAP_BUCKETS_H

#include "shared.h"

/* buckets_begin() - put all nodes that are in use into the table. */
void buckets_begin(void);

/* buckets_put(), buckets_take() - add a node, which is not yet marked as used; remove one. */
void buckets_put(struct node *node);
void buckets_take(const struct node *node);

/* buckets_first() - the number of the first node in the list of such files; 0: none. */
uint32_t buckets_first(uint64_t device, uint64_t inode);

#endif
