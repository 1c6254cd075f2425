/* SPDX-License-Identifier: Apache-2.0 */
#include "container/state_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static int number_member(const json_t *object, const char *member, uint64_t *ret_number)
{
        const json_t *value = json_object_get(object, member);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return -EBADMSG;
        *ret_number = (uint64_t)json_integer_value(value);
        return 0;
}

static int take(const json_t *state, const char *pid_member, const char *start_member,
                struct container_process *ret_process)
{
        uint64_t start_time = 0;
        uint64_t pid;

        if (number_member(state, pid_member, &pid) < 0 || pid > INT32_MAX)
                return -EBADMSG;
        (void)number_member(state, start_member, &start_time); /* not every version has it */
        *ret_process = (struct container_process){ .pid = (pid_t)pid, .start_time = start_time };
        return 0;
}

int state_file_crun(const json_t *state, struct container_process *ret_process)
{
        return take(state, "pid", "process-start-time", ret_process);
}

int state_file_runc(const json_t *state, struct container_process *ret_process)
{
        return take(state, "init_process_pid", "init_process_start", ret_process);
}

int state_file_docker(const json_t *config, struct container_process *ret_process)
{
        const json_t *state = json_object_get(config, "State");
        uint64_t pid;

        if (number_member(state, "Pid", &pid) < 0 || pid > INT32_MAX)
                return -EBADMSG;
        if (!json_is_true(json_object_get(state, "Running")))
                pid = 0;
        *ret_process = (struct container_process){ .pid = (pid_t)pid };
        return 0;
}

/* The number that ends with the line. */
static int take_pid(const char *text, struct container_process *ret_process)
{
        char digits[32];
        size_t length = strcspn(text, "\n");
        uint64_t pid;

        if (length >= sizeof digits)
                return -EBADMSG;
        (void)memcpy(digits, text, length);
        digits[length] = '\0';
        if (!text_number(digits, INT32_MAX, &pid))
                return -EBADMSG;
        *ret_process = (struct container_process){ .pid = (pid_t)pid };
        return 0;
}

int state_file_pid(const char *text, struct container_process *ret_process)
{
        return take_pid(text, ret_process);
}

int state_file_machined(const char *text, struct container_process *ret_process)
{
        static const char leader[] = "LEADER=";

        for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (text_starts(line, leader) && take_pid(line + strlen(leader), ret_process) == 0)
                        return 0;
        }
        return -EBADMSG;
}

int state_file_podman(const json_t *containers, const char *id, char *ret_id)
{
        json_t *container;
        int found = 0;
        size_t i;

        json_array_foreach (containers, i, container) {
                const char *full = json_string_value(json_object_get(container, "id"));
                const json_t *name;
                size_t j;
                bool same;

                if (full == NULL || strlen(full) > CONTAINER_ID_FULL || strchr(full, '/') != NULL)
                        continue;
                same = strcmp(full, id) == 0 || (strlen(id) >= CONTAINER_ID_SHORT_LENGTH && text_starts(full, id));
                json_array_foreach (json_object_get(container, "names"), j, name)
                        same = same || (json_is_string(name) && strcmp(json_string_value(name), id) == 0);
                if (same) {
                        (void)text_copy(ret_id, CONTAINER_ID_FULL + 1, full);
                        found++;
                }
        }
        return found;
}
