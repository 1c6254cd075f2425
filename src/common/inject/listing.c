/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "inject/listing_collect.h"
#include "mount/in_container.h"
#include "mount/options.h"
#include "process/proc.h"
#include "process/worker.h"
#include "state/config.h"
#include "state/record_flat.h"
#include "state/wish.h"

/* The first mount that does not answer may take this part of the timeout: 1/4. */
#define SHARE 4
#define SHARE_LEAST_MS 50

/* What the kernel is asked: of one entry after the other, which are in the order of their containers. */
struct questions {
        struct listing *listing;
        struct state silence; /* the locks of those that hang: with a descriptor that only the next worker has, too */
        const char *boot_id;
        /* the container that is asked */
        struct mount_record record; /* of an entry of this container */
        bool any;                   /* there is one yet */
        bool open;                  /* in the worker of now, which has its descriptors for itself */
        struct container container;
        int r; /* of mount_record_reach() */
        struct error error;
        struct error silent;              /* of an earlier call */
        int64_t since_ms;                 /* it is asked */
        bool any_silent;                  /* one of them hangs */
        bool put_off;                     /* what is left to ask of it, until the others have been asked */
        bool last_round;                  /* in which that is asked */
        const struct listing_entry *hung; /* the last one that did */
};

static void unpack(const struct listing_entry *entry, struct mount_record *ret_record)
{
        record_flat_unpack(&mount_record_table, entry->packed, ret_record);
}

static bool is_of_same(const struct mount_record *one, const struct mount_record *other)
{
        return one->pid == other->pid && one->start_time == other->start_time && one->pid_ns == other->pid_ns &&
               container_same_namespace(&one->mnt_ns, &other->mnt_ns) && strcmp(one->boot_id, other->boot_id) == 0 &&
               strcmp(one->container_id, other->container_id) == 0;
}

static void reach(struct questions *questions, const struct listing_entry *entry, const struct mount_record *record)
{
        const bool same = questions->any && is_of_same(&questions->record, record);

        if (same && questions->open)
                return;
        container_release(&questions->container);
        questions->container = (struct container)CONTAINER_NONE;
        if (!same) {
                unpack(entry, &questions->record);
                questions->any = true;
                questions->since_ms = clock_now_ms();
                questions->put_off = false;
        }
        questions->open = true;
        questions->r = mount_record_reach(record, questions->boot_id, &questions->container, &questions->error);
}

static void put_problem(struct listing_entry *entry, const struct error *error)
{
        (void)snprintf(entry->problem, sizeof entry->problem, "%s: %.320s", error->operation, error_why(error));
        entry->asked = true;
}

/* So that some time is left for the last. */
static void halve_share(struct ask *ask)
{
        ask->share_ms = ask->share_ms > SHARE_LEAST_MS * 2 ? ask->share_ms / 2 : SHARE_LEAST_MS;
}

/* A container whose answers come in time, but late, does not take the others' time: what is left of it comes last. */
static bool is_put_off(struct ask *ask)
{
        struct questions *questions = ask->argument;

        if (questions->last_round)
                return false;
        if (!questions->put_off && clock_now_ms() - questions->since_ms > ask->share_ms / 2) {
                questions->put_off = true;
                halve_share(ask);
        }
        return questions->put_off;
}

/* Whether this entry's mount is still at its mount point. With the container its mounts are gone. */
static void look_at(const struct questions *questions, const struct mount_record *record, struct listing_entry *entry)
{
        struct error error;
        struct statfs fs;
        int r;

        if (questions->r == -ESRCH)
                return;
        if (questions->r < 0) {
                put_problem(entry, &questions->error);
                return;
        }
        r = in_container_find_statfs(&questions->container, record->mount_point, &record->identity, &entry->placement,
                                     &fs, &error);
        if (r < 0)
                put_problem(entry, &error);
        if (r < 0 || entry->placement != PLACEMENT_PRESENT)
                return;
        entry->known = true;
        entry->flags = (unsigned long)fs.f_flags;
        if (record->raw_device == 0) /* else it is a device's node, on a filesystem of its own */
                fs_usage_of(&fs, &entry->usage);
}

