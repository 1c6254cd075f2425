/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/listing.h"

#include <stdio.h>

#include "base/reply.h"
#include "base/table.h"

enum column {
        COLUMN_CONTAINER,
        COLUMN_TARGET,
        COLUMN_STATE,
        COLUMN_WANTED,
        COLUMN_TYPE,
        COLUMN_SOURCE,
        COLUMN_OPTIONS,
        COLUMN_ID,
        COLUMNS
};

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
        default:
                (void)snprintf(ret_text, size, "%s", record->id);
        }
}

int list_table_say(const struct listing *listing)
{
        static const char *const heads[COLUMNS] = { "CONTAINER", "TARGET", "STATE",   "WANTED",
                                                    "TYPE",      "SOURCE", "OPTIONS", "ID" };

        return table_say(heads, COLUMNS, listing->count, cell, listing) < 0 ? EXIT_FAILED : EXIT_DONE;
}
