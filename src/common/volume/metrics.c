/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/metrics_text.h"
#include "base/reply.h"
#include "mount/fs_usage.h"
#include "process/worker.h"
#include "state/call_counts.h"
#include "state/config.h"
#include "state/volume_record.h"

#define SHARE_MS 2000 /* of one directory that does not answer */
#define TIME_MS 20000 /* of all of them */
#define NAME(word) "flexgraft_" word

enum mounted_state { MOUNTED_UNKNOWN, MOUNTED_PRESENT, MOUNTED_GONE };
static const char *const state_words[] = { "unknown", "present", "gone" };

/* A directory of the node, of a volume of the driver. */
struct mounted_dir {
        char *volume; /* owned, like the other two */
        char *driver;
        char *dir;
        bool first;             /* of its volume: it tells how full that is */
        struct mount_dir place; /* without its directory */
        enum mounted_state state;
        struct fs_usage usage;
};

struct mounted_dirs {
        struct mounted_dir items[METRICS_THINGS_MAX];
        size_t count;
        size_t omitted;
        size_t volumes; /* of the driver */
        size_t broken;  /* records */
        const char *state_dir;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct fs_lost lost;
};

/* ---- what the records say */

static int add_record(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct mounted_dirs *dirs = argument;
        const struct mount_dir *mounted;

        if (record == NULL) {
                dirs->broken++;
                return 0;
        }
        dirs->volumes++;
        for (size_t i = 0; (mounted = volume_record_dir(record, i)) != NULL; i++) {
                struct mounted_dir *dir = &dirs->items[dirs->count];

                if (dirs->count == METRICS_THINGS_MAX) {
                        dirs->omitted++;
                        continue;
                }
                *dir = (struct mounted_dir){ .volume = strdup(record->name),
                                             .driver = strdup(record->driver),
                                             .dir = strdup(mounted->dir),
                                             .first = i == 0,
                                             .place = *mounted,
                                             .state = strcmp(record->boot_id, dirs->boot_id) == 0 ? MOUNTED_UNKNOWN
                                                                                                  : MOUNTED_GONE };
                dir->place.dir = NULL; /* the record's */
                dirs->count++;
                if (dir->volume == NULL || dir->driver == NULL || dir->dir == NULL)
                        return fail(error, ENOMEM, OPERATION_READ_RECORD, file);
        }
        return 0;
}

/* ---- what the kernel says */

