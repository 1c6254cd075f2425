/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size)
{
        const unsigned char *byte = bytes;

        for (size_t i = 0; i < size; i++)
                seed = (seed ^ byte[i]) * 0x100000001b3ULL;
        return seed;
}

uint64_t hash_text(const char *text)
{
        return hash_bytes(HASH_SEED, text, strlen(text));
}

uint64_t hash_text_or_zero(const char *text)
{
        return text != NULL ? hash_text(text) | 1U : 0;
}
