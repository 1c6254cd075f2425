/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/kubelet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#define FLEXVOLUME_STAGES "/plugins/kubernetes.io/flexvolume/"
#define CSI_STAGES "/plugins/kubernetes.io/csi/"
/* beside the directory of a CSI volume, staged or a pod's: which volume of which driver it is for; until it is unmounted */
#define CSI_NOTE "vol_data.json"
#define CSI_DIRECTORY "kubernetes.io~csi" /* of a pod's volumes */

static bool answers(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || !text_copy(address.sun_path, sizeof address.sun_path, path))
                return false;
        /* EAGAIN: others wait to be answered, too */
        return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
}

bool kubelet_runs(const struct config *config)
{
        static const char *const sockets[] = { "device-plugins/kubelet.sock", "pod-resources/kubelet.sock" };
        char path[PATH_MAX];

        if (config->kubelet_socket[0] != '\0')
                return answers(config->kubelet_socket);
        for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++)
                if (snprintf(path, sizeof path, "%s/%s", config->kubelet_root, sockets[i]) < (int)sizeof path &&
                    answers(path))
                        return true;
        return false;
}

static bool is_below(const struct config *config, const char *dir, const char *where)
{
        size_t length = strlen(config->kubelet_root);

        return strncmp(dir, config->kubelet_root, length) == 0 && text_starts(dir + length, where);
}

/* What kubelet noted of the volume that is staged on dir: an object, or NULL. */
static json_t *read_note_of_stage(const struct config *config, const char *dir)
{
        char path[PATH_MAX + sizeof CSI_NOTE];
        struct error ignored; /* then it is not known */
        json_t *note = NULL;

        if (!is_below(config, dir, CSI_STAGES))
                return NULL;
        (void)snprintf(path, sizeof path, "%.*s/" CSI_NOTE, (int)(strrchr(dir, '/') - dir), dir);
        return json_file_load(AT_FDCWD, path, JSON_OBJECT, &note, &ignored) < 0 ? NULL : note;
}

bool kubelet_stages_on(const struct config *config, const char *dir)
{
        cleanup_json json_t *note = read_note_of_stage(config, dir);

        return note != NULL || is_below(config, dir, FLEXVOLUME_STAGES);
}

/* ---- pods */

static bool has_entry(int dir_fd, const char *path)
{
        return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

typedef bool entry_function(int dir_fd, const char *name, const void *argument);

/* Whether function() holds for an entry of a directory; true where it cannot be read, false where it is not there. */
static bool any(int dir_fd, const char *path, entry_function *function, const void *argument)
{
        DIR *list = file_list(dir_fd, path);
        const struct dirent *entry;
        bool found = false;

        if (list == NULL)
                return errno != ENOENT;
        for (errno = 0; !found && (entry = readdir(list)) != NULL; errno = 0)
                found = entry->d_name[0] != '.' && function(dirfd(list), entry->d_name, argument);
        found = found || errno != 0;
        (void)closedir(list); /* only read from */
        return found;
}

struct wanted {
        const char *driver;
        const char *volume;
};

static bool driver_has(int volumes_fd, const char *driver, const void *argument)
{
        const struct wanted *wanted = argument;
        char path[PATH_MAX];

        if (wanted->driver[0] != '\0' && strcmp(wanted->driver, driver) != 0)
                return false;
        return snprintf(path, sizeof path, "%s/%s", driver, wanted->volume) >= (int)sizeof path ||
               has_entry(volumes_fd, path);
}

static bool pod_has(int pods_fd, const char *pod, const void *argument)
{
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%.255s/volumes", pod);
        return any(pods_fd, path, driver_has, argument);
}

bool kubelet_pod_has(const struct config *config, const char *driver, const char *volume)
{
        const struct wanted wanted = { .driver = driver, .volume = volume };
        char path[PATH_MAX];

        return snprintf(path, sizeof path, "%s/pods", config->kubelet_root) >= (int)sizeof path ||
               any(AT_FDCWD, path, pod_has, &wanted);
}

/* ---- pods with CSI volumes */

static bool is_noted(int volumes_fd, const char *volume, const void *argument)
{
        static const char *const members[] = { "driverName", "volumeHandle" };
        const json_t *wanted = argument;
        cleanup_json json_t *note = NULL;
        char path[NAME_MAX + sizeof "/" CSI_NOTE];
        struct error ignored; /* it is as if it were the one */
        int r;

        (void)snprintf(path, sizeof path, "%s/" CSI_NOTE, volume);
        r = json_file_load(volumes_fd, path, JSON_OBJECT, &note, &ignored);
        if (r < 0)
                return r != -ENOENT;
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                const char *noted = json_string_value(json_object_get(note, members[i]));
                const char *sought = json_string_value(json_object_get(wanted, members[i]));

                if (noted != NULL && sought != NULL && strcmp(noted, sought) != 0)
                        return false;
        }
        return true;
}

