/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_schema.h - what the mount helpers take and reply, for --help and --schema.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_SCHEMA_H
#define FLEXGRAFT_INJECT_REPLY_SCHEMA_H

#include "base/schema.h"

/* The programs of inject_reply_forms, a bit for each sort. */
enum inject_replies {
        REPLIES_MOUNT = 1,
        REPLIES_SWITCH = 2, /* of a mount that may take the place of a volume (source_kind.switches) */
        REPLIES_BATCH = 4,
        REPLIES_REMOVE = 8,
        REPLIES_LIST = 16,
};

/* The shapes of inject/reply.c. */
extern const struct schema_form inject_reply_forms[];

#endif
