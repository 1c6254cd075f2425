/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/list_table.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reply.h"
#include "base/text.h"

enum column {
        COLUMN_CONTAINER,
        COLUMN_TARGET,
        COLUMN_STATE,
        COLUMN_TYPE,
        COLUMN_SOURCE,
        COLUMN_OPTIONS,
        COLUMN_ID,
        COLUMNS
};

/* One cell of the table, as it is printed: without anything that a terminal would take for a command. */
static void cell(const struct listing_entry *entry, enum column column, char *ret_text, size_t size)
{
        const struct mount_record *record = &entry->record;

        switch (column) {
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
                (void)snprintf(ret_text, size, "%s",
                               entry->problem[0] != '\0' ? "unknown" : placement_word(entry->placement));
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
        text_make_printable(ret_text);
}

int list_table_say(const struct listing *listing)
{
        static const char *const heads[COLUMNS] = { "CONTAINER", "TARGET", "STATE", "TYPE", "SOURCE", "OPTIONS", "ID" };
        static char text[PATH_MAX + CONTAINER_NAME_MAX + 1];
        static char line[2 * (PATH_MAX + CONTAINER_NAME_MAX)];
        size_t widths[COLUMNS];
        int r = 0;

        for (int column = 0; column < COLUMNS; column++) {
                widths[column] = strlen(heads[column]);
                for (size_t i = 0; i < listing->count; i++) {
                        cell(&listing->entries[i], (enum column)column, text, sizeof text);
                        if (strlen(text) > widths[column])
                                widths[column] = strlen(text);
                }
        }
        for (size_t i = 0; r == 0 && i <= listing->count; i++)
                for (int column = 0; r == 0 && column < COLUMNS; column++) {
                        bool last = column == COLUMNS - 1;

                        if (i == 0)
                                (void)snprintf(text, sizeof text, "%s", heads[column]);
                        else
                                cell(&listing->entries[i - 1], (enum column)column, text, sizeof text);
                        (void)snprintf(line, sizeof line, "%-*s%s", last ? 0 : (int)widths[column], text,
                                       last ? "\n" : "  ");
                        r = file_write_all(STDOUT_FILENO, line, strlen(line));
                }
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
