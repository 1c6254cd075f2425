/* SPDX-License-Identifier: Apache-2.0 */
#include "block/lvm_filter.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "block/loop.h"
#include "block/loop_guard.h"

#define KEY "global_filter"
#define OTHER_KEY "filter"
#define FILTER_SIZE 65536
#define CONFIGURATION_SIZE (512 * 1024) /* the one that is installed has 120 KB, of comments */

/* ---- in the program */

struct volumes {
        char *text;
        size_t length;
        bool too_many;
};

static int add_volume(const struct loop_device *device, void *argument, struct error *error)
{
        struct volumes *volumes = argument;
        char ignored[LOOP_GUARD_PATH_SIZE];
        int n;

        (void)error;
        /* kubelet makes one over a guard's outer device, to hold what a pod has */
        if (!loop_device_is_volume(device->tag) &&
            (device->file_number == 0 || !loop_guard_path(device->file_number, ignored)))
                return 0;
        n = snprintf(volumes->text + volumes->length, LVM_FILTER_VOLUMES_SIZE - volumes->length, "%s,",
                     device->path + strlen("/dev/loop"));
        volumes->length += (size_t)n;
        volumes->too_many = volumes->length >= LVM_FILTER_VOLUMES_SIZE;
        return volumes->too_many;
}

int lvm_filter_list(char *ret_volumes, struct error *error)
{
        struct volumes volumes = { .text = ret_volumes };
        int r;

        ret_volumes[0] = '\0';
        r = loop_device_each(add_volume, &volumes, error);
        if (volumes.too_many)
                (void)text_copy(ret_volumes, LVM_FILTER_VOLUMES_SIZE, "*");
        return r < 0 ? r : 0;
}

/* ---- in the exec helper */

struct filter {
        char text[FILTER_SIZE];
        size_t length;
};

static void add(struct filter *filter, const char *text)
{
        size_t length = strlen(text);

        if (length >= sizeof filter->text - filter->length)
                return;
        (void)memcpy(filter->text + filter->length, text, length + 1);
        filter->length += length;
}

/* Whatever could end the text, or mean more in a pattern, stands for any character. */
static void reject_path(struct filter *filter, const char *path)
{
        char pattern[PATH_MAX];
        size_t length = 0;

        for (; *path != '\0' && length < sizeof pattern - 1; path++)
                pattern[length++] = (char)(isalnum((unsigned char)*path) || strchr("/_-", *path) != NULL ? *path : '.');
        pattern[length] = '\0';
        add(filter, "\"r|^");
        add(filter, pattern);
        add(filter, "$|\",");
}

/* Numbers from LOOP_GUARD_FIRST, digit by digit: those that begin like the last one before, with a greater digit then. */
static void reject_guards(struct filter *filter)
{
        char last[16];
        const int length = snprintf(last, sizeof last, "%d", LOOP_GUARD_FIRST - 1);

        for (int i = 0; i < length; i++) {
                char pattern[64];

                if (last[i] == '9')
                        continue;
                (void)snprintf(pattern, sizeof pattern, "\"r|/loop%.*s[%c-9]", i, last, last[i] + 1);
                add(filter, pattern);
                for (int j = i + 1; j < length; j++)
                        add(filter, "[0-9]");
                add(filter, "$|\",");
        }
        add(filter, "\"r|/loop");
        for (int i = 0; i <= length; i++)
                add(filter, "[0-9]");
        add(filter, "+$|\",");
}

static int reject_behind(const struct loop_guard *guard, void *argument, struct error *error)
{
        (void)error;
        if (guard->writes)
                reject_path(argument, guard->device);
        return 0;
}

static void reject_volumes(struct filter *filter, const char *volumes)
{
        for (const char *at = volumes; isdigit((unsigned char)*at); at += strcspn(at, ",") + 1) {
                char path[32];

                (void)snprintf(path, sizeof path, "/dev/loop%lu", strtoul(at, NULL, 10));
                reject_path(filter, path);
                if (at[strcspn(at, ",")] == '\0')
                        break;
        }
        if (volumes[0] == '*')
                add(filter, "\"r|/loop[0-9]+$|\",");
}

