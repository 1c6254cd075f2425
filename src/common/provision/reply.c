/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/reply.h"
#include "pool/pool_kind.h"
#include "process/log.h"

#define MESSAGE_SIZE ((size_t)(PATH_MAX + 2048))

static void put_message(const struct provision_request *request, const struct error *error, char *ret_message)
{
        static const char *const stories[] = { "cannot create volume", "cannot delete volume",
                                               "cannot list volumes",  "cannot measure the capacity",
                                               "cannot expand volume", "cannot take or restore a snapshot of volume" };
        const char *name = request->name != NULL ? request->name : "";
        bool same = strcmp(name, error->subject) == 0;

        if (!failure_understood(error))
                (void)snprintf(ret_message, MESSAGE_SIZE, FAILURE_NOT_UNDERSTOOD "%s", error_why(error));
        else
                (void)snprintf(ret_message, MESSAGE_SIZE, "%s%s%s: %s%s%s", stories[request->verb],
                               name[0] != '\0' ? " " : "", name, same ? "" : error->subject, same ? "" : ": ",
                               error_why(error));
}

int provision_reply_failure(const struct provision_request *request, const struct error *error)
{
        static char message[MESSAGE_SIZE];

        put_message(request, error, message);
        log_say("failed: %s", message);
        return failure_say(message, error, pool_kind_hint(error));
}

int provision_reply_complaint(const struct provision_request *request, const struct error *error)
{
        static char message[MESSAGE_SIZE];

        put_message(request, error, message);
        return failure_complain(message, sizeof message, error);
}
