/* SPDX-License-Identifier: Apache-2.0 */
#include "state/mount_guard.h"

#include "block/loop_guard.h"

bool mount_guard_exists(const struct mount_record *record)
{
        return (record->raw_source != 0 && loop_guard_exists(record->raw_device)) ||
               (record->replaces_raw_source != 0 && loop_guard_exists(record->replaces_raw));
}

int mount_guard_release(const struct mount_record *record, struct error *error)
{
        uint64_t key = mount_record_guard_key(record);
        int r = record->raw_source == 0 ? 0 : loop_guard_release(record->raw_device, key, error);

        return r != 0 || record->replaces_raw_source == 0 ? r : loop_guard_release(record->replaces_raw, key, error);
}