static void ask_dir(struct ask *ask, size_t index)
{
        const struct mounted_dirs *dirs = ask->argument;
        struct mounted_dir *dir = &((struct mounted_dirs *)ask->argument)->items[index];
        struct mount_dir place = dir->place; /* without its directory */
        cleanup_close int fd = -EBADF;
        struct mount_seen seen;
        struct statfs fs;

        if (dir->state == MOUNTED_GONE || fs_lost_has(&dirs->lost, volume_record_dir_device(&dir->place)))
                return;
        place.dir = dir->dir;
        if (!dir->first && volume_record_dir_still(&place)) {
                dir->state = MOUNTED_PRESENT;
                return;
        }
        fd = open(dir->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
                return;
        if (fd < 0 || mount_see(fd, "", &seen) < 0 || !volume_record_dir_shows(&dir->place, &seen)) {
                if (volume_record_dir_now(dirs->state_dir, dir->volume, dir->driver, dir->dir, &dir->place))
                        ask_dir(ask, index); /* another mount took its place meanwhile, which none does twice */
                else
                        dir->state = MOUNTED_GONE;
                return;
        }
        if (fs_usage_ask(fd, &fs) < 0)
                return;
        if (seen.directory) /* else a pod has the device itself, whose node is on the node's devtmpfs */
                fs_usage_of(&fs, &dir->usage);
        dir->state = MOUNTED_PRESENT;
}

static void lose(struct ask *ask, size_t index, const struct error *error)
{
        struct mounted_dirs *dirs = ask->argument;

        (void)error;
        fs_lost_add(&dirs->lost, volume_record_dir_device(&dirs->items[index].place));
}

static void ask_dirs(struct mounted_dirs *dirs)
{
        struct ask ask = { .count = dirs->count,
                           .argument = dirs,
                           .one = ask_dir,
                           .give_up = lose,
                           .share_ms = SHARE_MS,
                           .deadline_ms = clock_now_ms() + TIME_MS };

        (void)ask_all(&ask);
}

/* ---- as metrics */

static void put_volume(struct metrics_text *text, const char *metric, const json_t *volume)
{
        metrics_sample(text, metric);
        metrics_label(text, "volume", json_member_text(volume, "name"));
        metrics_label(text, "pool", json_member_text(volume, "pool"));
}

static const char *state_of(const json_t *volume)
{
        return json_object_get(volume, "missing") != NULL ? "missing" : json_member_text(volume, "state");
}

/* The volumes of pools. */
static void put_volumes(struct metrics_text *text, const json_t *volumes)
{
        size_t all = json_array_size(volumes);
        size_t count = all < METRICS_THINGS_MAX ? all : METRICS_THINGS_MAX;

        metrics_gauge(text, NAME("volumes"), "Volumes of pools.", all);
        metrics_gauge(text, NAME("volumes_omitted"), "Volumes of which there are no metrics, since there are too many.",
                      all - count);
        metrics_family(text, NAME("volume_size_bytes"), "gauge", "Size of a volume of a pool, in bytes.");
        for (size_t i = 0; i < count; i++) {
                const json_t *volume = json_array_get(volumes, i);

                put_volume(text, NAME("volume_size_bytes"), volume);
                metrics_value(text, (uint64_t)json_integer_value(json_object_get(volume, "size")));
        }
        metrics_family(text, NAME("volume_state"), "gauge",
                       "1 for the state of a volume: creating, created, deleting or missing.");
        for (size_t i = 0; i < count; i++) {
                const json_t *volume = json_array_get(volumes, i);

                put_volume(text, NAME("volume_state"), volume);
                metrics_label(text, "state", state_of(volume));
                metrics_value(text, 1);
        }
        metrics_family(text, NAME("volume_problem"), "gauge",
                       "Whether a volume's health, as volume-list shows it, is other than ok.");
        for (size_t i = 0; i < count; i++) {
                const json_t *volume = json_array_get(volumes, i);

                put_volume(text, NAME("volume_problem"), volume);
                metrics_value(text, strcmp(json_member_text(volume, "health"), "ok") != 0);
        }
}

static void label_volume(struct metrics_text *text, const void *things, size_t i)
{
        const struct mounted_dir *dir = (const struct mounted_dir *)things + i;

        metrics_label(text, "volume", dir->volume);
        metrics_label(text, "driver", dir->driver);
}

static void put_dir(struct metrics_text *text, const char *metric, const struct mounted_dir *dir)
{
        metrics_sample(text, metric);
        label_volume(text, dir, 0);
        metrics_label(text, "directory", dir->dir);
}

static const struct fs_usage *find_usage(const void *things, size_t i)
{
        static const struct fs_usage none;
        const struct mounted_dir *dir = (const struct mounted_dir *)things + i;

        return dir->first ? &dir->usage : &none;
}

/* The volumes of the driver, whatever their kind, where they are mounted. */
static void put_dirs(struct metrics_text *text, const struct mounted_dirs *dirs)
{
        metrics_gauge(text, NAME("driver_volumes"), "Volumes that the driver has attached or mounted.", dirs->volumes);
        metrics_gauge(text, NAME("driver_records_broken"),
                      "Records of the driver's volumes that cannot be read, or were renamed to *.json.bad.",
                      dirs->broken);
        metrics_gauge(text, NAME("driver_mounts_omitted"),
                      "Mounts of the driver of which there are no metrics, since there are too many.", dirs->omitted);
        metrics_family(text, NAME("driver_mount_state"), "gauge",
                       "1 for the state of a mount of the driver: present, gone or unknown.");
        for (size_t i = 0; i < dirs->count; i++) {
                put_dir(text, NAME("driver_mount_state"), &dirs->items[i]);
                metrics_label(text, "state", state_words[dirs->items[i].state]);
                metrics_value(text, 1);
        }
        metrics_family(text, NAME("driver_mount_problem"), "gauge",
                       "Whether a mount of the driver is gone, or its filesystem does not answer.");
        for (size_t i = 0; i < dirs->count; i++) {
                put_dir(text, NAME("driver_mount_problem"), &dirs->items[i]);
                metrics_value(text, dirs->items[i].state != MOUNTED_PRESENT);
        }
        fs_usage_put(text, NAME("driver_volume"), dirs->items, dirs->count, find_usage, label_volume);
}

/* ---- calls */

struct calls {
        struct call_counts rows[64];
        size_t count;
};

static void add_call(const struct call_counts *counts, void *argument)
{
        struct calls *calls = argument;

        if (calls->count == sizeof calls->rows / sizeof calls->rows[0])
                return;
        calls->rows[calls->count++] = *counts;
}

static void put_count(struct metrics_text *text, const char *program, const char *result, uint64_t value)
{
        metrics_sample(text, NAME("calls_total"));
        metrics_label(text, "verb", program);
        metrics_label(text, "result", result);
        metrics_value(text, value);
}

static void put_durations(struct metrics_text *text, const char *program, const struct call_counts *counts)
{
        static const char *const bounds[CALL_COUNTS_BUCKETS + 1] = CALL_COUNTS_BOUNDS;
        uint64_t all = counts->succeeded + counts->failed;
        uint64_t within = 0;

        for (size_t i = 0; i <= CALL_COUNTS_BUCKETS; i++) {
                within = i < CALL_COUNTS_BUCKETS ? within + counts->buckets[i] : all;
                metrics_sample(text, NAME("call_duration_seconds_bucket"));
                metrics_label(text, "verb", program);
                metrics_label(text, "le", bounds[i]);
                metrics_value(text, within);
        }
        metrics_sample(text, NAME("call_duration_seconds_sum"));
        metrics_label(text, "verb", program);
        metrics_value_seconds(text, counts->sum_us);
        metrics_sample(text, NAME("call_duration_seconds_count"));
        metrics_label(text, "verb", program);
        metrics_value(text, all);
}

static void put_calls(struct metrics_text *text, const char *state_dir)
{
        static struct calls calls;

        call_counts_each(state_dir, add_call, &calls);
        metrics_family(text, NAME("calls_total"), "counter", "Calls of a verb or program that have ended.");
        for (size_t i = 0; i < calls.count; i++) {
                put_count(text, calls.rows[i].program, "success", calls.rows[i].succeeded);
                put_count(text, calls.rows[i].program, "failure", calls.rows[i].failed);
        }
        metrics_family(text, NAME("call_duration_seconds"), "histogram", "How long calls took.");
        for (size_t i = 0; i < calls.count; i++)
                put_durations(text, calls.rows[i].program, &calls.rows[i]);
        metrics_family(text, NAME("call_last_success_timestamp_seconds"), "gauge",
                       "When a call of a verb or program last succeeded.");
        for (size_t i = 0; i < calls.count; i++)
                if (calls.rows[i].last_success > 0) {
                        metrics_sample(text, NAME("call_last_success_timestamp_seconds"));
                        metrics_label(text, "verb", calls.rows[i].program);
                        metrics_value(text, calls.rows[i].last_success);
                }
        for (size_t i = 0; i < calls.count; i++)
                if (strcmp(calls.rows[i].program, "volume-reconcile") == 0) {
                        metrics_gauge(text, NAME("reconcile_last_success_timestamp_seconds"),
                                      "When volume-reconcile last succeeded; 0: never.", calls.rows[i].last_success);
                        metrics_gauge(text, NAME("reconcile_problems"), "Problems that volume-reconcile last reported.",
                                      calls.rows[i].problems);
                }
}

int volume_metrics_say(const json_t *reply, struct error *error)
{
        static struct mounted_dirs dirs; /* one call of a program */
        static struct config config;
        cleanup_state struct state state = STATE_NONE;
        struct metrics_text text = {};
        int r;

        if ((r = proc_boot_id(dirs.boot_id)) < 0)
                return fail(error, -r, "read", "boot_id");
        if ((r = config_load(&config, error)) < 0)
                return r;
        r = state_open(config.state_dir, "volumes", /* create= */ false, &state, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0) {
                if ((r = volume_record_each(&state, /* set_aside= */ false, add_record, &dirs, error)) < 0)
                        return r;
                dirs.broken += state_count_aside(&state);
        }
        dirs.state_dir = config.state_dir;
        ask_dirs(&dirs);
        put_volumes(&text, json_object_get(reply, "volumes"));
        put_dirs(&text, &dirs);
        put_calls(&text, config.state_dir);
        for (size_t i = 0; i < dirs.count; i++) {
                free(dirs.items[i].volume);
                free(dirs.items[i].driver);
                free(dirs.items[i].dir);
        }
        return metrics_say(&text);
}
