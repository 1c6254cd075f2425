/* SPDX-License-Identifier: Apache-2.0 */
#include "state/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "container/container.h"
#include "container/lookup.h"
#include "state/call_counts.h"
#include "state/file_key.h"

#define DEFAULT_PATH "/etc/flexgraft/config.json"
#define CONFIG_TEXT_MAX 65536
#define DEFAULT_STATE_DIR "/var/lib/kubelet/plugins/flexgraft"
#define DEFAULT_KUBELET_ROOT "/var/lib/kubelet"
#define DEFAULT_CDI_DIR "/etc/cdi"
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

static bool is_runtimes(const json_t *value)
{
        const json_t *directories;
        const json_t *directory;
        const char *name;
        size_t i;

        json_object_foreach ((json_t *)value, name, directories) {
                if (!container_lookup_runtime_known(name) || !json_is_array(directories))
                        return false;
                json_array_foreach (directories, i, directory)
                        if (!file_key_is_path(directory))
                                return false;
        }
        return json_is_object(value);
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

static const struct file_key kubelet[] = {
        { "rootDir", "an absolute path", file_key_is_path, false, DEFAULT_KUBELET_ROOT,
          "Root directory of kubelet (its option --root-dir).", NULL },
        { "socket", "an absolute path", file_key_is_path, false, NULL,
          "Unix socket that kubelet listens on while it runs; without it device-plugins/kubelet.sock or "
          "pod-resources/kubelet.sock in rootDir.",
          NULL },
        SECONDS("unstageAfter", "600",
                "How long no pod must have had a volume until volume-reconcile unstages and detaches it."),
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
        { "kubelet", "an object", file_key_is_object, false, NULL, "What volume-reconcile knows of kubelet.", kubelet },
        { "cdiDir", "an absolute path", file_key_is_path, false, DEFAULT_CDI_DIR,
          "Directory of the files that make volumes devices of container engines (mount-hook --cdi).", NULL },
        { "runtimes", "an object of runtimes and arrays of absolute paths", is_runtimes, false, NULL,
          "For each container runtime its state directories, besides the usual ones.", NULL },
        {},
};

const struct file_key *const config_keys = keys;

/* A file that was checked; NULL: none. */
static void take_file(const json_t *file, struct config *ret_config)
{
        const json_t *limits = json_object_get(file, "timeouts");
        const json_t *of_kubelet = json_object_get(file, "kubelet");
        const char *socket = file_key_text(kubelet, of_kubelet, "socket");
        const char *log = file_key_text(keys, file, "log");

        /* field by field: the struct is large */
        ret_config->call_seconds = (unsigned)file_key_number(timeouts, limits, "call");
        ret_config->command_seconds = (unsigned)file_key_number(timeouts, limits, "command");
        ret_config->device_seconds = (unsigned)file_key_number(timeouts, limits, "device");
        ret_config->unmount_seconds = (unsigned)file_key_number(timeouts, limits, "unmount");
        ret_config->unstage_seconds = (unsigned)file_key_number(kubelet, of_kubelet, "unstageAfter");
        /* each of them fits, and is a path where it begins as one */
        (void)text_path_normal(file_key_text(keys, file, "stateDir"), ret_config->state_dir);
        (void)text_path_normal(file_key_text(kubelet, of_kubelet, "rootDir"), ret_config->kubelet_root);
        (void)text_path_normal(file_key_text(keys, file, "cdiDir"), ret_config->cdi_dir);
        ret_config->kubelet_socket[0] = '\0';
        if (socket != NULL)
                (void)text_path_normal(socket, ret_config->kubelet_socket);
        (void)text_copy(ret_config->node_name, sizeof ret_config->node_name,
                        file_key_text(keys, file, "nodeName") ?: "");
        if (log[0] != '/' || text_path_normal(log, ret_config->log) < 0)
                (void)text_copy(ret_config->log, sizeof ret_config->log, log);
}

/* The checked file; NULL: there is none, and none is named. */
static int load_file(json_t **ret_file, struct error *error)
{
        const char *given = secure_getenv("FLEXGRAFT_CONFIG");
        const char *path = given != NULL ? given : DEFAULT_PATH;
        cleanup_json json_t *file = NULL;
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        int r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &file, error);

        *ret_file = NULL;
        if (r == -ENOENT && given == NULL)
                return 0;
        if (r < 0)
                return r;
        if (!file_keys_check(keys, file, /* strict= */ true, complaint))
                return fail_because(error, EBADMSG, "read configuration", path, "%s: %s", path, complaint);
        *ret_file = json_incref(file);
        return 0;
}

/* The same for those who ask for one thing of it each: the file is read once. */
static int load_once(const json_t **ret_file, struct error *error)
{
        static json_t *file; /* kept until the process ends */
        static bool known;   /* kept: it has been read */
        int r = known ? 0 : load_file(&file, error);

        known = r == 0;
        *ret_file = file;
        return r;
}

int config_load(struct config *ret_config, struct error *error)
{
        cleanup_json json_t *file = NULL;
        int r = load_file(&file, error);

        take_file(file, ret_config); /* some callers go on without the file */
        if (r == 0)
                call_counts_begin(ret_config->state_dir);
        return r;
}

int config_state_dir(char *ret_dir, struct error *error)
{
        const json_t *file;
        int r = load_once(&file, error);

        if (r == 0)
                (void)text_path_normal(file_key_text(keys, file, "stateDir"), ret_dir); /* it fits: it was checked */
        if (r == 0)
                call_counts_begin(ret_dir);
        return r;
}

/* One that is cut may have named it behind its end. */
static bool has_end(const char *text, size_t length)
{
        if (strlen(text) != length)
                return false;
        while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
                length--;
        return length > 0 && text[length - 1] == '}';
}

bool config_state_dir_despite(char *ret_dir)
{
        static char text[CONFIG_TEXT_MAX];
        const char *given = secure_getenv("FLEXGRAFT_CONFIG");

        const ssize_t n = file_read(AT_FDCWD, given != NULL ? given : DEFAULT_PATH, text, sizeof text);

        if (n < 0 || !has_end(text, (size_t)n) || json_text_may_have(text, "stateDir"))
                return false;
        (void)text_copy(ret_dir, PATH_MAX, DEFAULT_STATE_DIR);
        return true;
}

/* "runtimes" of the file: for each runtime an array of state directories besides the usual ones. Borrowed; NULL: there is none. */
static int config_runtimes(const json_t **ret_runtimes, struct error *error)
{
        const json_t *file;
        int r = load_once(&file, error);

        *ret_runtimes = json_object_get(file, "runtimes");
        return r;
}

int named_container_pin(const struct container_reference *reference, struct container *ret_container,
                        struct error *error)
{
        struct container_reference named = *reference;
        int r = 0;

        if (container_reference_is_named(reference))
                r = config_runtimes(&named.directories, error);
        return r < 0 ? r : container_pin(&named, ret_container, error);
}
