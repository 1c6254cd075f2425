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

#define DEFAULT_PATH "/etc/flexgraft/config.json"
#define DEFAULT_STATE_DIR "/var/lib/kubelet/plugins/flexgraft"
#define SECONDS_MAX 3600

static const struct {
        const char *key;
        size_t offset;
        unsigned seconds; /* unless the file says otherwise */
} timeouts[] = {
        { "call", offsetof(struct config, call_seconds), 120 },
        { "command", offsetof(struct config, command_seconds), 600 },
        { "device", offsetof(struct config, device_seconds), 20 },
        { "unmount", offsetof(struct config, unmount_seconds), 10 },
};

static int fail_config(const char *path, const char *key, const char *complaint, struct error *error)
{
        return fail_because(error, EBADMSG, "read configuration", path, "%s: \"%.64s\" %s", path, key, complaint);
}

static unsigned *timeout_of(struct config *config, size_t i)
{
        return (unsigned *)(void *)((char *)config + timeouts[i].offset);
}

static int read_timeouts(const char *path, const json_t *object, struct config *config, struct error *error)
{
        const char *key;
        const json_t *value;

        if (!json_is_object(object))
                return fail_config(path, "timeouts", "must be an object", error);
        json_object_foreach ((json_t *)object, key, value) {
                bool known = false;

                for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
                        if (strcmp(key, timeouts[i].key) != 0)
                                continue;
                        known = true;
                        if (!json_is_integer(value) || json_integer_value(value) < 1 ||
                            json_integer_value(value) > SECONDS_MAX)
                                return fail_config(path, key, "must be a number of seconds, 1 to 3600", error);
                        *timeout_of(config, i) = (unsigned)json_integer_value(value);
                }
                if (!known)
                        return fail_config(path, key, "is not a timeout", error);
        }
        return 0;
}

static int read_key(const char *path, const char *key, const json_t *value, struct config *config, struct error *error)
{
        const char *text = json_string_value(value);

        if (strcmp(key, "timeouts") == 0)
                return read_timeouts(path, value, config, error);
        if (strcmp(key, "stateDir") == 0)
                return text == NULL || text_path_normal(text, config->state_dir) < 0
                               ? fail_config(path, key, "is not an absolute path", error)
                               : 0;
        if (strcmp(key, "nodeName") == 0)
                return text == NULL || !text_copy(config->node_name, sizeof config->node_name, text)
                               ? fail_config(path, key, "is not a node's name", error)
                               : 0;
        if (strcmp(key, "log") == 0) {
                if (text != NULL && (strcmp(text, "syslog") == 0 || strcmp(text, "none") == 0))
                        (void)text_copy(config->log, sizeof config->log, text); /* it fits */
                else if (text == NULL || text_path_normal(text, config->log) < 0)
                        return fail_config(path, key, "must be \"syslog\", \"none\" or an absolute path", error);
                return 0;
        }
        return fail_because(error, EBADMSG, "read configuration", path, "unknown key \"%s\"", key);
}

int config_load(struct config *ret_config, struct error *error)
{
        const char *given = secure_getenv("FLEXGRAFT_CONFIG");
        const char *path = given != NULL ? given : DEFAULT_PATH;
        cleanup_json json_t *file = NULL;
        const char *key;
        json_t *value;
        int r;

        ret_config->node_name[0] = '\0';
        (void)text_copy(ret_config->state_dir, sizeof ret_config->state_dir, DEFAULT_STATE_DIR);
        (void)text_copy(ret_config->log, sizeof ret_config->log, "syslog");
        for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++)
                *timeout_of(ret_config, i) = timeouts[i].seconds;
        r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &file, error);
        if (r == -ENOENT && given == NULL)
                return 0;
        if (r < 0)
                return r;
        json_object_foreach (file, key, value)
                if ((r = read_key(path, key, value, ret_config, error)) < 0)
                        return r;
        return 0;
}
