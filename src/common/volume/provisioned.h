/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provisioned.h - what volume-create promised of a volume that it made, or adopted, under a name: the driver's verbs
 * keep it.
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
 * Errors:  ENOENT there is none, without words; EBUSY it is half made, or half deleted, and nobody's to use.
 */
int provisioned_find(const struct volume_call *call, const struct volume_kind *kind,
                     struct provision_record *ret_record, struct error *error);

/*
 * provisioned_keep() - the record's filesystem, mount flags and usage become the request's own; where both speak of
 * mount flags or usage, the request does last.
 *
 * Errors: EINVAL it is to be used as a block device, or the request wants another filesystem.
 */
int provisioned_keep(struct volume_request *request, const struct provision_record *record, struct error *error);

/* provisioned_is_by_name() - whether the request leaves it to its name which volume of a pool it means. */
bool provisioned_is_by_name(const struct volume_call *call);

/* provisioned_apply() - both, where the request names no place of its own, and call->kind is known. */
int provisioned_apply(struct volume_call *call, struct error *error);

#endif
