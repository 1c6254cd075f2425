/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.h - the replies of the volume tools, for people.
 */
#ifndef FLEXGRAFT_PROVISION_PEOPLE_H
#define FLEXGRAFT_PROVISION_PEOPLE_H

#include "base/people.h"

extern const struct people_form provision_people_created[];
extern const struct people_form provision_people_deleted[];
extern const struct people_form provision_people_listed[];
extern const struct people_form provision_people_capacity[];
extern const struct people_form provision_people_expanded[];
extern const struct people_form provision_people_snapshot[];

#endif
