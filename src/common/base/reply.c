/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/progress.h"

/* Printed when memory for the reply runs out. */
#define NO_MEMORY "{\"status\":\"Failure\",\"message\":\"out of memory\"}\n"

static const struct people_form *people_forms; /* NULL: JSON */
static const char *running;                    /* NULL: reply_begin() was not called */
static struct timespec begun;
static reply_observer *observed_by; /* NULL: nothing observes */

void reply_to_people(const struct people_form *forms)
{
        people_forms = forms;
}

bool reply_is_for_people(void)
{
        return people_forms != NULL;
}

void reply_begin(const char *program)
{
        running = program;
        (void)clock_gettime(CLOCK_MONOTONIC, &begun); /* cannot fail for this clock */
}

void reply_observe(reply_observer *observer)
{
        observed_by = observer;
}

static void tell_observer(const json_t *reply)
{
        struct timespec now;

        if (running == NULL || observed_by == NULL)
                return;
        (void)clock_gettime(CLOCK_MONOTONIC, &now); /* likewise */
        observed_by(running, (uint64_t)((now.tv_sec - begun.tv_sec) * 1000000 + (now.tv_nsec - begun.tv_nsec) / 1000),
                    reply);
}

/* The line while it is made. */
struct line {
        char *text; /* owned */
        size_t length;
        size_t room;
        bool failed; /* there is no memory for all of it */
};

static void make_room(struct line *line, size_t size)
{
        size_t room = 2 * line->room > line->length + size ? 2 * line->room : line->length + size;
        char *text;

        if (line->failed || line->room - line->length >= size)
                return;
        text = realloc(line->text, room);
        if (text == NULL) {
                line->failed = true;
                return;
        }
        line->text = text;
        line->room = room;
}

static void add_text(struct line *line, const char *text)
{
        const size_t length = strlen(text);

        make_room(line, length);
        if (line->failed)
                return;
        (void)memcpy(line->text + line->length, text, length);
        line->length += length;
}

static void add_value(struct line *line, const json_t *value)
{
        size_t length;

        for (make_room(line, 1024); !line->failed; make_room(line, length)) { /* most items are shorter */
                length = json_dumpb(value, line->text + line->length, line->room - line->length,
                                    JSON_COMPACT | JSON_ENCODE_ANY);
                line->failed = length == 0; /* without a value, too */
                if (length <= line->room - line->length) {
                        line->length += length;
                        return;
                }
        }
}

/* Print the line, and its end, in one write: a reader sees all of it or nothing. Takes the reply's reference. */
static int say(struct line *line, json_t *reply, int exit_status)
{
        int r;

        add_text(line, "\n");
        if (line->failed) {
                json_decref(reply);
                free(line->text);
                (void)file_write_all(STDOUT_FILENO, NO_MEMORY, strlen(NO_MEMORY)); /* a failure cannot be reported */
                return EXIT_FAILED;
        }
        r = file_write_all(STDOUT_FILENO, line->text, line->length);
        free(line->text);
        tell_observer(reply);
        json_decref(reply);
        return r < 0 ? EXIT_FAILED : exit_status;
}

static int say_to_people(json_t *reply, int exit_status)
{
        int r = people_say(people_forms, reply);

        if (exit_status != EXIT_DONE)
                people_complain(running, reply);
        tell_observer(reply);
        json_decref(reply);
        return r < 0 ? EXIT_FAILED : exit_status;
}

int reply_say(json_t *reply, int exit_status)
{
        struct line line = {};

        progress_end();
        if (reply != NULL && people_forms != NULL)
                return say_to_people(reply, exit_status);
        add_value(&line, reply);
        return say(&line, reply, exit_status);
}

int reply_say_list(json_t *reply, const char *key, size_t count, reply_item *item, const void *argument,
                   int exit_status)
{
        json_t *name = json_string(key);
        struct line line = {};

        add_value(&line, reply);
        if (!line.failed)
                line.length--; /* its '}' */
        add_text(&line, ",");
        add_value(&line, name);
        json_decref(name);
        for (size_t i = 0; i < count && !line.failed; i++) {
                json_t *value = item(argument, i);

                add_text(&line, i == 0 ? ":[" : ",");
                add_value(&line, value);
                json_decref(value);
        }
        add_text(&line, count == 0 ? ":[]}" : "]}");
        return say(&line, reply, exit_status);
}

json_t *reply_printable(const char *text)
{
        json_t *string = json_string(text);
        char *copy;

        if (string != NULL)
                return string;
        copy = strdup(text);
        if (copy == NULL)
                return NULL;
        for (char *byte = copy; *byte != '\0'; byte++)
                if ((unsigned char)*byte > '~')
                        *byte = '?';
        string = json_string(copy);
        free(copy);
        return string;
}
