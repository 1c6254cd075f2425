/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/remap_settings.h"

#include <stddef.h>

const char *const remap_cache_words[] = { "auto", "always", NULL };
