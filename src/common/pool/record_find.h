/* SPDX-License-Identifier: Apache-2.0 */
/* record_find.h - the records of volumes of one id, by the index (pool/record.h). */
#ifndef FLEXGRAFT_POOL_RECORD_FIND_H
#define FLEXGRAFT_POOL_RECORD_FIND_H

#include "base/error.h"
#include "pool/record.h"
#include "state/state_dir.h"

/*
 * record_find_each() - call function() with every record of that id, until it returns other than 0, which is the result.
 * Records from before there was an index are entered first, once.
 */
int record_find_each(const struct state *records, const char *id, provision_record_function *function, void *argument,
                     struct error *error);

/* record_find_repair() - make the entries agree with the records. Reads all of them; volume-reconcile does it. */
int record_find_repair(struct state *records, struct error *error);

#endif
