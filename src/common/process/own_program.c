/* SPDX-License-Identifier: Apache-2.0 */
#include "process/own_program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool program_find_sibling(const char *name, char *ret_path)
{
        static const char *const places[] = { "", "/verbs", "/..", "/../libexec/flexgraft",
                                              "/../libexec/flexgraft/verbs" };
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        char *slash;

        if (n <= 0)
                return false;
        self[n] = '\0';
        slash = strrchr(self, '/');
        *slash = '\0';
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
                if (snprintf(ret_path, PATH_MAX, "%s%s/%s", self, places[i], name) < PATH_MAX &&
                    access(ret_path, X_OK) == 0)
                        return true;
        return false;
}
