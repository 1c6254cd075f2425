/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mount/identity.h"
#include "mount/mountinfo.h"
#include "provision/disk_uses.h"
#include "reconcile/kubelet.h"
#include "state/uses.h"
#include "volume/kata_image.h"
#include "volume/named_stage.h"
#include "volume/sighting.h"
#include "volume/used.h"

/* The record of the image in a volume's own filesystem lasts as long as that is used. */
static bool has_kata_record(const struct volume_call *call, const char *dir)
{
        cleanup_volume_record struct volume_record record = {};
        struct error ignored;
        char name[KATA_IMAGE_RECORD_SIZE];

        kata_image_record(dir, name);
        return volume_record_peek(call->config.state_dir, name, call->record.driver, &record, &ignored) != -ENOENT;
}

/* The id that mountinfo shows of the stage's mount, in which no symbolic link is; 0: another mount is there. */
static uint64_t see_stage(const struct mount_dir *staged)
{
        cleanup_close int fd = open(staged->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct mount_seen seen;
        uint64_t id;

        if (fd < 0 || mount_see(fd, "", &seen) < 0 || !mount_seen_is(&seen, &staged->identity))
                return 0;
        return mount_see_short_id(fd, &id) < 0 ? 0 : id;
}

/* The mounts of the node: an object of arrays, by "DEVICE" and, where a btrfs has a number of its own, by "=SOURCE". */
static void put_mount(json_t *mounts, const char *key, const struct mountinfo *table)
{
        json_t *list = json_object_get(mounts, key);

        if (list == NULL) {
                (void)json_object_set_new_nocheck(mounts, key, json_array());
                list = json_object_get(mounts, key);
        }
        (void)json_array_append_new(
                list, json_pack("[I, o]", (json_int_t)table->id, json_string_nocheck(table->mount_point)));
}

static void device_key(uint64_t device, char *ret_key)
{
        (void)snprintf(ret_key, 20, "%llx", (unsigned long long)device);
}

/* NULL: that cannot be seen. */
static json_t *read_mounts(void)
{
        cleanup_mount_table struct mountinfo table = {};
        char key[PATH_MAX + 1];
        json_t *mounts;

        if (mountinfo_open_own(&table) < 0)
                return NULL;
        mounts = json_object();
        while (mountinfo_next(&table)) {
                device_key(table.device, key);
                put_mount(mounts, key, &table);
                if (mountinfo_names(&table, table.source) &&
                    snprintf(key, sizeof key, "=%s", table.source) < (int)sizeof key)
                        put_mount(mounts, key, &table);
        }
        if (!table.failed)
                return mounts;
        json_decref(mounts);
        return NULL;
}

static bool is_another(const json_t *list, const struct volume_record *record, uint64_t stage_id)
{
        const json_t *mount;
        size_t i;

        json_array_foreach (list, i, mount)
                if (record->staged.dir == NULL || stage_id != 0
                            ? (uint64_t)json_integer_value(json_array_get(mount, 0)) != stage_id
                            : strcmp(json_string_value(json_array_get(mount, 1)), record->staged.dir) != 0)
                        return true;
        return false;
}

/* Whether the device is mounted on the node, but for the stage; also where that cannot be seen. */
static bool is_mounted_elsewhere(const struct volume_call *call, const json_t *mounts)
{
        const struct volume_record *record = &call->record;
        uint64_t stage_id = record->staged.dir == NULL ? 0 : see_stage(&record->staged); /* no mount's id is 0 */
        char key[PATH_MAX + 1];

        if (mounts == NULL)
                return true;
        device_key(record->device_number, key);
        if (is_another(json_object_get(mounts, key), record, stage_id))
                return true;
        (void)snprintf(key, sizeof key, "=%s", record->device);
        return is_another(json_object_get(mounts, key), record, stage_id);
}

int reconcile_check_list(const struct volume_call *call, struct error *error)
{
        const struct uses_except own = {
                .volume = call->record.name, .driver = call->record.driver, .attached = true, .mounted = true
        };
        char keys[USE_KEYS_SIZE];
        int r = volume_used_keys(call, BLOCK_STACK_LOOPS, keys, error);

        return r < 0 ? r
                     : uses_check_none(call->config.state_dir, keys, &own, "look for users", call->record.name, error);
}

/* Whether anything but the stage itself uses an attached volume. pods: NULL: as they are now. */
static bool is_used(const struct volume_call *call, struct kubelet_pods *pods, const json_t *mounts)
{
        const struct volume_record *record = &call->record;
        const char *dir = record->staged.dir;
        struct error ignored;

        if (reconcile_check_list(call, &ignored) < 0)
                return true;
        if (dir == NULL) /* an ephemeral volume is attached for a mount that another record has */
                return is_mounted_elsewhere(call, mounts);
        if (kata_image_is_below(call->config.state_dir, dir) && has_kata_record(call, dir))
                return true;
        /* kubelet's directory is named after the volume; the record of an image in a volume is not */
        return kubelet_pods_had(pods, &call->config, record->driver, record->name) ||
               kubelet_pods_had(pods, &call->config, record->driver, strrchr(dir, '/') + 1) ||
               kubelet_pods_had_staged(pods, &call->config, dir) || is_mounted_elsewhere(call, mounts);
}

/* By what the round has read once for all volumes. */
static bool was_used(struct reconcile_round *round, const struct volume_call *call)
{
        if (round->mounts == NULL)
                round->mounts = read_mounts();
        return is_used(call, &round->pods, round->mounts);
}

static bool is_used_now(const struct volume_call *call)
{
        cleanup_json json_t *mounts = read_mounts();

        return is_used(call, /* pods= */ NULL, mounts);
}

static bool see_used(const struct reconcile_round *round, const struct volume_call *call)
{
        if (!round->reconcile->dry_run)
                sighting_forget(call);
        return false;
}

bool reconcile_is_forgotten(struct reconcile_round *round, struct volume_call *call)
{
        const struct volume_record *record = &call->record;
        const char *dir = record->staged.dir;
        struct error error = {};
        bool kubelet;
        uint64_t seconds;

        if (record->published_count > 0 || was_used(round, call))
                return see_used(round, call);
        kubelet = dir != NULL && kubelet_runs(&call->config);
        seconds = sighting_see(call, kubelet, /* write= */ !round->reconcile->dry_run);
        if (seconds < call->config.unstage_seconds)
                return false;
        if (is_used_now(call))
                return see_used(round, call);
        if (dir == NULL || named_stage_is(&call->config, dir) ||
            (kubelet && (kubelet_stages_on(&call->config, dir) || kata_image_is_below(call->config.state_dir, dir))))
                return true;
        error_because(&error, EBUSY, "look for users", record->name,
                      "staged on %s, and no pod has had it for %u minutes; %s", dir, (unsigned)(seconds / 60),
                      kubelet ? "kubelet did not stage it: call unmountdevice and detach"
                              : "it is unstaged when kubelet runs");
        reconcile_problem(round->reconcile, record->name, &error);
        return false;
}
