/* SPDX-License-Identifier: Apache-2.0 */
#include "block/loop_guard.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

bool loop_name(uint64_t number, char ret_name[LOOP_NAME_SIZE])
{
        char path[64];
        char link[PATH_MAX];
        const char *name;
        ssize_t n;

        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(number), minor(number));
        n = readlink(path, link, sizeof link - 1);
        if (n < 0)
                return false;
        link[n] = '\0';
        name = strrchr(link, '/');
        return name != NULL && text_starts(name, "/loop") && text_copy(ret_name, LOOP_NAME_SIZE, name + 1);
}

bool loop_backing_path(const char *name, char *ret_path)
{
        char path[64];

        (void)snprintf(path, sizeof path, "/sys/block/%.16s/loop/backing_file", name);
        if (file_read(AT_FDCWD, path, ret_path, PATH_MAX) < 0)
                return false;
        ret_path[strcspn(ret_path, "\n")] = '\0';
        return true;
}
