/* SPDX-License-Identifier: Apache-2.0 */
#include "block/loop_guard.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

bool loop_backing_path(const char *name, char *ret_path)
{
        char path[64];

        (void)snprintf(path, sizeof path, "/sys/block/%.16s/loop/backing_file", name);
        if (file_read(AT_FDCWD, path, ret_path, PATH_MAX) < 0)
                return false;
        ret_path[strcspn(ret_path, "\n")] = '\0';
        return true;
}
