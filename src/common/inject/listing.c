/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "mount/in_container.h"
#include "process/proc.h"
#include "process/worker.h"
#include "state/config.h"

/* One container that does not answer may take this part of the timeout: 1/4. */
#define SHARE 4

struct question {
        struct listing_entry *entry;
        const char *boot_id;
};

/* Whether this entry's mount is still at its mount point. With the container its mounts are gone. */
static int ask_kernel(void *argument, struct error *error)
{
        const struct question *question = argument;
        struct listing_entry *entry = question->entry;
        cleanup_container struct container container = CONTAINER_NONE;
        int r = mount_record_reach(&entry->record, question->boot_id, &container, error);

        if (r == -ESRCH)
                return 0;
        if (r == 0)
                r = in_container_find(&container, entry->record.mount_point, &entry->record.identity, &entry->placement,
                                      error);
        if (r == 0 && entry->placement == PLACEMENT_PRESENT)
                r = in_container_options(&container, entry->record.mount_point, &entry->record.identity,
                                         entry->record.options, sizeof entry->record.options, error);
        return r;
}

/* Each in its own worker, so that one container that hangs loses only its own answer. */
static void ask(struct listing_entry *entry, const char *boot_id, int64_t deadline_ms, int64_t share_ms)
{
        struct question question = { .entry = entry, .boot_id = boot_id };
        int64_t until_ms = clock_now_ms() + share_ms;
        struct error error = {};

        entry->placement = PLACEMENT_GONE;
        if (worker_run(ask_kernel, &question, until_ms < deadline_ms ? until_ms : deadline_ms, &error) < 0)
                (void)snprintf(entry->problem, sizeof entry->problem, "%s: %s", error.operation,
                               strerrordesc_np(error.errnum));
}

static void note(char (*list)[MOUNT_RECORD_ID_MAX], size_t *count, const char *id)
{
        if (*count < LISTING_NOTES_MAX)
                (void)text_copy(list[(*count)++], MOUNT_RECORD_ID_MAX, id);
}

struct collection {
        struct listing *listing;
        struct state *state;
        const struct container *container; /* NULL: all containers */
        const char *boot_id;
        int64_t deadline_ms;
        int64_t share_ms;
};

static int add_record(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct collection *collection = argument;
        struct listing *listing = collection->listing;
        struct listing_entry *entries;

        if (record == NULL && error->errnum == EBADMSG)
                note(listing->set_aside, &listing->set_aside_count, id);
        else if (record == NULL)
                note(listing->unreadable, &listing->unreadable_count, id);
        if (record == NULL ||
            (collection->container != NULL && !mount_record_is_of(record, collection->container, collection->boot_id)))
                return 0;
        entries = reallocarray(listing->entries, listing->count + 1, sizeof *entries);
        if (entries == NULL)
                return fail(error, ENOMEM, "read record", id);
        listing->entries = entries;
        entries[listing->count] = (struct listing_entry){
                .record = *record,
                .remap_runs = record->remap_key != 0 && mount_record_remap_lives(collection->state, record->remap_key),
        };
        ask(&entries[listing->count++], collection->boot_id, collection->deadline_ms, collection->share_ms);
        return 0;
}

static int by_target(const void *one, const void *other)
{
        const struct listing_entry *a = one;
        const struct listing_entry *b = other;
        int r = strcmp(a->record.container_id, b->record.container_id);

        if (r == 0)
                r = (a->record.pid > b->record.pid) - (a->record.pid < b->record.pid);
        return r != 0 ? r : strcmp(a->record.target, b->record.target);
}

int listing_make(struct listing *ret_listing, const struct request *request, struct error *error)
{
        int64_t share_ms = (int64_t)request->timeout_seconds * 1000 / SHARE;
        int64_t deadline_ms = clock_now_ms() + (int64_t)request->timeout_seconds * 1000;
        cleanup_container struct container container = CONTAINER_NONE;
        cleanup_state struct state state = STATE_NONE;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct config config;
        int r = proc_boot_id(boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if (request->has_container && (r = container_pin(&request->container, &container, error)) < 0)
                return r;
        if ((r = config_load(&config, error)) < 0)
                return r;
        r = state_open(config.state_dir, "mounts", /* create= */ false, &state, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r; /* no mount was ever recorded */
        r = mount_record_each(&state, add_record,
                              &(struct collection){
                                      .listing = ret_listing,
                                      .state = &state,
                                      .container = request->has_container ? &container : NULL,
                                      .boot_id = boot_id,
                                      .deadline_ms = deadline_ms,
                                      .share_ms = share_ms,
                              },
                              error);
        if (r >= 0 && ret_listing->count > 0)
                qsort(ret_listing->entries, ret_listing->count, sizeof *ret_listing->entries, by_target);
        return r;
}

void listing_release(struct listing *listing)
{
        free(listing->entries);
        listing->entries = NULL;
}
