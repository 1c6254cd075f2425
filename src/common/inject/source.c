/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/source.h"

#include <stddef.h>

const struct source_kind *const source_kinds[] = {
        &source_bind, &source_block, &source_container, &source_tmpfs, &source_overlay, &source_nfs, NULL,
};
