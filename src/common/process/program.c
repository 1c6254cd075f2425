/* SPDX-License-Identifier: Apache-2.0 */
#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/progress.h"
#include "base/reply.h"
#include "base/text.h"
#include "base/words.h"
#include "process/exec.h"

#ifdef SANITIZE
/* The leak checker traces the process, which the filter and the dumpable flag forbid; it would find only what the end
 * of the process frees. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
        return "detect_leaks=0";
}
#endif

/*
 * A static glibc reads the link /proc/self/exe at each start (_dl_non_dynamic_init(), up to 2.41 at least), to know
 * what $ORIGIN would be in the paths of libraries. Its directory in /proc is made for that, which takes longer than any
 * other call before main(), and these programs load no libraries. -1: unknown.
 */
const char *_dl_get_origin(void);
const char *_dl_get_origin(void)
{
        return (const char *)-1;
}

static const char *const of_all[] = { "--help", "--version", "--schema", NULL };

/* An argument that begins with a dash and is no request from standard input: an option that we do not have. */
static int refuse_option(const struct program *program, const char *text, struct error *error)
{
        struct nearest nearest = { .asked = text };
        char hint[NEAREST_HINT_MAX];

        for (const struct usage_option *option = program->usage.options; option != NULL && option->name != NULL;
             option++)
                if (strcmp(text, option->name) == 0 && option->words != NULL)
                        return fail_because(error, EINVAL, OPERATION_PARSE, text, "%.64s must be followed by %s or %s",
                                            text, option->words[0], option->words[1]);
                else
                        nearest_offer(&nearest, option->name);
        for (size_t i = 0; of_all[i] != NULL; i++)
                nearest_offer(&nearest, of_all[i]);
        nearest_hint(&nearest, hint);
        return fail_because(error, EINVAL, OPERATION_PARSE, text, "unknown option %.128s%s", text, hint);
}

static bool is_option(const char *text)
{
        return text[0] == '-' && text[1] != '\0';
}

static void describe_options(const struct usage_option *option, json_t *list)
{
        for (; list != NULL && option != NULL && option->name != NULL; option++) {
                json_t *entry = json_pack("{s:s, s:s}", "option", option->name, "takes",
                                          option->words != NULL ? "value" : "nothing");

                if (option->words != NULL)
                        (void)json_object_set_new(entry, "words", json_strings(option->words));
                (void)json_array_append_new(list, entry);
        }
}

