/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_keys.h - the options of all kinds of volumes, as rows for --help and --schema.
 */
#ifndef FLEXGRAFT_VOLUME_OPTION_KEYS_H
#define FLEXGRAFT_VOLUME_OPTION_KEYS_H

#include "base/key.h"

/* option_keys() - made of the rows of the kinds (volume/kind.h) when it is asked for. */
const struct key_table *option_keys(void);

#endif
