/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/record_index.h"

#include "state/use_index.h"

int record_index_add(const struct state *records, const char *id, const char *file, struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";

        use_keys_add_disk(keys, id);
        return use_index_add(records, keys, USE_HOLDER_PROVISIONED, file, error);
}

int record_index_remove(const struct state *records, const char *id, const char *file)
{
        char keys[USE_KEYS_SIZE] = "";

        use_keys_add_disk(keys, id);
        return use_index_remove(records, keys, USE_HOLDER_PROVISIONED, file);
}
