/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/pod_users.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "state/volume_record.h"

bool pod_users_are_mapped(const char *dir)
{
        const size_t length = volume_record_pod_length(dir);
        char path[PATH_MAX];
        struct stat st;

        return length > 0 && snprintf(path, sizeof path, "%.*s/userns", (int)length, dir) < (int)sizeof path &&
               fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* A backslash may write a letter in another way; what is read from standard input cannot be read twice. */
bool pod_users_may_count(int argc, char **argv)
{
        for (int i = 1; i < argc; i++)
                if (strstr(argv[i], "idMappable") != NULL || strchr(argv[i], '\\') != NULL || strcmp(argv[i], "-") == 0)
                        return true;
        return argc > 1 && pod_users_are_mapped(argv[1]);
}
