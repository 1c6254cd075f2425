/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verbose.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

static const char *speaker; /* NULL: silent */

void verbose_begin(const char *program)
{
        speaker = program;
}

bool verbose_is_asked(void)
{
        return speaker != NULL;
}

void verbose_say(const char *text)
{
        char line[1024];
        struct pollfd to = { .fd = STDERR_FILENO, .events = POLLOUT };

        /* A terminal that is stopped, or a reader that sleeps, delays no step: locks are held. */
        if (speaker == NULL || ppoll(&to, 1, &(struct timespec){ 0 }, NULL) != 1 || !(to.revents & POLLOUT))
                return;
        (void)snprintf(line, sizeof line, "%s: %s", speaker, text);
        /* what cannot be said, is done all the same */
        (void)file_write_all(STDERR_FILENO, line, text_end_line(line, sizeof line));
}
