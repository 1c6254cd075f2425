/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/listing.h"

#include <stdio.h>

#include "base/metrics_text.h"
#include "base/people.h"
#include "base/reply.h"

enum column {
        COLUMN_CONTAINER,
        COLUMN_TARGET,
        COLUMN_STATE,
        COLUMN_WANTED,
        COLUMN_TYPE,
        COLUMN_SOURCE,
        COLUMN_OPTIONS,
        COLUMN_ID,
        COLUMN_PROBLEM,
        COLUMNS
};

/* What is wrong with a mount; "": nothing. What is gone needs neither its device nor its daemon. */
static const char *problem_of(const struct listing_entry *entry)
{
        if (entry->problem[0] != '\0' || entry->placement == PLACEMENT_GONE)
                return entry->problem;
        if (entry->device != BLOCK_DEVICE_PRESENT)
                return entry->device == BLOCK_DEVICE_GONE ? "its device is gone"
                                                          : "another disk has the number of its device";
        return listing_record(entry)->remap_key != 0 && !entry->remap_runs ? "its remap-daemon does not run" : "";
}

static void cell(const void *argument, size_t row, size_t column, char *ret_text, size_t size)
{
        const struct listing *listing = argument;
        const struct listing_entry *entry = &listing->entries[row];
        const struct mount_record *record = listing_record(entry);

        switch ((enum column)column) {
        case COLUMN_CONTAINER:
                if (record->container_id[0] != '\0')
                        (void)snprintf(ret_text, size, "%s", record->container_id);
                else
                        (void)snprintf(ret_text, size, "%d", record->pid);
                break;
        case COLUMN_TARGET:
                (void)snprintf(ret_text, size, "%s", record->target);
                break;
        case COLUMN_STATE:
                (void)snprintf(ret_text, size, "%s", listing_state(entry));
                break;
        case COLUMN_WANTED:
                (void)snprintf(ret_text, size, "%s", entry->wanted ? "yes" : "no");
                break;
        case COLUMN_TYPE:
                (void)snprintf(ret_text, size, "%s", record->type);
                break;
        case COLUMN_SOURCE:
                if (record->from_id[0] != '\0')
                        (void)snprintf(ret_text, size, "%s:%s", record->from_id, record->source);
                else if (record->from_pid != 0)
                        (void)snprintf(ret_text, size, "%d:%s", record->from_pid, record->source);
                else
                        (void)snprintf(ret_text, size, "%s", record->source);
                break;
        case COLUMN_OPTIONS:
                (void)snprintf(ret_text, size, "%s", record->options);
                break;
        case COLUMN_PROBLEM:
                (void)snprintf(ret_text, size, "%s", problem_of(entry));
                break;
        default:
                (void)snprintf(ret_text, size, "%s", record->id);
        }
}

/* On standard error: what no row is of. */
static void tell_broken(const char ids[][MOUNT_RECORD_ID_MAX], size_t count, const char *how)
{
        for (size_t i = 0; i < count; i++)
                (void)fprintf(stderr, "mount-list: the record %s %s\n", ids[i], how);
}

int list_table_say(const struct listing *listing)
{
        static const char *const heads[COLUMNS] = { "CONTAINER", "TARGET",  "STATE", "WANTED", "TYPE",
                                                    "SOURCE",    "OPTIONS", "ID",    "PROBLEM" };
        int r = table_say(heads, COLUMNS, listing->count, cell, listing);

        tell_broken(listing->set_aside, listing->set_aside_count, "is damaged, and was renamed to *.json.bad");
        tell_broken(listing->unreadable, listing->unreadable_count, "cannot be read");
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* What tells a mount from others, and no more: each other word would be a series of its own. */
static void put_labels(struct metrics_text *text, const struct listing_entry *entry)
{
        const struct mount_record *record = listing_record(entry);
        char pid[16];

        (void)snprintf(pid, sizeof pid, "%d", (int)record->pid);
        metrics_label(text, "id", record->id); /* with its "~", while another replaces it */
        metrics_label(text, "container", record->container_id[0] != '\0' ? record->container_id : pid);
        metrics_label(text, "target", record->target);
        metrics_label(text, "type", record->type);
}

static const struct fs_usage *find_usage(const void *things, size_t i)
{
        return &((const struct listing_entry *)things)[i].usage;
}

static void label_usage(struct metrics_text *text, const void *things, size_t i)
{
        put_labels(text, (const struct listing_entry *)things + i);
}

int listing_metrics_say(const struct listing *listing)
{
        size_t count = listing->count < METRICS_THINGS_MAX ? listing->count : METRICS_THINGS_MAX;
        struct metrics_text text = {};

        metrics_gauge(&text, "flexgraft_mounts", "Mounts in containers that have a record or are wanted.",
                      listing->count);
        metrics_gauge(&text, "flexgraft_mounts_omitted",
                      "Mounts of which there are no metrics, since there are too many.", listing->count - count);
        metrics_gauge(&text, "flexgraft_mount_records_broken",
                      "Records of mounts that cannot be read, or were renamed to *.json.bad.",
                      listing->aside_count + listing->unreadable_count);
        metrics_family(&text, "flexgraft_mount_state", "gauge",
                       "1 for the state of a mount: present, covered, gone, wanted or unknown.");
        for (size_t i = 0; i < count; i++) {
                metrics_sample(&text, "flexgraft_mount_state");
                put_labels(&text, &listing->entries[i]);
                metrics_label(&text, "state", listing_state(&listing->entries[i]));
                metrics_value(&text, 1);
        }
        metrics_family(&text, "flexgraft_mount_problem", "gauge",
                       "Whether a mount does not answer, or has lost its device or its remap-daemon.");
        for (size_t i = 0; i < count; i++) {
                metrics_sample(&text, "flexgraft_mount_problem");
                put_labels(&text, &listing->entries[i]);
                metrics_value(&text, problem_of(&listing->entries[i])[0] != '\0');
        }
        fs_usage_put(&text, "flexgraft_mount", listing->entries, count, find_usage, label_usage);
        return metrics_say(&text);
}
