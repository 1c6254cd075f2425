/* SPDX-License-Identifier: Apache-2.0 */
#include "state/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "state/file_key.h"

#define DEFAULT_PATH "/etc/flexgraft/config.json"
#define DEFAULT_STATE_DIR "/var/lib/kubelet/plugins/flexgraft"
#define SECONDS_MAX 3600

static bool is_seconds(const json_t *value)
{
        return json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= SECONDS_MAX;
}

static bool is_node_name(const json_t *value)
{
        return json_is_string(value) && json_string_length(value) < CONFIG_NODE_NAME_MAX;
}

static bool is_log(const json_t *value)
{
        static const char *const words[] = { "syslog", "none", NULL };

        return json_is_string(value) && (text_among(json_string_value(value), words) || file_key_is_path(value));
}

#define SECONDS(name, fallback, help)                                                                                  \
        {                                                                                                              \
                name, "a number of seconds, 1 to 3600", is_seconds, false, fallback, help, NULL                        \
        }
static const struct file_key timeouts[] = {
        SECONDS("call", "120", "One call altogether, without the commands that it runs."),
        SECONDS("command", "600", "One command: mkfs, fsck, or growing a filesystem."),
        SECONDS("device", "20", "Until a device must have appeared."),
        SECONDS("unmount", "10", "Until a mount that is busy, or hangs, is detached lazily."),
        {},
};
#undef SECONDS

static const struct file_key keys[] = {
        { "stateDir", "an absolute path", file_key_is_path, false, DEFAULT_STATE_DIR,
          "Directory of the records, and of the pool \"default\".", NULL },
        { "nodeName", "a node's name", is_node_name, false, NULL,
          "Name that kubelet has for this node; without it the host's name.", NULL },
        { "log", "\"syslog\", \"none\" or an absolute path", is_log, false, "syslog", "Where diagnostics go.", NULL },
        { "timeouts", "an object", file_key_is_object, false, NULL, "Time limits, in seconds.", timeouts },
        {},
};

const struct file_key *const config_keys = keys;

/* A file that was checked; NULL: none. */
static void take_file(const json_t *file, struct config *ret_config)
{
        const json_t *limits = json_object_get(file, "timeouts");
        const char *log = file_key_text(keys, file, "log");

        *ret_config = (struct config){
                .call_seconds = (unsigned)file_key_number(timeouts, limits, "call"),
                .command_seconds = (unsigned)file_key_number(timeouts, limits, "command"),
                .device_seconds = (unsigned)file_key_number(timeouts, limits, "device"),
                .unmount_seconds = (unsigned)file_key_number(timeouts, limits, "unmount"),
        };
        /* each of them fits, and is a path where it begins as one */
        (void)text_path_normal(file_key_text(keys, file, "stateDir"), ret_config->state_dir);
        (void)text_copy(ret_config->node_name, sizeof ret_config->node_name,
                        file_key_text(keys, file, "nodeName") ?: "");
        if (log[0] != '/' || text_path_normal(log, ret_config->log) < 0)
                (void)text_copy(ret_config->log, sizeof ret_config->log, log);
}

int config_load(struct config *ret_config, struct error *error)
{
        const char *given = secure_getenv("FLEXGRAFT_CONFIG");
        const char *path = given != NULL ? given : DEFAULT_PATH;
        cleanup_json json_t *file = NULL;
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        int r;

        take_file(NULL, ret_config); /* some callers go on without the file */
        r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &file, error);
        if (r == -ENOENT && given == NULL)
                return 0;
        if (r < 0)
                return r;
        if (!file_keys_check(keys, file, /* strict= */ true, complaint))
                return fail_because(error, EBADMSG, "read configuration", path, "%s: %s", path, complaint);
        take_file(file, ret_config);
        return 0;
}
