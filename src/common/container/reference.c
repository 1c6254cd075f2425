/* SPDX-License-Identifier: Apache-2.0 */
#include "container/reference.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "base/text.h"
#include "container/control_group.h"
#include "container/lookup.h"

#define MEMBER(member, kind)                                                                                           \
        {                                                                                                              \
                .name = (member), .programs = 1, .type = (kind)                                                        \
        }

static const struct key members[] = {
        MEMBER("pid", KEY_INTEGER),  MEMBER("id", KEY_NAME),      MEMBER("runtime", KEY_STRING),
        MEMBER("user", KEY_USER_ID), MEMBER("pod", KEY_STRING),   MEMBER("container", KEY_STRING),
        MEMBER("unit", KEY_STRING),  MEMBER("procDir", KEY_PATH),
};
const struct key_table container_reference_members = KEY_TABLE(members);

bool container_reference_same(const struct container_reference *one, const struct container_reference *other)
{
        return one->pid == other->pid && text_same(one->id, other->id) && text_same(one->runtime, other->runtime) &&
               one->user == other->user && text_same(one->pod, other->pod) && text_same(one->in_pod, other->in_pod) &&
               text_same(one->unit, other->unit) && text_same(one->proc_dir, other->proc_dir);
}

bool container_reference_is_named(const struct container_reference *reference)
{
        return reference->id != NULL || reference->pod != NULL || reference->unit != NULL;
}

void container_reference_name(const struct container_reference *reference, char *ret_name, size_t size)
{
        if (reference->pod != NULL)
                (void)snprintf(ret_name, size, "pod/%s%s%s", reference->pod, reference->in_pod != NULL ? "/" : "",
                               reference->in_pod != NULL ? reference->in_pod : "");
        else if (reference->user != 0)
                (void)snprintf(ret_name, size, "user/%u/%s", reference->user, reference->id);
        else if (reference->unit != NULL)
                (void)snprintf(ret_name, size, "unit/%s", reference->unit);
        else
                (void)text_copy(ret_name, size, reference->id ?: reference->known_as ?: "");
}

static int take_pid(const char *key, const json_t *value, pid_t *ret_pid, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT_MAX)
                return json_value_refuse(error, key, "must be a process id, a whole number above 0");
        *ret_pid = (pid_t)json_integer_value(value);
        return 0;
}

static int take_user(const char *key, const json_t *value, uid_t *ret_user, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= UINT32_MAX)
                return json_value_refuse(error, key, "must be the id of the user whose rootless container it is");
        *ret_user = (uid_t)json_integer_value(value);
        return 0;
}

static int take_proc_dir(const char *key, const json_t *value, const char **ret_path, struct error *error)
{
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, ret_path, error);

        if (r == 0 && (*ret_path)[0] != '/')
                return json_value_refuse(error, key, "must be an absolute path");
        return r;
}

/* NAMESPACE/NAME: labels and subdomains of DNS. */
static int take_pod(const char *key, const json_t *value, const char **ret_pod, struct error *error)
{
        const char *slash;
        int r = json_value_string(key, value, 63 + 1 + 253, ret_pod, error);

        if (r < 0)
                return r;
        slash = strchr(*ret_pod, '/');
        if (slash == NULL || slash == *ret_pod || slash - *ret_pod > 63 || slash[1] == '\0' ||
            strspn(*ret_pod, "abcdefghijklmnopqrstuvwxyz0123456789-") != (size_t)(slash - *ret_pod) ||
            strspn(slash + 1, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(slash + 1))
                return json_value_refuse(error, key, "must be a pod, \"namespace/name\"");
        return 0;
}

/* The name of a container in a pod: a label of DNS. */
static int take_in_pod(const char *key, const json_t *value, const char **ret_name, struct error *error)
{
        int r = json_value_string(key, value, 63, ret_name, error);

        if (r == 0 && strspn(*ret_name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(*ret_name))
                return json_value_refuse(error, key, "must be the name of a container in the pod");
        return r;
}

/* What belongs together, once all members are read. */
static int check_object(const char *key, const struct container_reference *reference, struct error *error)
{
        int ways = (reference->pid != 0) + (reference->id != NULL) + (reference->pod != NULL) +
                   (reference->unit != NULL) + (reference->proc_dir != NULL);

        if (ways != 1)
                return json_value_refuse(error, key,
                                         "must have one of \"pid\", \"id\", \"pod\", \"unit\" and "
                                         "\"procDir\"");
        if (reference->runtime != NULL && reference->id == NULL)
                return json_value_refuse(error, key, "has a \"runtime\" without an \"id\"");
        if (reference->user != 0 && reference->id == NULL)
                return json_value_refuse(error, key, "has a \"user\" without an \"id\"");
        if (reference->in_pod != NULL && reference->pod == NULL)
                return json_value_refuse(error, key, "has a \"container\" without a \"pod\"");
        return 0;
}

static int take_container_object(const char *key, const json_t *value, struct container_reference *ret_reference,
                                 struct error *error)
{
        const char *member;
        json_t *part;
        int r = 0;

        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "pid") == 0)
                        r = take_pid(path, part, &ret_reference->pid, error);
                else if (strcmp(member, "id") == 0)
                        r = json_value_id(path, part, &ret_reference->id, error);
                else if (strcmp(member, "user") == 0)
                        r = take_user(path, part, &ret_reference->user, error);
                else if (strcmp(member, "pod") == 0)
                        r = take_pod(path, part, &ret_reference->pod, error);
                else if (strcmp(member, "container") == 0)
                        r = take_in_pod(path, part, &ret_reference->in_pod, error);
                else if (strcmp(member, "unit") == 0)
                        r = unit_take(path, part, &ret_reference->unit, error);
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
        return check_object(key, ret_reference, error);
}

int container_reference_take(const char *key, const json_t *value, struct container_reference *ret_reference,
                             struct error *error)
{
        if (json_is_integer(value))
                return take_pid(key, value, &ret_reference->pid, error);
        if (json_is_string(value)) {
                uint64_t number;
                int r = json_value_id(key, value, &ret_reference->id, error);

                if (r == 0 && ret_reference->id[0] != '0' && text_number(ret_reference->id, INT_MAX, &number))
                        ret_reference->or_pid = (pid_t)number;
                return r;
        }
        if (json_is_object(value))
                return take_container_object(key, value, ret_reference, error);
        return json_value_refuse(error, key, "must be a process id, a container's id, or an object with one of them");
}
