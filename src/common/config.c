/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "json_file.h"
#include "text.h"

#define DEFAULT_PATH "/etc/flexgraft/config.json"
#define DEFAULT_STATE_DIR "/var/lib/kubelet/plugins/flexgraft"

/* Every key that DESIGN.md gives the file; those a program has no use for are left to the one that has. */
static const char *const keys[] = { "stateDir", "nodeName", "log", "timeouts" };

int config_load(struct config *ret_config, struct error *error)
{
        const char *path = secure_getenv("FLEXGRAFT_CONFIG");
        cleanup_json json_t *file = NULL;
        const json_t *state_dir;
        const char *key;
        json_t *value;
        int r;

        (void)text_copy(ret_config->state_dir, sizeof ret_config->state_dir, DEFAULT_STATE_DIR);
        r = json_file_load(AT_FDCWD, path != NULL ? path : DEFAULT_PATH, JSON_OBJECT, &file, error);
        if (r == -ENOENT && path == NULL)
                return 0;
        if (r < 0)
                return r;
        json_object_foreach (file, key, value) {
                bool known = false;

                for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
                        known = known || strcmp(key, keys[i]) == 0;
                if (!known)
                        return fail_because(error, EBADMSG, "read configuration", path != NULL ? path : DEFAULT_PATH,
                                            "unknown key \"%s\"", key);
        }
        state_dir = json_object_get(file, "stateDir");
        if (state_dir == NULL)
                return 0;
        if (!json_is_string(state_dir) || text_path_normal(json_string_value(state_dir), ret_config->state_dir) < 0)
                return fail_because(error, EBADMSG, "read configuration", path != NULL ? path : DEFAULT_PATH,
                                    "\"stateDir\" is not an absolute path");
        return 0;
}
