/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_kind.h - the kind of a volume whose options do not say it.
 */
#ifndef FLEXGRAFT_VOLUME_KNOWN_KIND_H
#define FLEXGRAFT_VOLUME_KNOWN_KIND_H

#include "volume/kind.h"

/*
 * volume_kind_known() - the kind it: the record's (of_record, its word; NULL: there is
 * no record), else the driver's, else that of what volume-create made under this name. NULL: none of them knows.
 */
const struct volume_kind *volume_kind_known(const char *state_dir, const char *of_record,
                                            const struct volume_kind *of_driver, const char *name);

#endif
