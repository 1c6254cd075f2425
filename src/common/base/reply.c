/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reply.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Printed when memory for the reply runs out. */
#define NO_MEMORY "{\"status\":\"Failure\",\"message\":\"out of memory\"}\n"

int reply_say(json_t *reply, int exit_status)
{
        /* the line and its end in one write: a reader sees all of it or nothing */
        size_t length = reply != NULL ? json_dumpb(reply, NULL, 0, JSON_COMPACT) : 0;
        char *line = length > 0 ? malloc(length + 1) : NULL;
        int r;

        if (line != NULL)
                length = json_dumpb(reply, line, length, JSON_COMPACT);
        json_decref(reply);
        if (line == NULL || length == 0) {
                free(line);
                (void)file_write_all(STDOUT_FILENO, NO_MEMORY, strlen(NO_MEMORY)); /* a failure cannot be reported */
                return EXIT_FAILED;
        }
        line[length] = '\n';
        r = file_write_all(STDOUT_FILENO, line, length + 1);
        free(line);
        return r < 0 ? EXIT_FAILED : exit_status;
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
