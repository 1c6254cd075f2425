/* SPDX-License-Identifier: Apache-2.0 */
#include "state/config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool pool_mark_beside(const char *path)
{
        char mark[PATH_MAX + sizeof POOL_IDENTITY_LINK];
        struct stat st;

        (void)snprintf(mark, sizeof mark, "%.*s/" POOL_IDENTITY_LINK, (int)(strrchr(path, '/') - path), path);
        return fstatat(AT_FDCWD, mark, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
