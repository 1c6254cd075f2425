/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mount/on_node.h"
#include "process/log.h"
#include "reconcile/kubelet.h"
#include "state/call_counts.h"
#include "volume/call.h"
#include "volume/choose.h"
#include "volume/mappable.h"
#include "volume/mount_dir.h"
#include "volume/named_stage.h"
#include "volume/pod_device.h"
#include "volume/sighting.h"

/* ---- one volume */

/* Unmount a directory of the record, unless something else is mounted there or a process uses it. */
static int unmount_dir(struct reconcile_round *round, const struct volume_call *call, const char *dir)
{
        struct error error = {};
        unsigned ignored;
        bool lazy;
        int r;

        if (mount_dir_look(call, dir, &ignored, &error) != MOUNT_DIR_OURS)
                return 0;
        if (!round->reconcile->dry_run &&
            (r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ false, &lazy, &error)) < 0) {
                reconcile_problem(round->reconcile, dir, &error);
                return r;
        }
        reconcile_did(round->reconcile, "unmounted", dir);
        return 0;
}

/* Remove a directory from the record, with what was made for it: an ephemeral volume, and the directory if it is empty. */
static int forget(struct reconcile_round *round, struct volume_call *call, const char *dir)
{
        struct mount_dir *place = volume_record_mount_dir(&call->record, dir);
        struct error error = {};
        char copy[PATH_MAX];
        int r;

        if (call->kind->unmake != NULL) {
                if (!round->reconcile->dry_run && (r = call->kind->unmake(call, dir, &error)) < 0) {
                        if (r != -EINPROGRESS) /* else unmount deletes it now, and forgets the directory */
                                reconcile_problem(round->reconcile, dir, &error);
                        return r;
                }
                reconcile_did(round->reconcile, "deleted an ephemeral volume", dir);
        }
        if (!round->reconcile->dry_run && (r = pod_device_give_back(call, place, &error)) < 0) {
                reconcile_problem(round->reconcile, dir, &error);
                return r;
        }
        (void)text_copy(copy, sizeof copy, dir); /* dir points into the record */
        if (!round->reconcile->dry_run)
                mount_dir_unmake(copy, named_stage_is(&call->config, copy) ? 1 : place->made);
        volume_record_forget(&call->record, copy);
        return 0;
}

static void remove_record(struct reconcile_round *round, struct volume_call *call)
{
        struct error error = {};

        if (!round->reconcile->dry_run) {
                sighting_forget(call);
                if (volume_call_remove_record(call, &error) < 0) {
                        reconcile_problem(round->reconcile, call->record.name, &error);
                        return;
                }
        }
        reconcile_did(round->reconcile, "removed the record", call->record.name);
}

/* A filesystem that mkfs had not finished may look complete: the next mountdevice makes it anew. */
static void keep_for_formatting(struct reconcile_round *round, struct volume_call *call)
{
        struct error error = {};

        call->record.device[0] = '\0';
        call->record.device_number = 0;
        (void)text_copy(call->record.boot_id, sizeof call->record.boot_id, call->boot_id);
        if (!round->reconcile->dry_run && volume_call_save(call, FILE_DURABLE, &error) < 0)
                reconcile_problem(round->reconcile, call->record.name, &error);
        else
                reconcile_did(round->reconcile, "kept the record: its filesystem is unfinished", call->record.name);
}

static int detach(struct reconcile_round *round, struct volume_call *call)
{
        struct error error = {};
        struct block_device device;
        int r = call->kind->look == NULL ? 0 : call->kind->look(call, &error);

        if (r == 0 && call->kind->activates_early && !round->reconcile->dry_run &&
            (r = call->kind->detach(call, &error)) < 0) {
                reconcile_problem(round->reconcile, call->record.name, &error);
                return r;
        }
        if (r == -ETIMEDOUT) { /* its pool's filesystem is silent: nobody knows */
                reconcile_problem(round->reconcile, call->record.name, &error);
                return r;
        }
        if (r <= 0 || call->kind->node_device)
                return 0;
        volume_call_device(call, &device);
        if ((r = reconcile_check_list(call, &error)) < 0) {
                reconcile_problem(round->reconcile, call->record.name, &error);
                return r;
        }
        if (!round->reconcile->dry_run &&
            ((r = block_device_check_unused(&device, &error)) < 0 || (r = call->kind->detach(call, &error)) < 0)) {
                reconcile_problem(round->reconcile, call->record.name, &error);
                return r;
        }
        reconcile_did(round->reconcile, "detached", device.path);
        return 0;
}

/* Remove the volume from the node and its record; what is in use stays, with the record. */
static void remove_volume(struct reconcile_round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;

        while (record->published_count > 0) {
                if (unmount_dir(round, call, record->published[0].dir) < 0 ||
                    forget(round, call, record->published[0].dir) < 0)
                        return;
        }
        if (record->staged.dir != NULL) {
                if (unmount_dir(round, call, record->staged.dir) < 0 || forget(round, call, record->staged.dir) < 0)
                        return;
        }
        if (detach(round, call) < 0)
                return;
        if (record->formatting[0] != '\0')
                keep_for_formatting(round, call);
        else
                remove_record(round, call);
}

