/* SPDX-License-Identifier: Apache-2.0 */
#include "container/reference.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "base/schema.h"
#include "base/text.h"
#include "container/control_group.h"
#include "container/lookup.h"

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

static int take_pid(void *object, const char *key, const json_t *value, struct error *error)
{
        struct container_reference *reference = object;

        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT_MAX)
                return json_value_refuse(error, key, "must be a process id, a whole number above 0");
        reference->pid = (pid_t)json_integer_value(value);
        return 0;
}

static int take_runtime(void *object, const char *key, const json_t *value, struct error *error)
{
        struct container_reference *reference = object;
        int r = json_value_string(key, value, JSON_VALUE_ID_MAX, &reference->runtime, error);

        if (r == 0 && !container_lookup_runtime_known(reference->runtime))
                return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: must be one of %s", key,
                                    container_lookup_runtimes());
        return r;
}

static json_t *runtime_schema(const struct key_table *table, unsigned programs)
{
        const char *names = container_lookup_runtimes();
        json_t *list = json_array();

        (void)table;
        (void)programs;
        while (*names != '\0') {
                size_t length = strcspn(names, ", ");

                (void)json_array_append_new(list, json_stringn(names, length));
                names += length;
                names += strspn(names, ", ");
        }
        return json_pack("{s:o}", "enum", list);
}

/* Labels and subdomains of DNS. */
#define LABEL_MAX 63
#define SUBDOMAIN_MAX 253
#define OF_LABEL "abcdefghijklmnopqrstuvwxyz0123456789-"
#define POD_PATTERN "^[a-z0-9-]+/[a-z0-9.-]+$"
#define IN_POD_PATTERN "^[a-z0-9-]+$"

static int take_pod(void *object, const char *key, const json_t *value, struct error *error)
{
        struct container_reference *reference = object;
        const char *slash;
        int r = json_value_string(key, value, LABEL_MAX + 1 + SUBDOMAIN_MAX, &reference->pod, error);

        if (r < 0)
                return r;
        slash = strchr(reference->pod, '/');
        if (slash == NULL || slash == reference->pod || slash - reference->pod > LABEL_MAX || slash[1] == '\0' ||
            strspn(reference->pod, OF_LABEL) != (size_t)(slash - reference->pod) ||
            strspn(slash + 1, OF_LABEL ".") != strlen(slash + 1))
                return json_value_refuse(error, key, "must be a pod, \"namespace/name\"");
        return 0;
}

static int take_user(void *object, const char *key, const json_t *value, struct error *error)
{
        struct container_reference *reference = object;
        struct error ignored;

        if (json_value_number(key, value, &reference->user, &ignored) < 0)
                return json_value_refuse(error, key, "must be the id of the user whose rootless container it is");
        return 0;
}

static int take_in_pod(void *object, const char *key, const json_t *value, struct error *error)
{
        struct container_reference *reference = object;
        int r = json_value_string(key, value, LABEL_MAX, &reference->in_pod, error);

        if (r == 0 && strspn(reference->in_pod, OF_LABEL) != strlen(reference->in_pod))
                return json_value_refuse(error, key, "must be the name of a container in the pod");
        return r;
}

static int take_unit(void *object, const char *key, const json_t *value, struct error *error)
{
        struct container_reference *reference = object;

        return unit_take(key, value, &reference->unit, error);
}

#define FIELD(member) .programs = 1, .offset = offsetof(struct container_reference, member)

static const struct key members[] = {
        { "pid", FIELD(pid), .type = KEY_INTEGER, .minimum = 1, .maximum = INT_MAX, .take = take_pid },
        { "id", FIELD(id), .type = KEY_NAME },
        { "runtime", FIELD(runtime), .type = KEY_STRING, .take = take_runtime, .schema = runtime_schema },
        { "user", FIELD(user), .type = KEY_USER_ID, .take = take_user },
        { "pod", FIELD(pod), .type = KEY_STRING, .maximum = LABEL_MAX + 1 + SUBDOMAIN_MAX, .pattern = POD_PATTERN,
          .take = take_pod },
        { "container", FIELD(in_pod), .type = KEY_STRING, .maximum = LABEL_MAX, .pattern = IN_POD_PATTERN,
          .take = take_in_pod },
        { "unit", FIELD(unit), .type = KEY_STRING, .maximum = UNIT_MAX, .pattern = UNIT_PATTERN, .take = take_unit },
        { "procDir", FIELD(proc_dir), .type = KEY_PATH },
};
const struct key_table container_reference_members = KEY_TABLE(members);

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
        int r;

        json_object_foreach ((json_t *)value, member, part) {
                const struct key *row = key_find(&container_reference_members, 1, member);
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (row == NULL)
                        return key_unknown(path, error);
                if ((r = key_take(row, path, ret_reference, part, error)) < 0)
                        return r;
        }
        return check_object(key, ret_reference, error);
}

int container_reference_take(const char *key, const json_t *value, struct container_reference *ret_reference,
                             struct error *error)
{
        if (json_is_integer(value))
                return take_pid(ret_reference, key, value, error);
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

json_t *container_reference_schema(const struct key_table *table, unsigned programs)
{
        const struct key_table *all = &container_reference_members;
        json_t *pid = schema_of_value(all, "pid", 1);
        json_t *id = schema_of_value(all, "id", 1);
        json_t *object = schema_of_keys(all, 1, /* texts= */ false);

        (void)table;
        (void)programs;
        (void)json_object_update_new(
                object,
                json_pack("{s:[{s:[s]}, {s:[s]}, {s:[s]}, {s:[s]}, {s:[s]}], s:{s:[s], s:[s], s:[s]}}", "oneOf",
                          "required", "pid", "required", "id", "required", "pod", "required", "unit", "required",
                          "procDir", "dependentRequired", "runtime", "id", "user", "id", "container", "pod"));
        return json_pack("{s:[o, o, o]}", "anyOf", pid, id, object);
}
