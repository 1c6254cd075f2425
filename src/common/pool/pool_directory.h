/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_directory.h - the volumes of a pool of directories: what the driver and volume-expand need of them.
 */
#ifndef FLEXGRAFT_POOL_POOL_DIRECTORY_H
#define FLEXGRAFT_POOL_POOL_DIRECTORY_H

#include <stdint.h>

#include "base/error.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "state/config.h"

/*
 * pool_directory_open() - the directory of a volume, with O_PATH. Gives: ret_path, of PATH_MAX bytes. Errors: ENOENT
 * it is not there any more; those of pool_open().
 */
int pool_directory_open(const struct config *config, const struct provision_record *record, char *ret_path,
                        struct error *error);

/*
 * pool_directory_grow() - set a volume's limit anew, also while it is used. Where its filesystem keeps to no limits
 * only the record knows the size. Gives: ret_size_bytes, rounded up to whole blocks.
 * Errors: EINVAL its directory has another project than it was given.
 */
int pool_directory_grow(const struct config *config, const struct provision_record *record, uint64_t size_bytes,
                        uint64_t *ret_size_bytes, struct error *error);

#endif
