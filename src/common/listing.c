/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "removal.h"
#include "text.h"
#include "worker.h"

struct listing_job {
        struct listing *listing;
        const struct request *request;
};

/* Whether this entry's mount is where it was put. A container that is gone took it along. */
static void ask_kernel(struct listing_entry *entry, const char *boot_id)
{
        cleanup_container struct container container = CONTAINER_NONE;
        struct error error;
        int r = removal_reach(&entry->record, boot_id, &container, &error);

        entry->placement = PLACEMENT_GONE;
        if (r == 0)
                r = placement_find(&container, entry->record.mount_point, &entry->record.identity, &entry->placement,
                                   &error);
        if (r < 0 && r != -ESRCH)
                (void)snprintf(entry->problem, sizeof entry->problem, "%s: %s", error.operation,
                               strerrordesc_np(error.errnum));
}

static int add_record(struct listing *listing, const struct state *state, const char *id,
                      const struct container *container, const char *boot_id, struct error *error)
{
        struct mount_record record;
        struct listing_entry *entries;
        int r = mount_record_read(state, id, &record, error);

        if (r == -EBADMSG && listing->set_aside_count < sizeof listing->set_aside / sizeof listing->set_aside[0])
                (void)text_copy(listing->set_aside[listing->set_aside_count++], MOUNT_RECORD_ID_MAX, id);
        if (r < 0 || (container != NULL && !mount_record_is_of(&record, container, boot_id)))
                return 0; /* torn, removed just now, or somebody else's */
        entries = reallocarray(listing->entries, listing->count + 1, sizeof *entries);
        if (entries == NULL)
                return fail(error, ENOMEM, "read record", id);
        listing->entries = entries;
        entries[listing->count] = (struct listing_entry){ .record = record };
        ask_kernel(&entries[listing->count], boot_id);
        listing->count++;
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

static int collect(void *argument, struct error *error)
{
        const struct listing_job *job = argument;
        cleanup_container struct container container = CONTAINER_NONE;
        cleanup_state struct state state = STATE_NONE;
        char boot_id[CONTAINER_BOOT_ID_SIZE];
        char id[MOUNT_RECORD_ID_MAX];
        struct config config;
        DIR *directory;
        int fd;
        int r = container_boot_id(boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if (job->request->has_container && (r = container_pin(&job->request->container, &container, error)) < 0)
                return r;
        if ((r = config_load(&config, error)) < 0)
                return r;
        r = state_open(config.state_dir, "mounts", /* create= */ false, &state, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r; /* nothing was ever recorded */
        fd = openat(state.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        directory = fd < 0 ? NULL : fdopendir(fd);
        if (directory == NULL)
                return fail(error, errno, "open state", "mounts");
        while (r == 0 && mount_record_next(directory, id))
                r = add_record(job->listing, &state, id, job->request->has_container ? &container : NULL, boot_id,
                               error);
        (void)closedir(directory);
        if (r == 0 && job->listing->count > 0)
                qsort(job->listing->entries, job->listing->count, sizeof *job->listing->entries, by_target);
        return r;
}

int listing_make(struct listing *ret_listing, const struct request *request, struct error *error)
{
        struct listing_job job = { .listing = ret_listing, .request = request };

        return worker_run(collect, &job, worker_now_ms() + (int64_t)request->timeout_seconds * 1000, error);
}

void listing_release(struct listing *listing)
{
        free(listing->entries);
        listing->entries = NULL;
}