/*
 * The lock of a question to which there was no answer, as long as its worker hangs. A FUSE filesystem can hold it although
 * it was killed (docs/KERNEL.md#targets-in-a-container); no other one is to hang there for each call.
 */
static uint64_t silence_key(const struct listing_entry *entry)
{
        return hash_bytes(mount_record_key(record_flat_text(&mount_record_table, entry->packed, "id")), "silent", 6);
}

static void ask_entry(struct ask *ask, size_t index)
{
        static struct mount_record record;
        struct questions *questions = ask->argument;
        struct listing_entry *entry = &questions->listing->entries[index];

        if (entry->asked)
                return;
        unpack(entry, &record);
        reach(questions, entry, &record);
        if (is_put_off(ask))
                return;
        if (questions->any_silent && state_is_held_for_ever(&questions->silence, silence_key(entry)))
                put_problem(entry, &questions->silent);
        else
                look_at(questions, &record, entry);
        entry->asked = true;
}

static bool are_of_same(const struct listing_entry *one, const struct listing_entry *other)
{
        static struct mount_record records[2];

        unpack(one, &records[0]);
        unpack(other, &records[1]);
        return is_of_same(&records[0], &records[1]);
}

static void begin_worker(struct ask *ask)
{
        struct questions *questions = ask->argument;

        questions->container = (struct container)CONTAINER_NONE; /* it ended with the worker before */
        questions->open = false;
        if (questions->silence.lock_fd < 0)
                questions->silence.lock_fd = state_open_locks(&questions->silence);
        ask->kept_fd = questions->silence.lock_fd > 0 ? questions->silence.lock_fd : 0;
}

/* The lock is from now on that of the worker alone: it ends with it, and at once if that does not hang. */
static void note_silence(struct questions *questions, const struct listing_entry *entry)
{
        (void)state_try_lock_for_ever(&questions->silence, silence_key(entry));
        fd_close(&questions->silence.lock_fd);
}

/*
 * One that hangs loses only its own answer; a second one of the same container those of all that follow there. Each has half
 * of the time of the one before.
 */
static void give_up(struct ask *ask, size_t index, const struct error *error)
{
        struct questions *questions = ask->argument;
        struct listing_entry *entries = questions->listing->entries;
        const bool again = questions->hung != NULL && are_of_same(questions->hung, &entries[index]);
        struct error passed;

        questions->hung = &entries[index];
        questions->any = false;
        put_problem(&entries[index], error);
        note_silence(questions, &entries[index]);
        (void)fail_because(&passed, ETIMEDOUT, OPERATION_WAIT, "mounts",
                           "it was not asked: two others of its container do not answer");
        while (again && ask->next + 1 < ask->count && are_of_same(questions->hung, &entries[ask->next + 1]))
                if (!entries[++ask->next].asked)
                        put_problem(&entries[ask->next], &passed);
        halve_share(ask);
}

static void ask_round(struct ask *ask)
{
        struct questions *questions = ask->argument;
        size_t asked = ask_all(ask);

        if (ask->lost)
                note_silence(questions, &questions->listing->entries[asked]);
}

static void ask_kernel(struct listing *listing, const struct state *state, const char *boot_id, int64_t deadline_ms,
                       int64_t share_ms)
{
        static struct questions questions;
        struct ask ask = { .count = listing->count,
                           .argument = &questions,
                           .one = ask_entry,
                           .give_up = give_up,
                           .begin = begin_worker,
                           .without_fds = true,
                           .share_ms = share_ms,
                           .deadline_ms = deadline_ms };
        struct error late;

        questions = (struct questions){ .listing = listing,
                                        .silence = { .dir_fd = state->dir_fd, .lock_fd = state_open_locks(state) },
                                        .boot_id = boot_id,
                                        .container = CONTAINER_NONE };
        (void)fail_because(&questions.silent, EBUSY, OPERATION_WAIT, "mounts", "an earlier call still waits for it");
        (void)fail_because(&late, ETIMEDOUT, OPERATION_WAIT, "mounts", "there was no time to look at it");
        questions.any_silent = state_is_any_held_for_ever(&questions.silence);
        ask_round(&ask);
        questions.last_round = true;
        if (ask.share_ms < share_ms) /* one was put off, or hung */
                ask_round(&ask);
        for (size_t i = 0; i < listing->count; i++)
                if (!listing->entries[i].asked)
                        put_problem(&listing->entries[i], &late);
        fd_close(&questions.silence.lock_fd);
}