/* Where the value of a key begins; NULL: it is not set. */
static char *find_value(char *text, const char *key)
{
        for (char *line = text; line != NULL; line = strchr(line, '\n')) {
                char *at;

                line += strspn(line, " \t\n");
                if (text_starts(line, "devices"))
                        line += strlen("devices") + strspn(line + strlen("devices"), " \t{/");
                if (!text_starts(line, key))
                        continue;
                at = line + strlen(key);
                at += strspn(at, " \t");
                if (*at == '=')
                        return at + 1 + strspn(at + 1, " \t\r\n");
        }
        return NULL;
}

/* Past the string that begins here; to the end of the text if it does not end. */
static const char *skip_string(const char *at)
{
        const char quote = *at++;

        while (*at != '\0' && *at != quote)
                at += quote == '"' && *at == '\\' && at[1] != '\0' ? 2 : 1;
        return at + (*at != '\0');
}

char *lvm_filter_value(char *text)
{
        char *value = find_value(text, KEY);
        const char *at = value;
        char *end = value;
        bool is_list;

        if (value == NULL)
                return NULL;
        is_list = *at == '[';
        at += is_list;
        while (*at != '\0' && *at != (is_list ? ']' : '\n')) {
                const char *next = at + 1;

                if (*at == '#') { /* left out */
                        at += strcspn(at, "\n");
                        continue;
                }
                if (*at == '"' || *at == '\'')
                        next = skip_string(at);
                (void)memmove(end, at, (size_t)(next - at));
                end += next - at;
                at = next;
        }
        *end = '\0';
        return value;
}

/* What cannot be read is left to lvm, which cannot read it either. */
static bool read_configuration(const char *path, char text[CONFIGURATION_SIZE])
{
        return file_read(AT_FDCWD, path, text, CONFIGURATION_SIZE) >= 0;
}

static const char *const configurations[] = { "/etc/lvm/lvmlocal.conf", "/etc/lvm/lvm.conf", NULL };

static bool has_other_filter(char text[CONFIGURATION_SIZE])
{
        bool has = false;

        for (const char *const *path = configurations; !has && *path != NULL; path++)
                has = read_configuration(*path, text) && find_value(text, OTHER_KEY) != NULL;
        return has;
}

/*
 * lvm takes a device if the first pattern that matches any of its names accepts that, and udev gives each several
 * (/dev/block/7:3). So nothing is accepted here: what no pattern matches is taken anyway. What the node accepts is a list of
 * its own, as a device must pass both, unless it has both already.
 */
static void add_own(struct filter *filter)
{
        static char text[CONFIGURATION_SIZE];
        const bool apart = !has_other_filter(text);
        const char *value = NULL;

        for (const char *const *path = configurations; value == NULL && *path != NULL; path++)
                value = read_configuration(*path, text) ? lvm_filter_value(text) : NULL;
        /* lvm takes no empty list; and one that does not fit cannot be cut */
        if (value != NULL && (strpbrk(value, "\"'") == NULL || strlen(value) + 64 > FILTER_SIZE - filter->length))
                value = NULL;
        if (value == NULL || apart)
                add(filter, "\"r|/loop-control$|\""); /* no block device is called so: the end of the list */
        if (value != NULL && apart)
                add(filter, "] " OTHER_KEY "=[");
        if (value != NULL)
                add(filter, value);
}

static struct filter *begin(const char *volumes)
{
        static struct filter filter;

        filter.length = 0;
        add(&filter, KEY "=[");
        reject_guards(&filter);
        reject_volumes(&filter, volumes);
        return &filter;
}

const char *lvm_filter_begin(const char *volumes)
{
        return begin(volumes)->text;
}

const char *lvm_filter(const char *volumes)
{
        struct filter *filter = begin(volumes);
        struct error error;

        (void)loop_guard_each(reject_behind, filter, &error); /* without sysfs there is no lvm either */
        add_own(filter);
        add(filter, "]");
        return filter->text;
}
