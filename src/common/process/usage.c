/* SPDX-License-Identifier: Apache-2.0 */
#include "process/usage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/words.h"

#define WIDTH 80
#define NAMES_MIN 8
#define NAMES_MAX 15 /* a longer name has a line of its own */
#define TEXT_MAX ((size_t)16384)

/* What is said of an argument that a program has. */
static const struct {
        const char *argument;
        const char *text;
} sentences[] = {
        { "REQUEST",
          "REQUEST is a JSON object with the keys below; - reads it from standard input. The reply is one JSON "
          "object; on a terminal, lines or a table. In words, a key is an option: readOnly is --read-only, and "
          "--no-read-only is false; a "
          "value follows it or an equals sign; -- ends the options." },
        { "JSON", "JSON is the volume's options, an object; - reads it from standard input." },
};

const char *usage_json;
const char *usage_verbose;

const struct usage_option usage_of_words[] = {
        { .name = "--json",
          .help = "JSON also on a terminal, which otherwise gets lines and tables",
          .ret_word = &usage_json },
        { .name = "--verbose", .help = "each step, as it is taken, on standard error", .ret_word = &usage_verbose },
        {},
};

const char *usage_progress;

static const char *const progress_forms[] = { "json", "none", NULL };

const struct usage_option usage_of_long[] = {
        { .name = "--progress",
          .words = progress_forms,
          .help = "how far it is, on standard error: lines of JSON, or nothing; a terminal gets a bar else",
          .ret_word = &usage_progress },
        {},
};

/* The text as far as it is made, and the column that comes next. */
struct page {
        char text[TEXT_MAX];
        size_t length;
        size_t column;
};

static void add(struct page *page, const char *text, size_t length)
{
        if (length > TEXT_MAX - page->length)
                length = TEXT_MAX - page->length;
        memcpy(page->text + page->length, text, length);
        page->length += length;
        for (size_t i = 0; i < length; i++)
                page->column = text[i] == '\n' ? 0 : page->column + 1;
}

static void pad(struct page *page, size_t column)
{
        while (page->column < column)
                add(page, " ", 1);
}

/* Words, broken where a line would be full; what follows a break begins at indent. A newline begins a paragraph. */
static void wrap(struct page *page, const char *text, size_t indent)
{
        while (*text != '\0') {
                size_t length = strcspn(text, " \n");

                if (length > 0) {
                        if (page->column > indent && page->column + 1 + length > WIDTH)
                                add(page, "\n", 1);
                        if (page->column > indent)
                                add(page, " ", 1);
                        pad(page, indent);
                        add(page, text, length);
                }
                text += length;
                if (*text == '\n')
                        add(page, "\n\n", 2);
                text += *text != '\0' ? 1 : 0;
        }
}

/* "line of help: auto (default), idmapped, host" */
static void describe(const struct key *key, char *ret_text, size_t size)
{
        size_t length = (size_t)snprintf(ret_text, size, "%s", key->help);
        bool told = false;

        for (size_t i = 0; key->words != NULL && key->words[i] != NULL && length < size; i++) {
                bool preset = key->preset != NULL && strcmp(key->preset, key->words[i]) == 0;

                length += (size_t)snprintf(ret_text + length, size - length, "%s%s%s", i == 0 ? ": " : ", ",
                                           key->words[i], preset ? " (default)" : "");
                told = told || preset;
        }
        if (key->type == KEY_INTEGER && length < size)
                length += (size_t)snprintf(ret_text + length, size - length, "; %lld to %lld", (long long)key->minimum,
                                           (long long)key->maximum);
        if (key->preset != NULL && !told && length < size)
                (void)snprintf(ret_text + length, size - length, " (default: %s)", key->preset);
}

static size_t width_of_names(const struct usage *usage)
{
        const struct schema *schema = usage->schema;
        const struct key_table *table = schema != NULL ? schema_request(schema) : NULL;
        size_t width = NAMES_MIN;

        for (size_t i = 0; table != NULL && i < table->count; i++) {
                const struct key *key = &table->rows[i];

                if ((key->programs & schema->programs) != 0 && strlen(key->name) > width &&
                    strlen(key->name) <= NAMES_MAX)
                        width = strlen(key->name);
        }
        return width;
}

static void add_keys(struct page *page, const struct schema *schema, size_t width)
{
        const struct key_table *table = schema_request(schema);

        for (size_t i = 0; table != NULL && i < table->count; i++) {
                const struct key *key = &table->rows[i];
                char text[1024];

                if ((key->programs & schema->programs) == 0)
                        continue;
                describe(key, text, sizeof text);
                add(page, "  ", 2);
                add(page, key->name, strlen(key->name));
                if (page->column > width + 2)
                        add(page, "\n", 1);
                pad(page, width + 4);
                wrap(page, text, width + 4);
                add(page, "\n", 1);
        }
}

static void add_options(struct page *page, const struct usage_option *options, size_t width)
{
        char name[128];

        for (; options->name != NULL; options++) {
                size_t length = (size_t)snprintf(name, sizeof name, "  %s", options->name);

                for (size_t i = 0; options->words != NULL && options->words[i] != NULL && length < sizeof name; i++)
                        length += (size_t)snprintf(name + length, sizeof name - length, "%s%s", i == 0 ? " " : "|",
                                                   options->words[i]);
                add(page, name, strlen(name));
                if (page->column > width + 2)
                        add(page, "\n", 1);
                pad(page, width + 4);
                wrap(page, options->help, width + 4);
                add(page, "\n", 1);
        }
}

int usage_say(const struct usage *usage)
{
        static struct page page;
        const char *arguments = usage->arguments != NULL ? usage->arguments : "| REQUEST | -";
        size_t width = width_of_names(usage);
        char line[WORDS_USAGE_MAX];
        size_t length;

        (void)snprintf(line, sizeof line, "usage: %s", usage->name);
        add(&page, line, strlen(line));
        if (usage->arguments == NULL && schema_has_words(usage->schema)) {
                const struct words words = { usage->name, schema_request(usage->schema), usage->schema->programs,
                                             NULL };

                words_usage(&words, line);
                wrap(&page, line + strlen(usage->name), strlen("usage: ") + strlen(usage->name) + 1);
        }
        (void)snprintf(line, sizeof line, "%s%s--help | --version%s", arguments, arguments[0] != '\0' ? " | " : "",
                       usage->schema != NULL ? " | --schema" : "");
        wrap(&page, line, strlen("usage: ") + strlen(usage->name) + 1);
        add(&page, "\n\n", 2);
        wrap(&page, usage->about, 0);
        for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++)
                if (strstr(arguments, sentences[i].argument) != NULL)
                        wrap(&page, sentences[i].text, 0);
        add(&page, "\n\n", 2);
        length = page.length;
        if (usage->options != NULL)
                add_options(&page, usage->options, width);
        if (usage->arguments == NULL && schema_has_words(usage->schema))
                add_options(&page, usage_of_words, width);
        if (usage->schema != NULL)
                add_keys(&page, usage->schema, width);
        if (page.length > length)
                add(&page, "\n", 1);
        if (usage->examples != NULL)
                add(&page, usage->examples, strlen(usage->examples));
        wrap(&page,
             usage->exit_status != NULL
                     ? usage->exit_status
                     : "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.",
             0);
        add(&page, "\n", 1);
        return page.length < TEXT_MAX ? file_write_all(STDOUT_FILENO, page.text, page.length) : -EFBIG;
}
