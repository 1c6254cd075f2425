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

#define ASK_SECONDS 2   /* to find out whether a filesystem answers at all */
#define ONE_SECONDS 30  /* of one directory; longer than one daemon's start may last (daemon/remap.h) */
#define ALL_SECONDS 120 /* of all of a run that do not answer */

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
        return volume_exec_helpers_begin_for(VOLUME_RUNS_REMAP, argc, argv, error);
}

struct exchange {
        struct volume_call *call;
        struct mount_dir *place;
        bool try_only;
        bool tried;
        bool ended;
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
        exchange->ended = true;
        return 0;
}

static int exchange_in_worker(void *argument, struct error *error)
{
        struct exchange *exchange = argument;
        struct mount_dir *place = exchange->place;
        int r = exchange->try_only ? 0 : volume_mappable_settle(exchange->call, place, error);

        exchange->tried = r == 0 && place->replaces == 0 && mappable.begun && is_due(place);
        if (exchange->tried)
                r = volume_mappable_exchange(exchange->call, place, exchange->try_only, error);
        exchange->ended = true;
        return r;
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
        const size_t length = pod_users_length(dir);

        return length > 0 ? hash_bytes(HASH_SEED, dir, length) | 1U : 0;
}

/* One that does not answer keeps no other waiting, but those of its filesystem, and of its pod. */
static int run(struct exchange *job, int seconds, worker_function *function, struct error *error)
{
        const int64_t since_ms = clock_now_ms();
        const uint64_t device = volume_record_dir_device(job->place);
        int r;

        job->ended = false;
        r = worker_run(function, job, since_ms + (int64_t)seconds * 1000, error);
        if (!job->ended) {
                mappable.spent_ms += clock_now_ms() - since_ms;
                fs_lost_add(&mappable.lost, device);
                fs_lost_add(&mappable.lost_pods, pod_number(job->place->dir));
        }
        return r;
}

static void exchange(struct reconcile_round *round, struct volume_call *call, struct mount_dir *place)
{
        const bool dry_run = round->reconcile->dry_run;
        const bool left = place->replaces != 0; /* by a call that was killed */
        struct exchange job = { .call = call, .place = place, .try_only = dry_run };
        struct error error = {};
        int r = run(&job, ASK_SECONDS, ask_in_worker, &error);

        if (!job.ended)
                r = fail_because(&error, ETIMEDOUT, "exchange mount", place->dir,
                                 "what is mounted there does not answer");
        if (r == 0)
                r = run(&job, ONE_SECONDS, exchange_in_worker, &error);
        if (r < 0)
                reconcile_problem(round->reconcile, place->dir, &error);
        if (r > 0 || (r == 0 && left && place->replaces == 0 && place->remap_key != 0))
                reconcile_did(round->reconcile, "exchanged a mount for one that its pod can id-map", place->dir);
        if (job.ended && job.tried && !dry_run && place->waits_for_users &&
            (r == 0 || r == -ENOSYS || r == -EOPNOTSUPP)) /* 0: it can be id-mapped itself */
                stop_waiting(call, place);
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