/* With the options that are no keys among the words. */
static json_t *schema_of(const struct program *program)
{
        json_t *schema = schema_of_program(program->usage.name, program->usage.schema);
        json_t *list = json_object_get(json_object_get(json_object_get(schema, "$defs"), "words"), "options");

        describe_options(program->usage.options, list);
        describe_options(usage_of_words, list);
        return schema;
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
        else if (strcmp(option, "--schema") == 0 && program->usage.schema != NULL) {
                reply_to_people(NULL);
                r = reply_say(schema_of(program), EXIT_DONE) == EXIT_DONE ? 0 : -EIO;
        } else
                return;
        exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* What every program does first. */
static int begin_process(const struct program *program, struct error *error)
{
        reply_begin(program->usage.name);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
                        return fail(error, errno, "open", "/dev/null");
        /* whatever the caller's is: what is made in containers and on shares is for others, too */
        (void)umask(022);
        (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write */
        (void)signal(SIGXFSZ, SIG_IGN); /* so is a file that is larger than the caller's limit */
        (void)signal(SIGCHLD, SIG_DFL); /* if the parent left it ignored, children could not be waited for */
        return 0;
}

static int drop_privileges(const struct program *program, int argc, char **argv, struct error *error)
{
        int r = program->before_drop != NULL ? program->before_drop(argc, argv, error) : 0;

        if (r < 0)
                return r;
        return program->rootless ? privileges_drop_to_available(program->privileges, error)
                                 : privileges_drop(program->privileges, error);
}

int program_begin(const struct program *program, int argc, char **argv, struct error *error)
{
        int r = begin_process(program, error);

        if (r < 0)
                return r;
        if (argc == 2 && is_option(argv[1]))
                answer(program, argv[1]);
        if (argc > 1 && !program->takes_options && is_option(argv[1]) && (argc == 2 || !program->takes_names))
                return refuse_option(program, argv[1], error);
        return drop_privileges(program, argc, argv, error);
}

/* ---- words */

static const struct program *running; /* for offer_options() */

static void offer_options(void *nearest)
{
        const struct usage_option *const lists[] = { usage_of_words, running->usage.options };

        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                for (const struct usage_option *option = lists[i]; option != NULL && option->name != NULL; option++)
                        nearest_offer(nearest, option->name);
        for (size_t i = 0; of_all[i] != NULL; i++)
                nearest_offer(nearest, of_all[i]);
}

/* An option of the list, "--format prometheus" or "--format=prometheus". Returns how many arguments it takes. */
static int take_own(const struct program *program, const struct usage_option *option, const char *text,
                    const char *next, struct error *error)
{
        for (; option != NULL && option->name != NULL; option++) {
                size_t length = strlen(option->name);
                const char *word = next;

                if (!text_starts(text, option->name) || (text[length] != '\0' && text[length] != '='))
                        continue;
                if (text[length] == '=')
                        word = text + length + 1;
                if (option->words == NULL && text[length] == '=')
                        return fail_because(error, EINVAL, OPERATION_PARSE, option->name, "%s takes no value",
                                            option->name);
                if (option->words != NULL && (word == NULL || !text_among(word, option->words)))
                        return refuse_option(program, option->name, error);
                *option->ret_word = option->words == NULL ? option->name : word;
                return option->words == NULL || text[length] == '=' ? 1 : 2;
        }
        return 0;
}

/* The program's own options out of the arguments, up to "--". */
static int take_own_all(const struct program *program, int *argc, char **argv, struct error *error)
{
        int kept = 1;
        int i = 1;

        while (i < *argc && strcmp(argv[i], "--") != 0) {
                const char *next = i + 1 < *argc ? argv[i + 1] : NULL;
                int r = take_own(program, program->usage.options, argv[i], next, error);

                if (r == 0)
                        r = take_own(program, usage_of_words, argv[i], next, error);
                if (r < 0)
                        return r;
                if (r == 0 && is_option(argv[i]))
                        answer(program, argv[i]);
                if (r == 0)
                        argv[kept++] = argv[i++];
                i += r;
        }
        while (i < *argc)
                argv[kept++] = argv[i++];
        argv[kept] = NULL;
        *argc = kept;
        return 0;
}

/* Behind an option that was refused, too: --json says how to tell that. */
static void look_for_json(char **argv)
{
        for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
                if (strcmp(*argv, "--json") == 0)
                        usage_json = *argv;
}

/* The request that the words say, as JSON: then there is one parser of requests. */
static int read_words(const struct program *program, int *argc, char ***argv, struct error *error)
{
        static char *request[3]; /* until the program ends */
        const struct schema *schema = program->usage.schema;
        const struct words words = { .program = program->usage.name,
                                     .table = schema_request(schema),
                                     .programs = schema->programs,
                                     .offer = offer_options };
        cleanup_json json_t *json = NULL;
        int r;

        running = program;
        if (words_are_json(*argc, *argv))
                return 0; /* key_read_request() refuses what follows it */
        if ((r = words_take(&words, *argc, *argv, &json, error)) < 0)
                return r;
        request[0] = (*argv)[0];
        if ((request[1] = json_text_make(json)) == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "the request");
        *argc = 2;
        *argv = request;
        return 0;
}

int program_begin_words(const struct program *program, int *argc, char ***argv, struct error *error)
{
        int r = begin_process(program, error);

        if (r < 0)
                return r;
        if (isatty(STDOUT_FILENO) == 1)
                reply_to_people(program->usage.schema->people);
        r = take_own_all(program, argc, *argv, error);
        if (r < 0)
                look_for_json(*argv + 1);
        if (usage_json != NULL)
                reply_to_people(NULL);
        if (usage_verbose != NULL)
                verbose_begin(program->usage.name);
        if (r < 0)
                return r;
        if (program->usage.options == usage_of_long) {
                progress_begin(program->usage.name, usage_progress);
                interrupt_begin();
        }
        if (program->before_drop == NULL)
                return (r = drop_privileges(program, *argc, *argv, error)) < 0 ? r
                                                                               : read_words(program, argc, argv, error);
        if ((r = read_words(program, argc, argv, error)) < 0)
                return r;
        return drop_privileges(program, *argc, *argv, error);
}

bool program_find_sibling(const char *name, char *ret_path)
{
        static const char *const directories[] = { "", "/verbs", "/..", "/../libexec/flexgraft",
                                                   "/../libexec/flexgraft/verbs" };
        char self[PATH_MAX];
        struct stat st;

        if (exec_own_directory(self) < 0)
                return false;
        for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
                if (snprintf(ret_path, PATH_MAX, "%s%s/%s", self, directories[i], name) < PATH_MAX &&
                    fstatat(AT_FDCWD, ret_path, &st, 0) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0)
                        return true;
        return false;
}
