/* SPDX-License-Identifier: Apache-2.0 */
/* source_kinds.c - here and not in inject/, because one of them stands above it. */
#include <stddef.h>

#include "inject/source.h"
#include "named/source_volume.h"

const struct source_kind *const source_kinds[] = {
        &source_bind, &source_block,  &source_image, &source_container, &source_tmpfs, &source_overlay,
        &source_nfs,  &source_volume, NULL,
};
