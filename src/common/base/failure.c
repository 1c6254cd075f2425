/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <jansson.h>
#include <string.h>

#include "base/hint.h"
#include "base/reply.h"

int failure_exit_status(const struct error *error)
{
        return strcmp(error->operation, OPERATION_PARSE) != 0 ? EXIT_FAILED : EXIT_NOT_UNDERSTOOD;
}

int failure_say(const char *message, const struct error *error)
{
        const char *hint = hint_for(error);
        json_t *detail = json_pack("{s:s, s:s?, s:o, s:o}", "operation", error->operation, "errno",
                                   strerrorname_np(error->errnum), "subject", reply_printable(error->subject), "where",
                                   reply_printable(error->where));

        if (detail != NULL && error->kernel[0] != '\0')
                (void)json_object_set_new(detail, "kernel", reply_printable(error->kernel));
        if (detail != NULL && hint != NULL)
                (void)json_object_set_new(detail, "hint", json_string(hint));
        return reply_say(
                json_pack("{s:s, s:o, s:o}", "status", "Failure", "message", reply_printable(message), "error", detail),
                failure_exit_status(error));
}
