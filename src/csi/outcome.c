/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome.h"

#include "base/json.h"
#include "codes.h"

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text != NULL ? text : otherwise;
}

void outcome_read(const char *bytes, size_t length, int status, const char *words, struct outcome *ret_outcome)
{
        json_t *reply = length > 0 ? json_text_load(bytes, length) : NULL;
        const char *number = text_of(json_object_get(reply, "error"), "errno", NULL);

        *ret_outcome = (struct outcome){
                .status = json_is_object(reply) ? status : -1,
                .reply = reply,
                .state = text_of(reply, "status", ""),
                .message = text_of(reply, "message", words),
                .error = number != NULL ? csi_errno(number) : 0,
        };
}

void outcome_end(struct outcome *outcome)
{
        json_decref((json_t *)outcome->reply);
        *outcome = (struct outcome){};
}
