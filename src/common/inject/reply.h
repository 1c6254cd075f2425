/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - a result -> the one JSON object on stdout, and the exit status that goes with it; and what that object may
 * have, for --help and --schema.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_H
#define FLEXGRAFT_INJECT_REPLY_H

#include "base/people.h"
#include "base/schema.h"
#include "inject/apply.h"
#include "inject/listing.h"
#include "inject/plan.h"
#include "inject/reply_mount.h"

/* Their programs are those of inject/reply_mount.h. */
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

#endif
