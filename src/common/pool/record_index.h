/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_index.h - the records of volumes by what they are called in their pools: entries in the index (state/use_index.h),
 * so that whose a disk is costs the same however many volumes there are.
 *
 * The key is the id alone: pools that are one place under several names have the same ids, and the place of a pool may
 * change. An entry is made before its record is written, and removed after it. One whose record has another id says nothing.
 */
#ifndef FLEXGRAFT_POOL_RECORD_INDEX_H
#define FLEXGRAFT_POOL_RECORD_INDEX_H

#include "base/error.h"
#include "state/state_dir.h"

/* record_index_add() - before a record is written to file. record_index_remove() - remove the record, then its entry. */
int record_index_add(const struct state *records, const char *id, const char *file, struct error *error);
int record_index_remove(const struct state *records, const char *id, const char *file);

#endif
