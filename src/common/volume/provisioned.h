/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provisioned.h - what volume-create recorded of a volume that it made or adopted: the driver's verbs hold to it.
 */
#ifndef FLEXGRAFT_VOLUME_PROVISIONED_H
#define FLEXGRAFT_VOLUME_PROVISIONED_H

#include <stdbool.h>

#include "base/error.h"
#include "provision/record.h"
#include "volume/call.h"

/*
 * provisioned_find() - the record of volume-create under the request's name, of a pool that this kind of volume is made in.
 *
 * Gives:   ret_record, released by provision_record_release(), also after a failure.
 * Errors:  ENOENT there is none, without a message; EBUSY it is half made or half deleted.
 */
int provisioned_find(const struct volume_call *call, const struct volume_kind *kind,
                     struct provision_record *ret_record, struct error *error);

/*
 * provisioned_keep() - add the record's filesystem, mount flags and usage to the request. The request's own mount flags
 * and usage take precedence.
 *
 * Errors: EINVAL it was made as a block device, or for another filesystem.
 */
int provisioned_keep(struct volume_request *request, const struct provision_record *record, struct error *error);

/* provisioned_is_by_name() - whether only the volume's name says which volume of a pool it is. */
bool provisioned_is_by_name(const struct volume_call *call);

/* provisioned_apply() - both, where provisioned_is_by_name(). Needs call->kind. */
int provisioned_apply(struct volume_call *call, struct error *error);

#endif