static bool pod_notes(int pods_fd, const char *pod, const void *argument)
{
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%.255s/volumes/" CSI_DIRECTORY, pod);
        return any(pods_fd, path, is_noted, argument);
}

bool kubelet_pod_has_staged(const struct config *config, const char *dir)
{
        cleanup_json json_t *note = read_note_of_stage(config, dir);
        char path[PATH_MAX];

        return note != NULL && (snprintf(path, sizeof path, "%s/pods", config->kubelet_root) >= (int)sizeof path ||
                                any(AT_FDCWD, path, pod_notes, note));
}

/* ---- all pods at once */

struct reading {
        struct kubelet_pods *pods;
        const char *driver;
};

static void put(json_t *set, const char *driver, const char *volume)
{
        cleanup_json json_t *key = json_sprintf("%s/%s", driver, volume);

        (void)json_object_set_new(set, json_string_value(key), json_true());
}

static bool is_put(const json_t *set, const char *driver, const char *volume)
{
        cleanup_json json_t *key = json_sprintf("%s/%s", driver, volume);

        return key == NULL || json_object_get(set, json_string_value(key)) != NULL;
}

static void put_note(struct kubelet_pods *pods, int driver_fd, const char *volume)
{
        cleanup_json json_t *note = NULL;
        char path[NAME_MAX + sizeof "/" CSI_NOTE];
        const char *handle;
        const char *driver;
        struct error ignored;
        int r;

        (void)snprintf(path, sizeof path, "%s/" CSI_NOTE, volume);
        r = json_file_load(driver_fd, path, JSON_OBJECT, &note, &ignored);
        if (r == -ENOENT)
                return;
        driver = json_string_value(json_object_get(note, "driverName"));
        handle = json_string_value(json_object_get(note, "volumeHandle"));
        if (driver == NULL || handle == NULL)
                pods->known = false;
        else
                put(pods->noted, driver, handle);
}

/* These three go on to the last entry, whatever they find. */
static bool read_volume(int driver_fd, const char *volume, const void *argument)
{
        const struct reading *reading = argument;

        put(reading->pods->volumes, reading->driver, volume);
        put(reading->pods->volumes, "", volume);
        if (strcmp(reading->driver, CSI_DIRECTORY) == 0)
                put_note(reading->pods, driver_fd, volume);
        return false;
}

static bool read_driver(int volumes_fd, const char *driver, const void *argument)
{
        const struct reading *reading = argument;
        const struct reading of_driver = { .pods = reading->pods, .driver = driver };

        if (any(volumes_fd, driver, read_volume, &of_driver))
                reading->pods->known = false;
        return false;
}

static bool read_pod(int pods_fd, const char *pod, const void *argument)
{
        const struct reading *reading = argument;
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%.255s/volumes", pod);
        if (any(pods_fd, path, read_driver, reading))
                reading->pods->known = false;
        return false;
}

/* Returns whether all of it could be read; else what one asks for is looked for by itself. */
static bool read_once(struct kubelet_pods *pods, const struct config *config)
{
        const struct reading reading = { .pods = pods };
        char path[PATH_MAX];

        if (pods->volumes != NULL)
                return pods->known;
        pods->volumes = json_object();
        pods->noted = json_object();
        pods->known = snprintf(path, sizeof path, "%s/pods", config->kubelet_root) < (int)sizeof path;
        if (pods->known && any(AT_FDCWD, path, read_pod, &reading))
                pods->known = false;
        return pods->known;
}

bool kubelet_pods_had(struct kubelet_pods *pods, const struct config *config, const char *driver, const char *volume)
{
        /* any() passes over names that begin so */
        return pods != NULL && read_once(pods, config) && volume[0] != '.' ? is_put(pods->volumes, driver, volume)
                                                                           : kubelet_pod_has(config, driver, volume);
}

bool kubelet_pods_had_staged(struct kubelet_pods *pods, const struct config *config, const char *dir)
{
        cleanup_json json_t *note = read_note_of_stage(config, dir);
        const char *driver = json_string_value(json_object_get(note, "driverName"));
        const char *handle = json_string_value(json_object_get(note, "volumeHandle"));

        if (note == NULL)
                return false;
        return pods != NULL && read_once(pods, config) && driver != NULL && handle != NULL
                       ? is_put(pods->noted, driver, handle)
                       : kubelet_pod_has_staged(config, dir);
}
