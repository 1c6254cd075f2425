/* SPDX-License-Identifier: Apache-2.0 */
#include "base/members.h"

#include "base/reply.h"

void members_put(struct members *members, const char *name, bool required, json_t *value)
{
        if (members->object == NULL)
                members->object = json_object();
        if (value == NULL)
                members->failed = members->failed || required;
        else if (json_object_set_new(members->object, name, value) < 0) /* which frees the value */
                members->failed = true;
}

json_t *members_end(struct members *members)
{
        json_t *object = members->object != NULL ? members->object : json_object();

        if (!members->failed)
                return object;
        json_decref(object);
        return NULL;
}

json_t *members_text(const char *text)
{
        return text[0] != '\0' ? reply_printable(text) : NULL;
}

json_t *members_true(bool value)
{
        return value ? json_true() : NULL;
}
