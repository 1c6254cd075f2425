/* SPDX-License-Identifier: Apache-2.0 */
#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#ifdef SANITIZE
/* The leak checker traces the process, which the filter and the dumpable flag forbid; it would find only what the end
 * of the process frees. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
        return "detect_leaks=0";
}
#endif

/* Print and exit; with a failure if the text cannot be written. */
static void print_and_exit(const char *const *parts)
{
        int r = 0;

        for (; r == 0 && *parts != NULL; parts++)
                r = file_write_all(STDOUT_FILENO, *parts, strlen(*parts));
        exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int program_begin(const struct program *program, int argc, char **argv, struct error *error)
{
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
                        return fail(error, errno, "open", "/dev/null");
        (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write */
        (void)signal(SIGCHLD, SIG_DFL); /* if the parent left it ignored, children could not be waited for */

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                print_and_exit((const char *const[]){ program->name, " (flexgraft) " VERSION "\n", NULL });
        if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                print_and_exit((const char *const[]){ "Usage: ", program->name, " ",
                                                      program->arguments != NULL ? program->arguments : "REQUEST | -",
                                                      " | --help | --version\n", program->help, NULL });
        if (program->before_drop != NULL) {
                int r = program->before_drop(argc, argv, error);

                if (r < 0)
                        return r;
        }
        return privileges_drop(program->privileges, error);
}

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
