/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/former.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "process/worker.h"

#define FORMER_MAX 16 /* mounts at once; if there are more, the reply says that there may be more processes */

struct settling {
        const char *state_dir;
        const struct mount_record *of;
        const struct volume_releaser *releaser;
        struct former *former;
        struct state state; /* here, because a worker that hangs leaves it open */
        size_t count;
        char ids[FORMER_MAX][MOUNT_RECORD_ID_MAX];
        int64_t ends_ms;    /* until when a remap-daemon may take to end */
        const char *volume; /* that is being let go */
};

static int collect(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct settling *settling = argument;
        const struct mount_record *of = settling->of;

        if (record == NULL)
                return mount_record_unread(error);
        if (!mount_record_is_former(record) ||
            (strcmp(record->mount_point, of->mount_point) != 0 && strcmp(record->target, of->target) != 0) ||
            strcmp(record->boot_id, of->boot_id) != 0 || !container_same_namespace(&record->mnt_ns, &of->mnt_ns))
                return 0;
        if (settling->count == FORMER_MAX) {
                settling->former->more = true;
                return 1;
        }
        (void)text_copy(settling->ids[settling->count++], MOUNT_RECORD_ID_MAX, id);
        return 0;
}

static void add_processes(struct former *former, const struct mount_record *record, const struct open_files *files)
{
        former->more = former->more || files->more;
        for (size_t i = 0; i < files->count; i++) {
                struct former_process *process = &former->processes[former->count];

                if (former->count == FORMER_PROCESSES_MAX) {
                        former->more = true;
                        return;
                }
                (void)text_copy(process->volume, sizeof process->volume, record->volume);
                process->process = files->processes[i];
                former->count++;
        }
}

/* Something still uses the volume: perhaps a process that has left the container's mount namespace. */
static void say_used(struct former *former, const struct mount_record *record)
{
        static struct open_files files;

        files = (struct open_files){};
        mount_record_former_files(record, OPEN_FILES_OF_OTHERS, FORMER_PROCESSES_MAX, &files);
        add_processes(former, record, &files);
        if (files.count == 0)
                (void)text_copy(former->attached, sizeof former->attached, record->volume);
}

/* Its volume's lock is held, and that of the record. */
static int let_go(struct settling *settling, struct state *state, const char *id, struct error *error)
{
        static struct mount_record record;
        int r = mount_record_read(state, id, &record, error);

        if (r < 0 || strcmp(record.volume, settling->volume) != 0)
                return r == -ENOENT ? 0 : r; /* another call has done it */
        r = settling->releaser->let_go(id, error);
        if (r > 0)
                say_used(settling->former, &record);
        return r != 0 ? r : mount_record_remove(state, id, error);
}

/* With the container it ends. */
static bool stays(const struct settling *settling, struct state *state, const struct mount_record *record)
{
        cleanup_container struct container container = CONTAINER_NONE;
        struct error ignored;

        if (mount_record_reach(record, settling->of->boot_id, &container, &ignored) < 0)
                return false;
        mount_record_wait_for_end(state, record, settling->ends_ms);
        return mount_record_former_stays(state, record, &container);
}

static int settle_one(struct settling *settling, struct state *state, const char *id, struct error *error)
{
        static struct mount_record record;
        static struct open_files files;
        struct former *former = settling->former;
        int r = mount_record_read(state, id, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        files = (struct open_files){};
        mount_record_former_files(&record, OPEN_FILES_OF_NAMESPACE, FORMER_PROCESSES_MAX, &files);
        add_processes(former, &record, &files);
        if (files.count > 0 || files.unsure)
                return 0; /* it stays in use */
        if (stays(settling, state, &record)) {
                say_used(former, &record);
                return 0;
        }
        settling->volume = record.volume;
        r = settling->releaser->hold(record.volume, error);
        if (r == 0 && (r = state_lock(state, mount_record_key(id), error)) == 0) {
                r = let_go(settling, state, id, error);
                state_unlock(state, mount_record_key(id));
        }
        settling->releaser->drop();
        if (r < 0) {
                (void)text_copy(former->attached, sizeof former->attached, record.volume);
                (void)snprintf(former->problem, sizeof former->problem, "%s: %.200s", error->operation,
                               error_why(error));
        }
        return 0;
}

static int settle_all(void *argument, struct error *error)
{
        struct settling *settling = argument;
        struct state *state = &settling->state;
        int r = mount_record_open(settling->state_dir, /* create= */ false, state, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = mount_record_each_of(state, &settling->of->mnt_ns, settling->of->boot_id, /* except= */ NULL, collect,
                                 settling, error);
        for (size_t i = 0; r >= 0 && i < settling->count; i++)
                r = settle_one(settling, state, settling->ids[i], error);
        return r;
}

void former_settle(const char *state_dir, const struct mount_record *record, const struct volume_releaser *releaser,
                   bool has_gone, int64_t deadline_ms, struct former *ret_former)
{
        static struct settling settling;
        struct error error = {};
        int r;

        settling = (struct settling){ .state_dir = state_dir,
                                      .of = record,
                                      .releaser = releaser,
                                      .former = ret_former,
                                      .state = STATE_NONE,
                                      .ends_ms = has_gone ? clock_now_ms() + MOUNT_RECORD_END_MS : 0 };
        r = worker_run(settle_all, &settling, deadline_ms, &error);
        if (r < 0) {
                releaser->drop(); /* a worker that hangs has it, too */
                ret_former->more = true;
        }
        state_release(&settling.state);
}
