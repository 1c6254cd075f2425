/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/pod_device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "block/loop_guard.h"
#include "state/uses.h"
#include "volume/used.h"

/* What the keeper's name holds: the volume, whatever its driver. */
static uint64_t key_of(const struct volume_call *call)
{
        return volume_record_key(call->record.name);
}

/* Whether the request's directory may have a directory's device. */
static bool may_share(const struct volume_call *call, const struct mount_dir *place, bool writes)
{
        return place->pod_device != 0 && place->pod_writes == writes &&
               place->pod_source == call->record.device_number &&
               (writes || strcmp(place->dir, call->request->dir) == 0);
}

/* Whether the request's directory has it by the record: its pod may run, and see what it has made of it. */
static bool has_already(const struct volume_call *call, uint64_t number)
{
        for (size_t i = 0; i < call->record.published_count; i++)
                if (strcmp(call->record.published[i].dir, call->request->dir) == 0)
                        return call->record.published[i].pod_device == number;
        return false;
}

/* Gives: ret_device, which holds it. Returns: 0; 1 there is none to share; or negative errno. */
static int share(const struct volume_call *call, bool writes, struct pod_device *ret_device, struct error *error)
{
        for (size_t i = 0; i < call->record.published_count; i++) {
                const struct mount_dir *place = &call->record.published[i];

                if (may_share(call, place, writes))
                        ret_device->keeper_fd = loop_guard_hold(place->pod_device, key_of(call));
                if (ret_device->keeper_fd < 0)
                        continue;
                ret_device->number = place->pod_device;
                return has_already(call, place->pod_device) ? 0 : loop_guard_show_whole(ret_device->keeper_fd, error);
        }
        return 1;
}

static int open_node(const struct pod_device *device, struct error *error)
{
        cleanup_close int fd = -EBADF;
        char path[LOOP_GUARD_PATH_SIZE];
        struct stat st;

        if (!loop_guard_path(device->number, path))
                return fail(error, ENXIO, "open", "loop device of a pod");
        fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(error, errno, "open", path);
        if (!S_ISBLK(st.st_mode) || st.st_rdev != device->number)
                return fail_because(error, ESTALE, "open", path, "%s is another device by now", path);
        return fd_take(&fd);
}

int pod_device_make(const struct volume_call *call, bool writes, struct pod_device *ret_device, struct error *error)
{
        const struct volume_record *record = &call->record;
        int r = share(call, writes, ret_device, error);

        ret_device->writes = writes;
        ret_device->made = r > 0;
        if (ret_device->made)
                r = ret_device->keeper_fd = loop_guard_make(record->device, record->device_number, key_of(call), writes,
                                                            &ret_device->number, error);
        return r < 0 ? r : open_node(ret_device, error);
}

int pod_device_keep(const struct pod_device *device, struct error *error)
{
        return device->made ? loop_guard_keep(device->keeper_fd, error) : 0;
}

void pod_device_release(struct pod_device *device)
{
        fd_close(&device->keeper_fd);
}

bool pod_device_is(const struct volume_call *call, uint64_t number)
{
        cleanup_close int fd = loop_guard_hold(number, key_of(call));

        return fd >= 0;
}

static int fail_open(const char *subject, struct error *error)
{
        return fail_because(error, EBUSY, "take away device", subject,
                            "a process still has the device of the volume open; end it first");
}

static int take(const struct volume_call *call, const struct mount_dir *place, struct error *error)
{
        int r = place->pod_device == 0 ? 0 : loop_guard_release(place->pod_device, key_of(call), error);

        return r <= 0 ? r : fail_open(place->dir, error);
}

int pod_device_give_back(const struct volume_call *call, const struct mount_dir *place, struct error *error)
{
        if (place->pod_device == 0)
                return 0;
        for (size_t i = 0; i < call->record.published_count; i++)
                if (&call->record.published[i] != place && call->record.published[i].pod_device == place->pod_device)
                        return 0;
        return take(call, place, error);
}

int pod_device_take_all(const struct volume_call *call, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < call->record.published_count; i++)
                r = take(call, &call->record.published[i], error);
        return r;
}

int pod_device_take_lost(const struct volume_call *call, struct error *error)
{
        int r = loop_guard_release_on(call->record.device, volume_record_key(call->request->name), error);

        return r <= 0 ? r : fail_open(call->record.device, error);
}

int pod_device_replace(const struct volume_call *call, const struct pod_device *device, struct error *error)
{
        for (size_t i = 0; i < call->record.published_count; i++) {
                const struct mount_dir *place = &call->record.published[i];

                if (strcmp(place->dir, call->request->dir) == 0)
                        return place->pod_device == device->number ? 0 : pod_device_give_back(call, place, error);
        }
        return 0;
}

/* ---- of pods and of containers alike */

typedef int guard_function(uint64_t number, uint64_t key, struct error *error);

static int of_container(const struct use *use, void *argument, struct error *error)
{
        guard_function *const *function = argument;

        if (use->kind != USE_RAW || use->mount->raw_source == 0)
                return 0;
        return (*function)(use->mount->raw_device, mount_record_guard_key(use->mount), error);
}

static int each_guard(const struct volume_call *call, guard_function *function, struct error *error)
{
        char keys[USE_KEYS_SIZE];
        int r = 0;

        for (size_t i = 0; r == 0 && i < call->record.published_count; i++)
                if (call->record.published[i].pod_device != 0)
                        r = function(call->record.published[i].pod_device, key_of(call), error);
        if (r < 0 || (r = volume_used_keys(call, 0, keys, error)) < 0)
                return r;
        return uses_each(call->config.state_dir, keys, of_container, &function, error);
}

int pod_device_flush(const struct volume_call *call, struct error *error)
{
        return each_guard(call, loop_guard_flush, error);
}

int pod_device_grow(const struct volume_call *call, struct error *error)
{
        return each_guard(call, loop_guard_grow, error);
}
