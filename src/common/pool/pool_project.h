/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_project.h - the project of a volume that is a directory, where its filesystem keeps to quotas of projects.
 */
#ifndef FLEXGRAFT_POOL_POOL_PROJECT_H
#define FLEXGRAFT_POOL_POOL_PROJECT_H

#include <stdint.h>

#include "base/error.h"
#include "pool/record.h"

/*
 * pool_project_assign() - give a new directory a project, whose limit is the volume's size. With the pool's lock.
 * Gives: ret_identity, of PROVISION_IDENTITY_MAX bytes, for the record: which; "" without quotas.
 */
int pool_project_assign(int fd, const struct provision_record *record, char *ret_identity, struct error *error);

/*
 * pool_project_grow() - set its limit anew. Errors: EINVAL the directory has another project now than its record says;
 * EOPNOTSUPP it was adopted, with a limit.
 */
int pool_project_grow(int fd, const struct provision_record *record, uint64_t size_bytes, struct error *error);

#endif
