/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volume.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "process/log.h"
#include "process/privileges.h"
#include "volume/choose.h"
#include "volume/device_filesystem.h"
#include "volume/mount_dir.h"
#include "volume/named_stage.h"
#include "volume/pod_device.h"
#include "volume/provisioned.h"
#include "volume/same.h"
#include "volume/sighting.h"
#include "volume/used.h"

static int attach_here(struct volume_call *call, struct error *error)
{
        int r;

        call->answer.device = "";
        if ((r = volume_call_open(call, error)) < 0 || (r = volume_check_csi(call, error)) < 0 ||
            (r = volume_choose_kind(call, error)) < 0 || (r = volume_call_load_policy(call, error)) < 0)
                return r;
        if (!call->kind->has_device)
                return 0; /* without a device there is nothing to do before mount */
        if ((r = volume_check_same(call, error)) < 0 || (r = volume_access_apply(call, error)) < 0 ||
            (r = profiled_ensure(call, error)) < 0)
                return r;
        if ((r = provisioned_hold(call, error)) < 0 || (r = call->kind->attach(call, error)) < 0)
                return r;
        sighting_forget(call); /* a pod is to have it */
        call->answer.device = call->record.device;
        return 0;
}

int volume_attach(struct volume_call *call, struct error *error)
{
        int r = volume_call_where(call, error);

        if (r != 0)
                return r < 0 ? r : attach_here(call, error);
        call->answer.device = "";
        if ((r = volume_choose_kind(call, error)) < 0)
                return r;
        if (call->kind->predict == NULL)
                return 0;
        if ((r = call->kind->predict(call, error)) < 0)
                return r;
        call->answer.device = call->record.device;
        return 0;
}

int volume_wait_for_attach(struct volume_call *call, struct error *error)
{
        return attach_here(call, error);
}

int volume_is_attached(struct volume_call *call, struct error *error)
{
        int r = volume_call_where(call, error);

        call->answer.attached = true;
        if (r <= 0) /* as attach answers for another node: waitforattach attaches it there */
                return r < 0 ? r : volume_choose_kind(call, error);
        if ((r = volume_call_open(call, error)) < 0 || (r = volume_choose_kind(call, error)) < 0)
                return r;
        if (call->kind->look == NULL)
                return 0;
        r = call->kind->look(call, error);
        call->answer.attached = r > 0;
        return r < 0 ? r : 0;
}

static bool is_mount(const struct volume_call *call, const char *dir)
{
        struct error ignored;
        unsigned missing;

        return mount_dir_look(call, dir, &missing, &ignored) == MOUNT_DIR_OURS;
}

/* kubelet unmounts before it detaches: what is still mounted must not be detached. */
static int check_unmounted(const struct volume_call *call, struct error *error)
{
        const struct volume_record *record = &call->record;
        const char *dir = record->staged.dir;

        if (dir == NULL || !is_mount(call, dir)) {
                dir = NULL;
                for (size_t i = 0; dir == NULL && i < record->published_count; i++)
                        if (is_mount(call, record->published[i].dir))
                                dir = record->published[i].dir;
        }
        return dir == NULL ? 0
                           : fail_because(error, EBUSY, "detach", dir,
                                          "the volume is still mounted on %s; unmount it first", dir);
}

/* Of pods that have ended; with the volume's own gone, no unmount will follow for them. */
static int take_pod_devices(const struct volume_call *call, struct error *error)
{
        int r = call->kind->has_device ? check_unmounted(call, error) : 0;

        return r < 0 ? r : pod_device_take_all(call, error);
}

/* Directories that a killed call made; no unmount will follow for them. */
static void unmake_dirs(struct volume_call *call)
{
        struct volume_record *record = &call->record;

        for (size_t i = 0; i < record->published_count; i++)
                mount_dir_unmake(record->published[i].dir, record->published[i].made);
        if (record->staged.dir != NULL)
                mount_dir_unmake(record->staged.dir,
                                 named_stage_is(&call->config, record->staged.dir) ? 1 : record->staged.made);
}

/*
 * A killed mkfs leaves something that looks like a filesystem. Where the device is gone or cannot be written, only the
 * record tells that it is none.
 */
static int keep_record(struct volume_call *call, struct error *error)
{
        log_say("kept the record: its filesystem is unfinished");
        call->record.device[0] = '\0';
        call->record.device_number = 0;
        return volume_call_save(call, FILE_DURABLE, error);
}

static int detach_device(struct volume_call *call, bool *ret_unformatted, struct error *error)
{
        bool shared;
        int r;

        if ((r = check_unmounted(call, error)) < 0 || (r = volume_check_detachable(call, &shared, error)) < 0)
                return r;
        if (shared) {
                log_say("%s stays attached for other volumes, which read it", call->record.device);
                return 0;
        }
        r = device_filesystem_unmake(call, error);
        if (r == -EBUSY)
                return r; /* mkfs has not ended yet: kubelet tries again */
        *ret_unformatted = r == 0;
        return call->kind->detach(call, error);
}

