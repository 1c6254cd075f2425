/* SPDX-License-Identifier: Apache-2.0 */
#include "container/reference.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "base/text.h"
#include "container/lookup.h"

bool container_reference_same(const struct container_reference *one, const struct container_reference *other)
{
        return one->pid == other->pid && text_same(one->id, other->id) && text_same(one->runtime, other->runtime) &&
               text_same(one->proc_dir, other->proc_dir);
}

static int take_pid(const char *key, const json_t *value, pid_t *ret_pid, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT_MAX)
                return json_value_refuse(error, key, "must be a process id, a whole number above 0");
        *ret_pid = (pid_t)json_integer_value(value);
        return 0;
}

static int take_proc_dir(const char *key, const json_t *value, const char **ret_path, struct error *error)
{
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, ret_path, error);

        if (r == 0 && (*ret_path)[0] != '/')
                return json_value_refuse(error, key, "must be an absolute path");
        return r;
}

static int take_container_object(const char *key, const json_t *value, struct container_reference *ret_reference,
                                 struct error *error)
{
        const char *member;
        json_t *part;
        int ways;
        int r = 0;

        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "pid") == 0)
                        r = take_pid(path, part, &ret_reference->pid, error);
                else if (strcmp(member, "id") == 0)
                        r = json_value_id(path, part, &ret_reference->id, error);
                else if (strcmp(member, "procDir") == 0)
                        r = take_proc_dir(path, part, &ret_reference->proc_dir, error);
                else if (strcmp(member, "runtime") == 0) {
                        r = json_value_string(path, part, JSON_VALUE_ID_MAX, &ret_reference->runtime, error);
                        if (r == 0 && !container_lookup_runtime_known(ret_reference->runtime))
                                return fail_because(error, EINVAL, OPERATION_PARSE, path, "%s: must be one of %s", path,
                                                    container_lookup_runtimes());
                } else
                        return fail_because(error, EINVAL, OPERATION_PARSE, path, "unknown key \"%s\"", path);
                if (r < 0)
                        return r;
        }
        ways = (ret_reference->pid != 0) + (ret_reference->id != NULL) + (ret_reference->proc_dir != NULL);
        if (ways != 1)
                return json_value_refuse(error, key, "must have one of \"pid\", \"id\" and \"procDir\"");
        if (ret_reference->runtime != NULL && ret_reference->id == NULL)
                return json_value_refuse(error, key, "has a \"runtime\" without an \"id\"");
        return 0;
}

int container_reference_take(const char *key, const json_t *value, struct container_reference *ret_reference,
                             struct error *error)
{
        if (json_is_integer(value))
                return take_pid(key, value, &ret_reference->pid, error);
        if (json_is_string(value))
                return json_value_id(key, value, &ret_reference->id, error);
        if (json_is_object(value))
                return take_container_object(key, value, ret_reference, error);
        return json_value_refuse(error, key, "must be a process id, a container's id, or an object with one of them");
}