/* In the record, too. */
static bool forget_lost(struct reconcile_round *round, struct volume_call *call, const char *dir)
{
        char copy[PATH_MAX];
        struct error error = {};

        (void)text_copy(copy, sizeof copy, dir); /* as above */
        if (forget(round, call, dir) < 0)
                return false;
        if (!round->reconcile->dry_run && volume_call_save(call, FILE_ORDERED, &error) < 0)
                reconcile_problem(round->reconcile, call->record.name, &error);
        else
                reconcile_did(round->reconcile, "forgot a directory that is not mounted", copy);
        return true;
}

/* Remove directories from the record where nothing is mounted any more. Returns whether there were any. */
static bool forget_gone(struct reconcile_round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;
        struct error error = {};
        bool changed = false;
        unsigned ignored;
        size_t i = 0;

        while (i < record->published_count) {
                int r;

                if (volume_record_dir_still(&record->published[i])) {
                        i++;
                        continue;
                }
                call->request->block = record->published[i].pod_device != 0;
                r = mount_dir_look(call, record->published[i].dir, &ignored, &error);
                call->request->block = false;

                /* on failure it may still be mounted; covered, it is */
                if (r == MOUNT_DIR_OURS || r < 0 || mount_dir_has(call, &record->published[i]) ||
                    !forget_lost(round, call, record->published[i].dir))
                        i++;
                else
                        changed = true;
        }
        if (record->staged.dir != NULL) {
                int r = mount_dir_look(call, record->staged.dir, &ignored, &error);

                if (r >= 0 && r != MOUNT_DIR_OURS && !mount_dir_has(call, &record->staged) &&
                    forget_lost(round, call, record->staged.dir))
                        changed = true;
        }
        return changed;
}

/* What is mounted there fails, and a pod may have it: that is better than the directory below it. */
static void report_unserved(struct reconcile_round *round, const struct volume_call *call)
{
        const struct volume_record *record = &call->record;
        struct error error = {};

        for (size_t i = 0; i < record->published_count; i++)
                if (record->published[i].replaces == 0 && /* else the pod may have the earlier mount still */
                    volume_mappable_check(call, &record->published[i], &error) < 0)
                        reconcile_problem(round->reconcile, record->name, &error);
}

/* kubelet removes its directory of a volume after unmountdevice, which it does not call here. */
static void take_forgotten(struct reconcile_round *round, struct volume_call *call)
{
        const char *staged = call->record.staged.dir;
        char dir[PATH_MAX];

        (void)text_copy(dir, sizeof dir, staged != NULL ? staged : "");
        remove_volume(round, call);
        if (!round->reconcile->dry_run && call->record.staged.dir == NULL && kubelet_stages_on(&call->config, dir))
                mount_dir_unmake(dir, 1);
}

/* A directory that the volume is mounted on still; NULL: there is none. */
static const char *mounted_on(const struct volume_call *call)
{
        const struct mount_dir *place;

        for (size_t i = 0; (place = volume_record_dir(&call->record, i)) != NULL; i++)
                if (mount_dir_has(call, place))
                        return place->dir;
        return NULL;
}

/* Pods go on with what is mounted: kubelet would not mount it anew, and a container that starts would have what is below. */
static bool keep_mounted(struct reconcile_round *round, const struct volume_call *call)
{
        const char *dir = mounted_on(call);
        struct error error;

        if (dir == NULL)
                return false;
        (void)fail_because(&error, ENODEV, "keep mounts", call->record.name,
                           "its device %s is not attached any more, and it is mounted on %s: end its pods",
                           call->record.device[0] != '\0' ? call->record.device : call->record.source, dir);
        reconcile_problem(round->reconcile, call->record.name, &error);
        return true;
}

/*
 * Numbers of devices and ids of mounts are of one boot: by now another volume may be mounted on the directory, with a device
 * of that number. This one can be only where its device is here.
 */
static void forget_numbers(struct volume_record *record)
{
        static const struct mount_identity none;

        for (size_t i = 0; i < record->published_count; i++) {
                record->published[i].identity = none;
                record->published[i].replaces = 0;
        }
        record->staged.identity = none;
        record->device_number = 0;
        record->filesystem = 0;
}

