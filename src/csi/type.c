/* SPDX-License-Identifier: Apache-2.0 */
#include "type.h"

#include <stddef.h>

#include "base/text.h"

static const struct csi_type types[] = {
        { .word = CSI_TYPE_SERVER, .server = true, .shared = true, .directory = true, .plain = true },
        { .word = "bind", .shared = true, .plain = true },
        { .word = "tmpfs", .plain = true },
        { .word = "directory", .directory = true },
};

const struct csi_type *csi_type_find(const char *word)
{
        static const struct csi_type other;

        for (size_t i = 0; word != NULL && i < sizeof types / sizeof types[0]; i++)
                if (text_same(types[i].word, word))
                        return &types[i];
        return &other;
}
