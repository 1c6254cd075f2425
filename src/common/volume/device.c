/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/device.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

#define RETRY_NS (200L * 1000 * 1000)

int volume_device_wait_for(const char *source, unsigned timeout_seconds, struct block_device *ret_device,
                           struct error *error)
{
        static const struct timespec pause = { .tv_nsec = RETRY_NS };
        int64_t deadline_ms = clock_now_ms() + (int64_t)timeout_seconds * 1000;
        int r;

        while ((r = block_device_find(source, ret_device, error)) == -ENOENT || r == -ENXIO) {
                if (clock_now_ms() >= deadline_ms)
                        return fail_because(error, -r, "find device", source,
                                            "the device %s did not appear within %u seconds", source, timeout_seconds);
                (void)nanosleep(&pause, NULL);
        }
        return r;
}

struct claim {
        const struct volume_call *call;
        uint64_t number;
        char name[VOLUME_NAME_MAX];
        char dir[PATH_MAX]; /* where that volume is mounted; "" */
};

static int match_claim(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct claim *claim = argument;
        const struct volume_call *call = claim->call;

        (void)file;
        (void)error;
        if (record == NULL || record->device_number != claim->number || strcmp(record->boot_id, call->boot_id) != 0 ||
            (strcmp(record->name, call->request->name) == 0 && strcmp(record->driver, call->record.driver) == 0) ||
            (record->read_only && call->request->read_only))
                return 0;
        (void)text_copy(claim->name, sizeof claim->name, record->name);
        if (record->published_count > 0)
                (void)text_copy(claim->dir, sizeof claim->dir, record->published[0].dir);
        else if (record->staged.dir != NULL)
                (void)text_copy(claim->dir, sizeof claim->dir, record->staged.dir);
        return 1;
}

int volume_device_check_alone(struct volume_call *call, const struct block_device *device, struct error *error)
{
        struct claim claim = { .call = call, .number = device->number };
        int r = state_lock(&call->state, hash_bytes(HASH_SEED, &device->number, sizeof device->number), error);

        if (r < 0 || (r = volume_record_each(&call->state, /* set_aside= */ false, match_claim, &claim, error)) < 0)
                return r;
        if (r > 0)
                return fail_because(error, EBUSY, "find device", device->path,
                                    "the device %s is in use by volume \"%.200s\"%s%.1000s; detach that volume first",
                                    device->path, claim.name, claim.dir[0] != '\0' ? ", mounted on " : "", claim.dir);
        return call->request->read_only ? 0 : block_device_check_unused(device, error);
}
