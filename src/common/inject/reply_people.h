/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_people.h - the replies of the mount helpers, for people.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_PEOPLE_H
#define FLEXGRAFT_INJECT_REPLY_PEOPLE_H

#include "base/people.h"

/* Of all helpers but mount-list, whose table is inject/list_table. */
extern const struct people_form inject_people[];

#endif
