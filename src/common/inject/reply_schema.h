/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_schema.h - what the mount helpers take and reply, for --help and --schema.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_SCHEMA_H
#define FLEXGRAFT_INJECT_REPLY_SCHEMA_H

#include "base/schema.h"

/* The shapes of inject/reply.c; their programs are the bits of enum request_kind. */
extern const struct schema_form inject_reply_forms[];

#endif
