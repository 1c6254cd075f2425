/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile_mappable.c - volumes of pods that turned out to have a user namespace (volume/mappable_exchange.h). */
#include "reconcile/reconcile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "mount/fs_usage.h"
#include "process/worker.h"
#include "provision/provision.h"
#include "volume/exec_helpers.h"
#include "volume/mappable_exchange.h"
#include "volume/pod_users.h"

#define ASK_SECONDS 2    /* to find out whether a filesystem answers at all */
#define START_SECONDS 20 /* of a daemon */
#define ONE_SECONDS 30   /* of one directory */
#define ALL_SECONDS 120  /* of all of a run that do not answer */

static struct {
        bool begun;          /* the helper process, and what id_mappable_try() needs */
        struct fs_lost lost; /* filesystems that do not answer */
        struct fs_lost
                lost_pods; /* and pods that have one, which would all be started later anyway: by numbers of them */
        int64_t spent_ms;  /* by those */
} mappable;

static bool is_due(const struct mount_dir *place)
{
        return place->waits_for_users && pod_users_are_mapped(place->dir);
}

static int look_for_due(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        (void)file;
        (void)argument;
        (void)error;
        for (size_t i = 0; record != NULL && i < record->published_count; i++)
                if (is_due(&record->published[i]) && volume_record_is_of_this_boot(record))
                        return 1;
        return 0;
}

/* All records are read for it, as the round does. What fails here fails again there, which says so. */
static bool any_is_due(void)
{
        cleanup_state struct state state = STATE_NONE;
        struct config config;
        struct error ignored;

        return config_load(&config, &ignored) == 0 &&
               state_open(config.state_dir, "volumes", /* create= */ false, &state, &ignored) == 0 &&
               volume_record_each(&state, /* set_aside= */ false, look_for_due, NULL, &ignored) > 0;
}

int reconcile_begin(int argc, char **argv, struct error *error)
{
        int r = provision_begin(argc, argv, error);

        if (r < 0 || !any_is_due())
                return r;
        mappable.begun = true;
        volume_mappable_limit_starts(START_SECONDS);
        return volume_exec_helpers_begin_for(VOLUME_RUNS_REMAP, argc, argv, error);
}

struct exchange {
        struct volume_call *call;
        struct mount_dir *place;
        bool try_only;
};

/* What is mounted there, whose server may not answer. Other errors are the exchange's. */
static int ask_in_worker(void *argument, struct error *error)
{
        struct exchange *exchange = argument;
        cleanup_close int fd = open(exchange->place->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct statfs ignored;

        (void)error;
        if (fd >= 0)
                (void)fstatfs(fd, &ignored);
        return 0;
}

static int settle_in_worker(void *argument, struct error *error)
{
        struct exchange *exchange = argument;

        return volume_mappable_settle(exchange->call, exchange->place, error);
}

static int exchange_in_worker(void *argument, struct error *error)
{
        struct exchange *exchange = argument;

        return volume_mappable_exchange(exchange->call, exchange->place, exchange->try_only, error);
}

/* What will be the same at every try until the node starts again, or the pod: told once. */
static void stop_waiting(struct volume_call *call, struct mount_dir *place)
{
        struct error ignored;

        place->waits_for_users = false;
        (void)volume_call_save(call, FILE_ORDERED, &ignored);
}

/* Of the pod of a directory. */
static uint64_t pod_number(const char *dir)
{
        const size_t length = volume_record_pod_length(dir);

        return length > 0 ? hash_bytes(HASH_SEED, dir, length) | 1U : 0;
}

/* One that does not answer keeps no other waiting, but those of its filesystem, and of its pod. */
static int run(struct exchange *job, int seconds, worker_function *function, struct error *error)
{
        const int64_t since_ms = clock_now_ms();
        const uint64_t device = volume_record_dir_device(job->place);
        int r = worker_run(function, job, since_ms + (int64_t)seconds * 1000, error);

        if (r == -ETIMEDOUT) {
                mappable.spent_ms += clock_now_ms() - since_ms;
                fs_lost_add(&mappable.lost, device);
                fs_lost_add(&mappable.lost_pods, pod_number(job->place->dir));
        }
        return r;
}

static int try(struct exchange *job, struct error *error)
{
        int r = run(job, ASK_SECONDS, ask_in_worker, error);

        if (r == -ETIMEDOUT)
                return fail_because(error, ETIMEDOUT, "exchange mount", job->place->dir,
                                    "what is mounted there does not answer");
        return r < 0 ? r : run(job, ONE_SECONDS, exchange_in_worker, error);
}

static void exchange(struct reconcile_round *round, struct volume_call *call, struct mount_dir *place)
{
        struct exchange job = { .call = call, .place = place, .try_only = round->reconcile->dry_run };
        struct error error = {};
        bool done = false;
        int r = 0;

        if (place->replaces != 0 && !job.try_only) { /* a call was killed: that the old mount goes needs no answer */
                r = run(&job, ASK_SECONDS, settle_in_worker, &error);
                done = r == 0 && place->replaces == 0 && place->remap_key != 0;
        }
        if (r == 0 && place->replaces == 0 && mappable.begun && is_due(place)) {
                r = try(&job, &error);
                done = r > 0;
                if (!job.try_only && (r == 0 || r == -ENOSYS || r == -EOPNOTSUPP)) /* 0: it can be id-mapped itself */
                        stop_waiting(call, place);
        }
        if (r < 0)
                reconcile_problem(round->reconcile, place->dir, &error);
        if (done)
                reconcile_did(round->reconcile, "exchanged a mount for one that its pod can id-map", place->dir);
}

/* What a killed call left needs no helper to be ended. */
static bool is_to_be_tried(const struct mount_dir *place)
{
        return (place->replaces != 0 || (mappable.begun && is_due(place))) &&
               mappable.spent_ms < (int64_t)ALL_SECONDS * 1000 &&
               !fs_lost_has(&mappable.lost, volume_record_dir_device(place)) &&
               !fs_lost_has(&mappable.lost_pods, pod_number(place->dir));
}

void reconcile_mappable(struct reconcile_round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;

        for (size_t i = 0; i < record->published_count; i++)
                if (is_to_be_tried(&record->published[i]))
                        exchange(round, call, &record->published[i]);
}
