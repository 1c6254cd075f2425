/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void error_set(struct error *error, int errnum, const char *operation, const char *subject)
{
        assert(errnum > 0);
        error->errnum = errnum;
        text_copy(error->operation, sizeof error->operation, operation);
        text_copy(error->subject, sizeof error->subject, subject);
        text_copy(error->where, sizeof error->where, "node");
        error->kernel[0] = '\0';
        error->reason[0] = '\0';
}

void error_because(struct error *error, int errnum, const char *operation, const char *subject, const char *reason, ...)
{
        va_list args;

        error_set(error, errnum, operation, subject);
        va_start(args, reason);
        (void)vsnprintf(error->reason, sizeof error->reason, reason, args); /* a long sentence is cut */
        va_end(args);
}

const char *error_text(int errnum)
{
        static __thread char number[32]; /* static: callers point to it */
        const char *text = strerrordesc_np(errnum);

        if (text != NULL)
                return text;
        (void)snprintf(number, sizeof number, "Unknown error %d", errnum);
        return number;
}

const char *error_why(const struct error *error)
{
        return error->reason[0] != '\0' ? error->reason : error_text(error->errnum);
}

int error_set_where(struct error *error, const char *where)
{
        text_copy(error->where, sizeof error->where, where);
        return error->errnum;
}
