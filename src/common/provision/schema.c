/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply.h"

#include "base/failure.h"
#include "provision/reply_object.h"
#include "provision/request.h"

static const struct schema_form replies[] = { { "done", ALL, &provision_done_keys },
                                              { "failed", ALL, &failure_keys },
                                              {} };

const struct schema provision_schemas[] = {
        [PROVISION_CREATE] = { .request = &provision_keys,
                               .programs = CREATE,
                               .replies = replies,
                               .people = provision_people_created },
        [PROVISION_DELETE] = { .request = &provision_keys,
                               .programs = DELETE,
                               .replies = replies,
                               .people = provision_people_deleted },
        [PROVISION_LIST] = { .request = &provision_keys,
                             .programs = LIST,
                             .replies = replies,
                             .people = provision_people_listed },
        [PROVISION_CAPACITY] = { .request = &provision_keys,
                                 .programs = CAPACITY,
                                 .replies = replies,
                                 .people = provision_people_capacity },
        [PROVISION_EXPAND] = { .request = &provision_keys,
                               .programs = EXPAND,
                               .replies = replies,
                               .people = provision_people_expanded },
        [PROVISION_SNAPSHOT] = { .request = &provision_keys,
                                 .programs = SNAPSHOT,
                                 .replies = replies,
                                 .people = provision_people_snapshot },
};
