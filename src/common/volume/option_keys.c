/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/option_keys.h"

#include <stdio.h>
#include <string.h>

#include "volume/kinds.h"
#include "volume/request.h"

#define ROWS_MAX 64
#define HELP_MAX 512

static enum key_type type_of(enum volume_option_type type)
{
        switch (type) {
        case VOLUME_OPTION_BOOLEAN:
                return KEY_BOOLEAN;
        case VOLUME_OPTION_SIZE:
                return KEY_SIZE;
        default:
                return KEY_STRING;
        }
}

/* One option of a kind: "loop: name of the file (default NAME.img)". */
static void describe(char *text, size_t size, const struct volume_kind *kind, const struct volume_option *option)
{
        (void)snprintf(text, size, "%s: %s%s%s%s", kind->word, option->help,
                       option->fallback != NULL ? " (default " : "", option->fallback ?: "",
                       option->fallback != NULL ? ")" : "");
}

/* An option of one kind, to a row of its own or to that of the same option of another. */
static void add(struct key_table *table, struct key *rows, const struct volume_kind *kind,
                const struct volume_option *option)
{
        static char helps[ROWS_MAX][HELP_MAX];
        size_t at = 0;
        size_t length;

        while (at < table->count && strcmp(rows[at].name, option->key) != 0)
                at++;
        if (at == ROWS_MAX)
                return;
        length = strlen(helps[at]);
        if (length > 0 && length < HELP_MAX - 2)
                length += (size_t)snprintf(helps[at] + length, HELP_MAX - length, "; ");
        describe(helps[at] + length, HELP_MAX - length, kind, option);
        rows[at] = (struct key){ option->key, 1, 0, type_of(option->type), .help = helps[at] };
        table->count += at == table->count;
}

const struct key_table *option_keys(void)
{
        static struct key rows[ROWS_MAX];
        static struct key_table table = { .rows = rows };

        if (table.count > 0)
                return &table;
        memcpy(rows, volume_request_keys.rows, volume_request_keys.count * sizeof rows[0]);
        table.count = volume_request_keys.count;
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                for (const struct volume_option *option = volume_kinds[i]->options;
                     option != NULL && option->key != NULL; option++)
                        add(&table, rows, volume_kinds[i], option);
        return &table;
}
