/* SPDX-License-Identifier: Apache-2.0 */
/* node_unmount.c - a volume by its name off a directory of this node (named/node_mount.h). */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/on_node.h"
#include "named/node_mount.h"
#include "process/worker.h"
#include "state/uses.h"
#include "volume/by_name.h"
#include "volume/exec_helpers.h"
#include "volume/mount_dir.h"
#include "volume/named_stage.h"

#define STATE_SORT "volumes"

static struct volume_by_name volume = VOLUME_BY_NAME_NONE;

struct job {
        const char *target;
        const char *state_dir;
        unsigned timeout_seconds; /* of unmounting */
        const struct node_unmount *request;
        struct mount_seen seen; /* at the target; of nothing, if that cannot be seen */
        char name[VOLUME_NAME_MAX];
        struct error *left;
};

int node_unmount_begin(int argc, char **argv, struct error *error)
{
        return volume_exec_helpers_begin_for(named_stage_runs(), argc, argv, error);
}

static int match(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct job *job = argument;
        const struct mount_dir *place = record != NULL ? volume_record_mount_dir(record, job->target) : NULL;

        (void)file;
        (void)error;
        if (place == NULL || place == &record->staged)
                return 0;
        (void)text_copy(job->name, sizeof job->name, record->name);
        /* another may have had the directory before, and left it without a call of this program */
        return volume_record_dir_shows(place, &job->seen) && volume_record_is_of_this_boot(record);
}

/* Which volume the records name for the directory. */
enum found {
        FOUND_NONE,
        FOUND_VOLUME, /* its name is the job's: it is mounted there, or, of several that were, the last that was seen */
};

/* Returns an enum found, or negative errno. */
static int find_volume(struct job *job, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = state_open(job->state_dir, STATE_SORT, /* create= */ false, &state, error);

        if (r < 0)
                return r == -ENOENT ? FOUND_NONE : r;
        if (mount_see(AT_FDCWD, job->target, &job->seen) < 0)
                job->seen = (struct mount_seen){};
        (void)uses_complete(job->state_dir, &state, error); /* if it fails, all records are read */
        r = volume_record_each_on(&state, job->target, match, job, error);
        if (r < 0)
                return r;
        return job->name[0] != '\0' ? FOUND_VOLUME
                                    : FOUND_NONE; /* match() has named it, also where it ended the search */
}

static int make_read_only(const struct job *job, struct error *error)
{
        const struct mount_attributes attributes = { .set = MOUNT_ATTR_RDONLY };
        int r = node_mounted_set(job->target, &attributes, error);

        return r < 0 ? r : 1;
}

static int unmount(const struct job *job, struct error *error)
{
        const int flags = (job->request->lazy ? MNT_DETACH : 0) | (job->request->force ? MNT_FORCE : 0);
        int r = on_node_unmount(job->target, flags, job->timeout_seconds, error);

        return r == -EBUSY && job->request->read_only ? make_read_only(job, error) : r;
}

/* The mount is gone: what now fails is told besides, and is volume-reconcile's to end. */
static void let_go(struct job *job)
{
        struct volume_call *call = &volume.call;
        int r;

        volume_record_forget(&call->record, job->target);
        if ((r = mount_dir_save_unmounted(call, job->left)) < 0 ||
            (r = volume_by_name_let_go(&volume, /* mount_id= */ NULL, job->left)) < 0)
                return;
        if (r > 0)
                error_because(job->left, EBUSY, "detach", job->name,
                              "a process still uses it; volume-reconcile detaches it when that has ended");
        else
                *job->left = (struct error){};
}

/* With the volume's lock. A mount over it, or one of another volume, is unmounted as any other. */
static int unmount_volume(struct job *job, struct error *error)
{
        const struct mount_dir *place;
        struct error unsaid; /* the record only shows it */
        unsigned ignored;
        bool known;
        int look;
        int r;

        place = volume_record_mount_dir(&volume.call.record, job->target);
        known = place != NULL;
        look = mount_dir_look(&volume.call, job->target, &ignored, error);
        if (known && look != MOUNT_DIR_TAKEN && look != MOUNT_DIR_OURS && mount_dir_has(&volume.call, place))
                return fail_because(error, EBUSY, OPERATION_UMOUNT2, job->target,
                                    "it is covered by what is mounted on a directory above: unmount that first");
        if (known && (look == MOUNT_DIR_BARE || look == MOUNT_DIR_MISSING)) { /* a call was killed */
                let_go(job);
                return fail(error, EINVAL, OPERATION_UMOUNT2, job->target);
        }
        r = unmount(job, error);
        if (r == 0 && known && look != MOUNT_DIR_TAKEN)
                let_go(job);
        if (r > 0 && known && look != MOUNT_DIR_TAKEN) {
                volume_record_mount_dir(&volume.call.record, job->target)->read_only = true;
                (void)mount_dir_save(&volume.call, &unsaid);
        }
        return r;
}

/* Then it is unmounted as any other mount: what has the records may be broken, or the node about to shut down. */
static bool is_without_records(int r)
{
        return r == -EROFS || r == -EPERM || r == -EACCES || r == -EIO;
}

static int work(void *argument, struct error *error)
{
        struct job *job = argument;
        int r = find_volume(job, error);

        if (r == FOUND_VOLUME && (r = volume_by_name_hold(&volume, job->name, /* look= */ false, error)) == 0)
                return unmount_volume(job, error);
        if (is_without_records(r))
                *job->left = *error;
        return r < 0 && !is_without_records(r) ? r : unmount(job, error);
}

int node_unmount(const struct node_unmount *request, struct error *ret_left, struct error *error)
{
        static struct job job;
        struct config config;
        int r = config_load(&config, error);

        if (r < 0)
                return r;
        job = (struct job){ .target = request->target,
                            .state_dir = config.state_dir,
                            .timeout_seconds = config.unmount_seconds,
                            .request = request,
                            .left = ret_left };
        *ret_left = (struct error){};
        r = worker_run(work, &job, clock_now_ms() + (int64_t)(config.call_seconds + config.unmount_seconds) * 1000,
                       error);
        volume_exec_helpers_end();
        volume_by_name_release(&volume);
        return r;
}
