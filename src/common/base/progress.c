/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#define PAUSE_MS 100     /* between two lines */
#define BAR_AFTER_MS 500 /* what is done sooner needs no bar */
#define BAR_WIDTH 24
#define CLEAR_LINE "\r\033[K"

static const char *speaker; /* NULL: silent */
static bool as_json;
static bool bar_is_there;
static struct {
        char step[32];
        int64_t begun_ms;
        int64_t said_ms; /* 0: nothing yet */
        uint64_t said_bytes;
} now;

void progress_begin(const char *program, const char *form)
{
        const bool none = form != NULL && strcmp(form, "none") == 0;

        as_json = form != NULL && !none;
        speaker = none || (!as_json && isatty(STDERR_FILENO) != 1) ? NULL : program;
}

bool progress_is_told(void)
{
        return speaker != NULL;
}

/* A terminal that is stopped, or a reader that sleeps, delays nothing. */
static void say(const char *text, size_t length)
{
        struct pollfd to = { .fd = STDERR_FILENO, .events = POLLOUT };

        if (ppoll(&to, 1, &(struct timespec){ 0 }, NULL) == 1 && (to.revents & POLLOUT))
                (void)file_write_all(STDERR_FILENO, text, length); /* what cannot be said, is done all the same */
}

static void say_json(char *subject, uint64_t done_bytes, uint64_t total_bytes)
{
        cleanup_json json_t *line = json_pack("{s:{s:s, s:s, s:s, s:I}}", "progress", "program", speaker, "step",
                                              now.step, "subject", subject, "doneBytes", (json_int_t)done_bytes);
        char *text;

        if (total_bytes > 0)
                (void)json_object_set_new(json_object_get(line, "progress"), "totalBytes",
                                          json_integer((json_int_t)total_bytes));
        if ((text = json_text_make(line)) == NULL)
                return;
        size_t length = strlen(text);
        text[length] = '\n'; /* in place of its end */
        say(text, length + 1);
        free(text);
}

/* "volume-delete: erase db [######      ] 25% of 10G, 12 s left" */
static void say_bar(const char *subject, uint64_t done_bytes, uint64_t total_bytes, int64_t now_ms)
{
        const uint64_t took_ms = (uint64_t)(now_ms - now.begun_ms);
        char line[512], bytes[TEXT_BYTES_SIZE], bar[BAR_WIDTH + 1];
        size_t length;

        if (total_bytes == 0) {
                text_of_bytes(done_bytes, bytes);
                length = (size_t)snprintf(line, sizeof line, CLEAR_LINE "%s: %s %s: %s", speaker, now.step, subject,
                                          bytes);
        } else {
                const double part = (double)done_bytes / (double)total_bytes;

                text_of_bytes(total_bytes, bytes);
                for (size_t i = 0; i < BAR_WIDTH; i++)
                        bar[i] = (double)i < part * BAR_WIDTH ? '#' : ' ';
                bar[BAR_WIDTH] = '\0';
                length = (size_t)snprintf(line, sizeof line, CLEAR_LINE "%s: %s %s [%s] %d%% of %s", speaker, now.step,
                                          subject, bar, (int)(part * 100), bytes);
                if (done_bytes > 0 && length < sizeof line)
                        length += (size_t)snprintf(line + length, sizeof line - length, ", %llu s left",
                                                   (unsigned long long)((double)took_ms * (1 - part) / part / 1000));
        }
        say(line, length < sizeof line ? length : sizeof line - 1);
        bar_is_there = true;
}

void progress_of(const char *step, const char *subject, uint64_t done_bytes, uint64_t total_bytes)
{
        const int64_t now_ms = clock_now_ms();
        const bool done = total_bytes > 0 && done_bytes >= total_bytes;
        char name[64];

        if (speaker == NULL)
                return;
        if (strcmp(step, now.step) != 0 || done_bytes < now.said_bytes) {
                (void)text_copy(now.step, sizeof now.step, step);
                now.begun_ms = now_ms;
                now.said_ms = 0;
                now.said_bytes = 0;
        }
        if (!done && ((now.said_ms != 0 && now_ms - now.said_ms < PAUSE_MS) ||
                      (!as_json && now_ms - now.begun_ms < BAR_AFTER_MS)))
                return;
        now.said_ms = now_ms;
        now.said_bytes = done_bytes;
        (void)text_copy(name, sizeof name, subject);
        text_escape(name, sizeof name); /* and what was cut of a character goes */
        if (as_json)
                say_json(name, done_bytes, total_bytes);
        else if (done)
                progress_end();
        else
                say_bar(name, done_bytes, total_bytes, now_ms);
}

void progress_end(void)
{
        if (bar_is_there)
                say(CLEAR_LINE, strlen(CLEAR_LINE));
        bar_is_there = false;
}

/* ---- what a program does, step by step, on standard error, if it was asked to say so (--verbose) */

static const char *verbose_program; /* NULL: silent */

void verbose_begin(const char *program)
{
        verbose_program = program;
}

bool verbose_is_asked(void)
{
        return verbose_program != NULL;
}

void verbose_say(const char *text)
{
        char line[1024];
        struct pollfd to = { .fd = STDERR_FILENO, .events = POLLOUT };

        /* A terminal that is stopped, or a reader that sleeps, delays no step: locks are held. */
        if (verbose_program == NULL || ppoll(&to, 1, &(struct timespec){ 0 }, NULL) != 1 || !(to.revents & POLLOUT))
                return;
        (void)snprintf(line, sizeof line, "%s: %s", verbose_program, text);
        /* what cannot be said, is done all the same */
        (void)file_write_all(STDERR_FILENO, line, text_end_line(line, sizeof line));
}
