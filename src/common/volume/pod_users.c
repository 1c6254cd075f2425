/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/pod_users.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

#define PODS "/pods/"
#define VOLUMES "/volumes/"

/* The directory of kubelet, or a volume, may be called "pods", too: below that one are the files of a server, say. */
size_t pod_users_length(const char *dir)
{
        for (const char *pod = dir; (pod = strstr(pod, PODS)) != NULL;) {
                const char *end = strchr(pod + strlen(PODS), '/');

                if (end != NULL && text_starts(end, VOLUMES))
                        return (size_t)(end - dir);
                pod += strlen(PODS) - 1; /* the last slash may begin the next */
        }
        return 0;
}

bool pod_users_are_mapped(const char *dir)
{
        const size_t length = pod_users_length(dir);
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
