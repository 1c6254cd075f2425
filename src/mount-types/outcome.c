/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome.h"

#include <libmount/libmount.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "utab.h"

void outcome_say(const char *program, const char *target, const char *format, ...)
{
        char line[2 * PATH_MAX + 1024];
        int length = snprintf(line, sizeof line, "%s: %s%s", program, target, target[0] != '\0' ? ": " : "");
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
        va_end(arguments);
        (void)file_write_all(STDERR_FILENO, line, text_end_line(line, sizeof line)); /* there is no other way to tell */
}

static int status_of(const struct error *error)
{
        if (strcmp(error->operation, OPERATION_PARSE) == 0 || strcmp(error->operation, OPERATION_PRCTL) == 0 ||
            strcmp(error->operation, OPERATION_CAPSET) == 0)
                return MNT_EX_USAGE;
        if (strcmp(error->operation, "write utab") == 0)
                return MNT_EX_FILEIO;
        return error->errnum == ENOMEM ? MNT_EX_SYSERR : MNT_EX_FAIL;
}

int outcome_failure(const char *program, const struct arguments *arguments, const struct error *error)
{
        const char *target = arguments->target;
        const char *subject = error->subject;

        if (status_of(error) == MNT_EX_USAGE)
                outcome_say(program, target, "%s (see \"%s --help\")", error_why(error), program);
        else if (strcmp(error->operation, OPERATION_FIND_TARGET) == 0)
                outcome_say(program, subject, "%s.", error_why(error));
        else if (strcmp(error->operation, OPERATION_UMOUNT2) == 0)
                outcome_say(program, subject, "%s.",
                            error->errnum == EBUSY    ? "target is busy"
                            : error->errnum == EINVAL ? "not mounted"
                                                      : error_why(error));
        else if (strstr(error_why(error), subject) != NULL || strcmp(subject, target) == 0)
                outcome_say(program, target, "%s.", error_why(error));
        else
                outcome_say(program, target, "%s: %s%s%s.", subject, error_why(error),
                            error->kernel[0] != '\0' ? ": " : "", error->kernel);
        return status_of(error);
}

int outcome_mounted_already(const char *program, const struct arguments *arguments)
{
        outcome_say(program, arguments->target, "%s already mounted on %s.", arguments->source, arguments->target);
        return MNT_EX_FAIL;
}

int outcome_of(const struct program *program, const struct arguments *arguments, int argc, char **argv,
               int (*act)(struct error *error))
{
        static struct error error;
        int status;

        if (program_begin(program, argc, argv, &error) < 0)
                return outcome_failure(program->usage.name, arguments, &error);
        status = act(&error);
        utab_end();
        return status;
}