static int by_target(const void *one, const void *other)
{
        const struct listing_entry *a = one;
        const struct listing_entry *b = other;
        int r = strcmp(a->container_id, b->container_id);

        if (r == 0)
                r = (a->pid > b->pid) - (a->pid < b->pid);
        return r != 0 ? r : strcmp(a->target, b->target);
}

static void sort(struct listing *listing)
{
        if (listing->count > 1)
                qsort(listing->entries, listing->count, sizeof *listing->entries, by_target);
}

/* Whether it does not run: its records, and what is wanted in it, are left. Gives: what it is called; "": no name. */
static bool has_ended(const struct request *request, int pinned, const struct error *error, char *ret_name)
{
        container_reference_name(&request->container, ret_name, CONTAINER_NAME_MAX);
        return ret_name[0] != '\0' &&
               (pinned == -ESRCH || (pinned == -ENOENT && strcmp(error->operation, OPERATION_FIND_CONTAINER) == 0));
}

int listing_make(struct listing *ret_listing, const struct request *request, struct error *error)
{
        int64_t share_ms = (int64_t)request->timeout_seconds * 1000 / SHARE;
        int64_t deadline_ms = clock_now_ms() + (int64_t)request->timeout_seconds * 1000;
        cleanup_container struct container container = CONTAINER_NONE;
        cleanup_state struct state state = STATE_NONE;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct listing_collection collection;
        char name[CONTAINER_NAME_MAX];
        static struct error unpinned;
        char state_dir[PATH_MAX];
        int pinned = 0;
        int r = proc_boot_id(boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if (request->has_container && (pinned = named_container_pin(&request->container, &container, error)) < 0 &&
            !has_ended(request, pinned, error, name))
                return pinned;
        unpinned = *error;
        if ((r = config_state_dir(state_dir, error)) < 0)
                return r;
        r = mount_record_open(state_dir, /* create= */ false, &state, error);
        if (r == -ENOENT && pinned == 0)
                return 0; /* no mount was ever recorded */
        collection = (struct listing_collection){
                .listing = ret_listing,
                .state = &state,
                .container = request->has_container && pinned == 0 ? &container : NULL,
                .called = pinned < 0 ? name : NULL,
                .runtime = request->container.runtime,
                .boot_id = boot_id,
        };
        if (r == 0 && (r = listing_collect_records(&collection, error)) == 0) {
                sort(ret_listing);
                ask_kernel(ret_listing, &state, boot_id, deadline_ms, share_ms);
                r = listing_collect_wishes(&collection, state_dir, error);
                sort(ret_listing);
        }
        if (pinned == 0 || (r < 0 && r != -ENOENT) || ret_listing->count > 0)
                return r;
        *error = unpinned; /* nothing is left of it: it was never there */
        return pinned;
}

const struct mount_record *listing_record(const struct listing_entry *entry)
{
        static struct mount_record record;
        static const char *unpacked; /* which it is of: a table asks for each of its cells */

        if (unpacked == entry->packed)
                return &record;
        unpacked = entry->packed;
        unpack(entry, &record);
        if (entry->known)
                mount_options_text(entry->flags, record.options, sizeof record.options);
        return &record;
}

const char *listing_state(const struct listing_entry *entry)
{
        if (entry->problem[0] != '\0')
                return "unknown";
        return entry->wanted && entry->placement == PLACEMENT_GONE ? "wanted" : placement_word(entry->placement);
}

void listing_release(struct listing *listing)
{
        for (size_t i = 0; i < listing->count; i++)
                free(listing->entries[i].packed);
        free(listing->entries);
        listing->entries = NULL;
}
