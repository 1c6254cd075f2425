/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_keys.h - the options of the driver's volumes: which there are, of which types, and what they may be.
 */
#ifndef FLEXGRAFT_VOLUME_OPTION_KEYS_H
#define FLEXGRAFT_VOLUME_OPTION_KEYS_H

#include <jansson.h>

#include "base/key.h"

/* Its programs are a bit for each type of volumes, and one for ephemeral volumes. Values are texts. */
extern const struct key_table option_keys;

/* option_keys_tell() - log what means nothing in these options: a key that no type has, or "yes" for true. */
void option_keys_tell(const json_t *options);

#endif