static void reconcile_volume(struct reconcile_round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;
        bool begun; /* attach may have been killed */
        struct error error = {};
        int attached = 0;
        bool changed;

        if (volume_choose_kind(call, &error) < 0) {
                reconcile_problem(round->reconcile, record->name, &error);
                return;
        }
        begun = call->kind->has_device && record->device[0] == '\0';
        if (strcmp(record->boot_id, call->boot_id) != 0) {
                /* finds its device of this boot, if any */
                if (call->kind->look == NULL || call->kind->look(call, &error) <= 0)
                        forget_numbers(record);
                remove_volume(round, call);
                return;
        }
        if (call->kind->look != NULL && (attached = call->kind->look(call, &error)) < 0) {
                reconcile_problem(round->reconcile, record->name, &error);
                return;
        }
        if (record->formatting[0] != '\0' && attached == 0)
                return; /* the record must say that the filesystem is unfinished */
        changed = forget_gone(round, call);
        reconcile_mappable(round, call);
        report_unserved(round, call);
        if (attached > 0 && !changed && !begun && reconcile_is_forgotten(round, call)) {
                take_forgotten(round, call);
                return;
        }
        if (call->kind->has_device && attached == 0 && keep_mounted(round, call))
                return; /* also where an attach began anew, which takes the device from the record */
        if (call->kind->has_device ? attached == 0 || (begun && record->staged.dir == NULL)
                                   : record->published_count == 0)
                remove_volume(round, call);
        else if (begun && !round->reconcile->dry_run && volume_call_save(call, FILE_ORDERED, &error) < 0)
                reconcile_problem(round->reconcile, record->name, &error);
}

static void reconcile_name(struct reconcile_round *round, const char *name, const char *driver)
{
        static struct volume_request request;
        static struct volume_call call;
        struct error error = {};

        request = (struct volume_request){};
        call = (struct volume_call){ .request = &request,
                                     .state = STATE_NONE,
                                     .provisioned = STATE_NONE,
                                     .config = round->config,
                                     .soon = true };
        (void)text_copy(request.name, sizeof request.name, name);
        (void)text_copy(call.driver, sizeof call.driver, driver);
        (void)text_copy(call.boot_id, sizeof call.boot_id, round->boot_id);
        if (state_open(call.config.state_dir, "volumes", /* create= */ false, &call.state, &error) < 0)
                reconcile_problem(round->reconcile, name, &error);
        else if (state_try_lock(&call.state, volume_record_key(name))) { /* else a call is working on it */
                int r = volume_record_read(&call.state, name, driver, &call.record, &error);

                call.recorded = r == 0;
                if (r == 0)
                        reconcile_volume(round, &call);
                else if (r != -ENOENT)
                        reconcile_problem(round->reconcile, name, &error);
        }
        volume_record_release(&call.record);
        state_release(&call.state);
}

static int collect(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct reconcile_round *round = argument;
        struct known *grown;

        if (record == NULL && error->errnum == EBADMSG) {
                reconcile_did(round->reconcile, "set aside a torn record", file);
                return 0;
        }
        if (record == NULL) {
                reconcile_problem(round->reconcile, file, error);
                return 0;
        }
        grown = reallocarray(round->records, round->count + 1, sizeof *grown);
        if (grown == NULL)
                return fail(error, ENOMEM, "list records", record->name);
        round->records = grown;
        (void)text_copy(grown[round->count].name, sizeof grown->name, record->name);
        (void)text_copy(grown[round->count].driver, sizeof grown->driver, record->driver);
        round->count++;
        return 0;
}

/* ---- files that were set aside */

static void tell_files(struct reconcile_round *round, const struct state *state)
{
        DIR *list = state_list(state);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL) {
                struct error error = { .errnum = EBADMSG,
                                       .reason = "a torn record that was set aside; look at it and remove it" };

                if (entry->d_name[0] != '.' && text_ends(entry->d_name, STATE_ASIDE_SUFFIX))
                        reconcile_problem(round->reconcile, entry->d_name, &error);
        }
        if (list != NULL)
                (void)closedir(list);
}

static void take_runs(const struct call_counts *counts, void *argument)
{
        uint64_t *runs = argument;

        if (strcmp(counts->program, "volume-reconcile") == 0)
                *runs = counts->succeeded + counts->failed;
}

/*
 * The record to begin with: each run begins with the next one. Those whose servers do not answer use up the time that a run
 * has for them (reconcile_mappable()), and would keep the others waiting in each.
 */
static size_t first_of(const struct reconcile_round *round)
{
        uint64_t runs = 0;

        call_counts_each(round->config.state_dir, take_runs, &runs);
        return round->count > 0 ? (size_t)(runs % round->count) : 0;
}

int reconcile_volumes(struct reconcile_round *round, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = state_open(round->config.state_dir, "volumes", /* create= */ false, &state, error);
        size_t first;

        if (r == -ENOENT)
                return 0; /* there never was one */
        if (r < 0 || (r = volume_record_each(&state, !round->reconcile->dry_run, collect, round, error)) < 0)
                return r;
        first = first_of(round);
        for (size_t i = 0; i < round->count; i++) {
                const struct known *known = &round->records[(first + i) % round->count];

                reconcile_name(round, known->name, known->driver);
        }
        if (!round->reconcile->dry_run)
                volume_record_tidy(&state);
        tell_files(round, &state);
        return 0;
}
