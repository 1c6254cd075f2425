/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define LINE_BYTES 1024 /* a pipe that can be written to takes so many at once */

void journal_say(const char *format, ...)
{
        static const struct timespec no_time;
        struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
        char line[LINE_BYTES] = "csi-driver: ";
        size_t length = strlen(line);
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(line + length, sizeof line - length, format, arguments);
        va_end(arguments);
        length = text_end_line(line, sizeof line);
        if (ppoll(&ready, 1, &no_time, NULL) == 1 && (ready.revents & POLLOUT) != 0)
                (void)!write(STDERR_FILENO, line, length); /* nobody else could be told */
}
