/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/device.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "pool/record.h"
#include "provision/disk_uses.h"
#include "state/uses.h"
#include "state/uses_ended.h"

#define RETRY_MS 200

int volume_device_wait_for(const char *source, unsigned timeout_seconds, struct block_device *ret_device,
                           struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)timeout_seconds * 1000;
        int r;

        while ((r = block_device_find(source, ret_device, error)) == -ENOENT || r == -ENXIO) {
                if (clock_now_ms() >= deadline_ms)
                        return fail_because(error, -r, OPERATION_FIND_DEVICE, source,
                                            "the device %s did not appear within %u seconds", source, timeout_seconds);
                clock_pause_ms(RETRY_MS);
        }
        return r;
}

struct claim {
        const struct volume_call *call;
        char text[USES_TEXT_SIZE];
};

/* A PersistentVolume is no FlexVolume driver's. */
static bool is_for_other(const struct volume_call *call, const struct volume_record *volume)
{
        return call->driver[0] != '\0' && volume != NULL && strcmp(volume->namespace, PROVISION_OF_CSI) == 0;
}

/* Readers share a device. */
static int match_claim(const struct use *use, void *argument, struct error *error)
{
        struct claim *claim = argument;
        const struct volume_call *call = claim->call;
        const struct volume_record *volume = use->volume;

        (void)error;
        if ((volume != NULL && strcmp(volume->name, call->request->name) == 0 &&
             strcmp(volume->driver, call->record.driver) == 0) ||
            (!use->writes && call->request->read_only && !is_for_other(call, volume)))
                return 0;
        uses_describe(use, claim->text);
        return 1;
}

int volume_device_check_alone(struct volume_call *call, const struct block_device *device, struct error *error)
{
        struct claim claim = { .call = call };
        char keys[USE_KEYS_SIZE] = "";
        int r = state_lock(&call->state, hash_bytes(HASH_SEED, &device->number, sizeof device->number), error);

        if (r < 0 || (r = disk_uses_add_device(keys, device->number, BLOCK_STACK_BELOW, error)) < 0)
                return r;
        r = uses_each_released(call->config.state_dir, keys, match_claim, &claim, error);
        if (r < 0)
                return r;
        if (r > 0)
                return fail_because(error, EBUSY, OPERATION_FIND_DEVICE, device->path,
                                    "the device %s is in use by %s; detach or end that first", device->path,
                                    claim.text);
        return call->request->read_only ? 0 : block_device_check_unused(device, error);
}
