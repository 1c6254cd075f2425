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
#include "base/reply.h"
#include "base/text.h"

#ifdef SANITIZE
/* The leak checker traces the process, which the filter and the dumpable flag forbid; it would find only what the end
 * of the process frees. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
        return "detect_leaks=0";
}
#endif

void program_options(const struct program *program, int *argc, char ***argv)
{
        const struct usage_option *option = program->usage.options;

        while (*argc > 1 && (*argv)[1] != NULL && option->name != NULL) {
                char *word = *argc > 2 ? (*argv)[2] : NULL;
                int taken = option->words == NULL ? 1 : 2;

                if (strcmp((*argv)[1], option->name) != 0 ||
                    (taken == 2 && (word == NULL || !text_among(word, option->words)))) {
                        option++;
                        continue;
                }
                *option->ret_word = taken == 1 ? option->name : word;
                (*argv)[taken] = (*argv)[0];
                *argv += taken;
                *argc -= taken;
                option = program->usage.options;
        }
}

/* An argument that begins with a dash and is no request from standard input: an option that we do not have. */
static int refuse_option(const struct program *program, const char *text, struct error *error)
{
        for (const struct usage_option *option = program->usage.options; option != NULL && option->name != NULL;
             option++)
                if (strcmp(text, option->name) == 0 && option->words != NULL)
                        return fail_because(error, EINVAL, OPERATION_PARSE, text, "%.64s must be followed by %s or %s",
                                            text, option->words[0], option->words[1]);
        return fail_because(error, EINVAL, OPERATION_PARSE, text, "unknown option %.128s", text);
}

static bool is_option(const char *text)
{
        return text[0] == '-' && text[1] != '\0';
}

/* Print and exit; with a failure if the text cannot be written. */
static void answer(const struct program *program, const char *option)
{
        char version[128];
        int r;

        if (strcmp(option, "--version") == 0) {
                (void)snprintf(version, sizeof version, "%s (flexgraft) " VERSION "\n", program->usage.name);
                r = file_write_all(STDOUT_FILENO, version, strlen(version));
        } else if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
                r = usage_say(&program->usage);
        else if (strcmp(option, "--schema") == 0 && program->usage.schema != NULL)
                r = reply_say(schema_of_program(program->usage.name, program->usage.schema), EXIT_DONE) == EXIT_DONE
                            ? 0
                            : -EIO;
        else
                return;
        exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int program_begin(const struct program *program, int argc, char **argv, struct error *error)
{
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
                        return fail(error, errno, "open", "/dev/null");
        (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write */
        (void)signal(SIGCHLD, SIG_DFL); /* if the parent left it ignored, children could not be waited for */

        if (argc == 2 && is_option(argv[1]))
                answer(program, argv[1]);
        if (argc > 1 && is_option(argv[1]) && (argc == 2 || !program->takes_names))
                return refuse_option(program, argv[1], error);
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
