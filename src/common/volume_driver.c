/* SPDX-License-Identifier: Apache-2.0 */
#include "volume_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "text.h"

static const char *const words[VERBS] = {
        [VERB_INIT] = "init",
        [VERB_GETVOLUMENAME] = "getvolumename",
        [VERB_ATTACH] = "attach",
        [VERB_WAITFORATTACH] = "waitforattach",
        [VERB_ISATTACHED] = "isattached",
        [VERB_DETACH] = "detach",
        [VERB_MOUNTDEVICE] = "mountdevice",
        [VERB_UNMOUNTDEVICE] = "unmountdevice",
        [VERB_MOUNT] = "mount",
        [VERB_UNMOUNT] = "unmount",
        [VERB_EXPANDVOLUME] = "expandvolume",
        [VERB_EXPANDFS] = "expandfs",
};

/* Types of volumes without a device; a driver of another name may have some with one. */
static const struct ability {
        const char *name;
        bool owned; /* the filesystem is the volume's alone: kubelet may give it a label and a group */
} without_device[] = { { "tmpfs", true }, { "bind", false }, { "nfs", false } };

const char *volume_verb_word(enum verb verb)
{
        return words[verb];
}

enum verb volume_verb_find(const char *word)
{
        int verb = 0;

        while (verb < VERBS && strcmp(words[verb], word) != 0)
                verb++;
        return (enum verb)verb;
}

void volume_driver_name(const char *argv0, char *ret_driver)
{
        const char *end = strrchr(argv0, '/');
        const char *start;

        ret_driver[0] = '\0';
        if (end == NULL)
                return;
        if (end - argv0 >= 6 && strncmp(end - 6, "/verbs", 6) == 0)
                end -= 6;
        for (start = end; start > argv0 && start[-1] != '/'; start--)
                ;
        if (memchr(start, '~', (size_t)(end - start)) != NULL && end - start < VOLUME_DRIVER_MAX) {
                (void)memcpy(ret_driver, start, (size_t)(end - start));
                ret_driver[end - start] = '\0';
        }
}

static const struct ability *find_ability(const char *kind)
{
        for (size_t i = 0; i < sizeof without_device / sizeof without_device[0]; i++)
                if (strcmp(without_device[i].name, kind) == 0)
                        return &without_device[i];
        return NULL;
}

static const struct ability *ability_of(const char *driver)
{
        const char *tilde = strchr(driver, '~');

        return tilde != NULL ? find_ability(tilde + 1) : NULL;
}

bool volume_kind_has_device(const char *kind)
{
        return find_ability(kind) == NULL;
}

bool volume_driver_can(const char *driver, enum verb verb)
{
        switch (verb) {
        case VERB_INIT:
        case VERB_GETVOLUMENAME:
        case VERB_MOUNT:
        case VERB_UNMOUNT:
                return true;
        default:
                return ability_of(driver) == NULL;
        }
}

int volume_driver_init(const char *driver)
{
        const struct ability *ability = ability_of(driver);
        const char *device = ability == NULL ? "true" : "false";
        const char *owned = ability == NULL || ability->owned ? "true" : "false";
        char line[256];
        int length = snprintf(line, sizeof line,
                              "{\"status\":\"Success\",\"capabilities\":{\"attach\":%s,\"selinuxRelabel\":%s,"
                              "\"supportsMetrics\":true,\"fsGroup\":%s,\"requiresFSResize\":%s}}\n",
                              device, owned, owned, device);

        return file_write_all(STDOUT_FILENO, line, (size_t)length) < 0 ? 1 : 0;
}

int volume_driver_not_supported(const char *verb)
{
        char line[256];
        char word[64];
        int length;

        (void)text_copy(word, sizeof word, verb);
        for (char *byte = word; *byte != '\0'; byte++)
                if (*byte < '0' || *byte > 'z' || *byte == '\\')
                        *byte = '?';
        length = snprintf(line, sizeof line, "{\"status\":\"Not supported\",\"message\":\"%s%s\"}\n",
                          word[0] != '\0' ? word : "no verb was given", word[0] != '\0' ? " is not supported" : "");
        (void)file_write_all(STDOUT_FILENO, line, (size_t)length); /* the exit status tells as well */
        return 1;
}

int volume_driver_failed(enum verb verb, int errnum)
{
        char line[256];
        int length = snprintf(line, sizeof line, "{\"status\":\"Failure\",\"message\":\"cannot run %s: %s\"}\n",
                              verb < VERBS ? words[verb] : "the driver", strerrordesc_np(-errnum) ?: "unknown error");

        return file_write_all(STDOUT_FILENO, line, (size_t)length) < 0 ? 1 : 0;
}

int volume_driver_dispatch(const char *driver, enum verb verb, char **argv)
{
        char path[PATH_MAX];
        char name[VOLUME_DRIVER_MAX + 32];
        ssize_t n = readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path - 32);
        char *slash;

        if (n < 0)
                return -errno;
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (slash == NULL)
                return -ENOENT;
        (void)snprintf(slash, sizeof path - (size_t)(slash - path), "/verbs/%s", words[verb]);
        (void)snprintf(name, sizeof name, "%s%s%s", driver, driver[0] != '\0' ? "/" : "", words[verb]);
        argv[1] = name;
        (void)execv(path, argv + 1);
        return -errno;
}
