/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "volume/kinds.h"
#include "volume/reply.h"
#include "volume/request.h"

static const char *const not_supported_words[] = { "Not supported", NULL };

static const struct key not_supported_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = not_supported_words, .help = "no volume of this driver has the verb" },
        { "message", ALL, ALL, KEY_ANY, .help = "the same in words" },
};
static const struct key_table not_supported = KEY_TABLE(not_supported_keys);

static const struct schema_form replies[] = {
        { "done", ALL, &volume_success_keys },
        { "failed", ALL, &failure_keys },
        { "not supported", ALL, &not_supported },
        {},
};

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

/* The options of all kinds of volumes, as rows: made of the rows of the kinds (volume/kind.h) when they are asked for. */
static const struct key_table *option_keys(void)
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

/* Verbs that look at the options beyond the name. getvolumename does not. */
#define WITH_OPTIONS                                                                                                   \
        (VERB_BIT(ATTACH) | VERB_BIT(WAITFORATTACH) | VERB_BIT(ISATTACHED) | VERB_BIT(MOUNTDEVICE) | VERB_BIT(MOUNT) | \
         VERBS_OF_SIZES)

#define SCHEMA(name, word, letters, arguments)                                                                         \
        const struct schema volume_schema_##name = { .request_of = (WITH_OPTIONS & VERB_BIT(name)) != 0 ? option_keys  \
                                                                                                        : NULL,        \
                                                     .programs = 1,                                                    \
                                                     .texts = true,                                                    \
                                                     .reply_programs = VERB_BIT(name),                                 \
                                                     .replies = replies };

VOLUME_VERBS(SCHEMA)