/*
 * Whether detach names this node. Where config.json does not say how kubelet calls the node, a volume that was attached
 * by waitforattach, which gets no node, counts as attached for any node.
 */
static bool is_meant(const struct volume_call *call)
{
        if (volume_call_is_here(call))
                return true;
        return call->recorded && call->config.node_name[0] == '\0' &&
               (call->record.node[0] == '\0' || strcasecmp(call->record.node, call->request->node) == 0);
}

/* The list of mounts has the state directory's path without links: /var/lib/kubelet may be one to another disk. */
static bool is_named_stage(const struct volume_call *call, const char *dir)
{
        char named[PATH_MAX];
        struct error ignored;
        struct stat stage;
        struct stat st;

        return named_stage_is(&call->config, dir) ||
               (named_stage_dir(call, named, &ignored) == 0 && stat(named, &stage) == 0 && stat(dir, &st) == 0 &&
                stage.st_dev == st.st_dev && stage.st_ino == st.st_ino);
}

/* Without a record: the tag of a loop device still tells which volume it belongs to. */
static int detach_lost(struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];
        int found = -ENOENT;
        int r;

        volume_choose_lost(call);
        if ((r = call->kind->look(call, error)) < 0)
                return r;
        if (r > 0)
                found = mount_dir_find(call, dir, error);
        if (found == 0 && is_named_stage(call, dir)) {
                if ((r = volume_check_unused(call, "detach", error)) < 0 ||
                    (r = named_stage_unmount(call, dir, error)) < 0)
                        return r;
                mount_dir_unmake(dir, 1);
                r = 1;
                found = mount_dir_find(call, dir, error);
        }
        if (found < 0 && found != -ENOENT)
                return found;
        if (found == 0)
                return fail_because(error, EBUSY, "detach", dir, "the volume is still mounted on %s; unmount it first",
                                    dir);
        if (r > 0 &&
            ((r = volume_check_unused(call, "detach", error)) < 0 || (r = pod_device_take_lost(call, error)) < 0))
                return r;
        if ((r = call->kind->detach(call, error)) < 0)
                return r;
        return volume_call_remove_record(call, error);
}

/* What an unstage that could not end has left, and knows no more: for CSI, its directory does not have the volume's name. */
static int unwrap(struct volume_call *call, struct error *error)
{
        int r = volume_unwrap(call, error);

        if (r < 0 || call->state.dir_fd >= 0)
                return r;
        volume_record_release(&call->record);
        return volume_call_open(call, error);
}

int volume_detach(struct volume_call *call, struct error *error)
{
        int r = privileges_are_less() ? volume_call_where(call, error) : 1; /* is_meant() knows more of the node */

        if (r <= 0)
                return r; /* volume-reconcile detaches it there */
        if ((r = volume_call_open(call, error)) < 0)
                return r;
        if (!is_meant(call) || (call->driver[0] != '\0' && strcmp(call->record.namespace, PROVISION_OF_CSI) == 0))
                return 0; /* CSI's, which no FlexVolume driver has attached */
        if (call->recorded && (r = unwrap(call, error)) < 0)
                return r;
        if (!call->recorded)
                return detach_lost(call, error);
        if ((r = volume_choose_kind(call, error)) < 0 || (r = named_stage_unstage(call, "detach", error)) < 0)
                return r;
        return volume_detach_recorded(call, error);
}

/* Of pods that are gone without an unmount. Overwriting it may take hours: volume-reconcile deletes it, by the record. */
static bool has_made(const struct volume_call *call)
{
        for (size_t i = 0; call->kind->has_made != NULL && i < call->record.published_count; i++)
                if (call->kind->has_made(call->config.state_dir, call->record.published[i].dir))
                        return true;
        return false;
}

int volume_detach_recorded(struct volume_call *call, struct error *error)
{
        int attached = 0;
        bool unformatted;
        int r;

        if (call->kind->look != NULL)
                attached = call->kind->look(call, error);
        if (attached < 0)
                return attached;
        if (!call->kind->has_device && (r = check_unmounted(call, error)) < 0)
                return r; /* its record says where it is */
        if (has_made(call)) {
                log_say("kept the record: volume-reconcile deletes what was made for pods that are gone");
                return 0;
        }
        if ((r = take_pod_devices(call, error)) < 0)
                return r;
        if (attached == 0 && call->kind->activates_early && (r = call->kind->detach(call, error)) < 0)
                return r;
        unformatted = call->record.formatting[0] == '\0';
        if (attached > 0 && (r = detach_device(call, &unformatted, error)) < 0)
                return r;
        unmake_dirs(call);
        sighting_forget(call);
        if (!unformatted)
                return keep_record(call, error);
        return volume_call_remove_record(call, error);
}
