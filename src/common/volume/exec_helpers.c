/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/exec_helpers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "block/fs_tools.h"
#include "block/lvm.h"
#include "block/pmem.h"
#include "daemon/id_mappable.h"
#include "pool/record.h"
#include "process/sealed_child.h"
#include "state/config.h"
#include "state/volume_record.h"
#include "volume/kinds.h"
#include "volume/pod_users.h"
#include "volume/request.h"

struct command_line {
        enum verb verb;
        int argc;
        char **argv;
        const struct volume_kind *of_driver;
        char driver[VOLUME_DRIVER_MAX];
        struct asked {              /* written without privileges */
                unsigned requested; /* a kind's place in volume_kinds, from 1; 0: none */
                unsigned guessed;   /* likewise */
                char name[VOLUME_NAME_MAX];
        } * asked;
};

static unsigned begun; /* VOLUME_RUNS_* */

/* mount and unmount do the work of kinds without a device, the other verbs that of kinds with one. */
unsigned volume_exec_helpers_of(const struct volume_kind *kind, enum verb verb)
{
        unsigned runs = kind->has_device == volume_verb_is(verb, VERB_OF_DEVICE) ? kind->runs : 0;

        if (verb == VERB_EXPANDVOLUME || verb == VERB_EXPANDFS)
                runs |= kind->grow_runs;
        return runs;
}

static unsigned runs_of_any(enum verb verb)
{
        unsigned runs = 0;

        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                runs |= volume_exec_helpers_of(volume_kinds[i], verb);
        return runs;
}

static unsigned index_of(const struct volume_kind *kind)
{
        unsigned i = 0;

        while (kind != NULL && volume_kinds[i++] != kind)
                ;
        return i;
}

static const struct volume_kind *kind_at(unsigned i)
{
        unsigned count = 0;

        while (volume_kinds[count] != NULL)
                count++;
        return i > 0 && i <= count ? volume_kinds[i - 1] : NULL;
}

/* In the process without privileges. Returns 0 for a request that the verb refuses, too, with the reason. */
static unsigned ask_options(void *argument)
{
        static struct volume_request request;
        const struct command_line *words = argument;
        struct volume_signs signs;
        struct error ignored;

        if (volume_request_parse(&request, words->verb, words->argc, words->argv, &ignored) < 0 ||
            volume_kind_read(&request, words->of_driver, &signs, &ignored) < 0)
                return 0;
        words->asked->requested = index_of(signs.requested);
        words->asked->guessed = index_of(signs.guessed);
        return text_copy(words->asked->name, sizeof words->asked->name, request.name);
}

static bool reads_stdin(const struct command_line *words)
{
        for (int i = 1; i < words->argc; i++)
                if (strcmp(words->argv[i], "-") == 0)
                        return true;
        return false;
}

static bool is_word(const char *string, size_t length, const char *word)
{
        return word != NULL && strlen(word) == length && memcmp(string, word, length) == 0;
}

/* Whether a string may ask for a kind that runs programs for this verb. */
static bool names_kind(const char *string, size_t length, enum verb verb)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (volume_exec_helpers_of(volume_kinds[i], verb) != 0 &&
                    (is_word(string, length, volume_kinds[i]->word) || is_word(string, length, volume_kinds[i]->flag)))
                        return true;
        return false;
}

#define BLANK " \t\r\n"

/* Whether what follows a key is a string that is not empty, which would say nothing. */
static bool is_text_value(const char *text)
{
        text += strspn(text, BLANK);
        if (*text != ':')
                return false;
        text += 1 + strspn(text + 1, BLANK);
        return text[0] == '"' && text[1] != '"';
}

/* Whether an object or an array begins before the next string: it could have keys of the same name. */
static bool nests(const char *text)
{
        return strcspn(text, "{[") < strcspn(text, "\"");
}

/* A backslash could write a letter in another way. */
bool volume_exec_helpers_clearly_none(enum verb verb, int argc, char **argv)
{
        bool typed = false;
        bool seen = false; /* an argument with strings: the options are one */

        for (int i = 1; i < argc; i++) {
                const char *text = argv[i] + strspn(argv[i], BLANK "{");
                const char *end;

                if (strchr(text, '"') == NULL)
                        continue;
                if (seen || strchr(text, '\\') != NULL || nests(text))
                        return false;
                seen = true;
                for (; (text = strchr(text, '"')) != NULL && (end = strchr(text + 1, '"')) != NULL; text = end + 1) {
                        const size_t length = (size_t)(end - text - 1);

                        if (names_kind(text + 1, length, verb) || nests(end + 1))
                                return false;
                        typed = typed || (is_word(text + 1, length, "type") && is_text_value(end + 1));
                }
        }
        return typed;
}

/* The kind that the verb will choose. */
static unsigned of_signs(const struct command_line *words)
{
        cleanup_volume_record struct volume_record record = {};
        const struct volume_kind *kind;
        char name[VOLUME_NAME_MAX];
        struct volume_signs signs = { .requested = kind_at(words->asked->requested),
                                      .of_driver = words->of_driver,
                                      .name = name,
                                      .guessed = kind_at(words->asked->guessed) };
        struct config config;
        struct error ignored; /* the verb meets it again */
        int r;

        if (signs.requested == NULL) { /* only then records count */
                (void)snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, words->asked->name);
                if (config_load(&config, &ignored) < 0)
                        return 0;
                r = volume_record_peek(config.state_dir, name, words->driver, &record, &ignored);
                if (r < 0 && r != -ENOENT)
                        return runs_of_any(words->verb);
                signs.of_record = r == 0 ? record.kind : NULL;
                signs.state_dir = config.state_dir;
        }
        kind = volume_kind_choose(&signs);
        return kind != NULL ? volume_exec_helpers_of(kind, words->verb) : runs_of_any(words->verb);
}

static unsigned of_options(struct command_line *words)
{
        int answer;

        /* its volumes are of this kind, or ephemeral, which only mount acts on */
        if (words->of_driver != NULL && (words->verb != VERB_MOUNT || words->of_driver->pool_types == NULL))
                return volume_exec_helpers_of(words->of_driver, words->verb);
        if (reads_stdin(words))
                return runs_of_any(words->verb); /* what is read once cannot be read again */
        if (volume_exec_helpers_clearly_none(words->verb, words->argc, words->argv))
                return 0;
        words->asked = unprivileged_memory(sizeof *words->asked);
        answer = words->asked == NULL ? -1 : unprivileged_ask(ask_options, words);
        if (answer < 0)
                return runs_of_any(words->verb);
        return answer == 0 ? 0 : of_signs(words);
}

/* detach gets a name alone. */
static unsigned of_record(const struct command_line *words)
{
        cleanup_volume_record struct volume_record record = {};
        const struct volume_kind *kind;
        struct config config;
        struct error ignored; /* the verb meets it again */
        int r;

        if (words->argc < 2 || config_load(&config, &ignored) < 0)
                return 0;
        r = volume_record_peek(config.state_dir, words->argv[1], words->driver, &record, &ignored);
        if (r == -ENOENT) /* then it is looked for as volume_choose_lost() says */
                return volume_exec_helpers_of(volume_kind_tagged(), words->verb);
        kind = r == 0 ? volume_kind_find(record.kind) : NULL;
        return kind != NULL ? volume_exec_helpers_of(kind, words->verb) : runs_of_any(words->verb);
}

/* unmount gets a directory alone. */
static unsigned of_dir(const struct command_line *words)
{
        struct config config;
        struct error ignored; /* the verb meets it again */
        char dir[PATH_MAX];
        unsigned runs = 0;

        if (words->argc < 2 || text_path_normal(words->argv[1], dir) < 0 || config_load(&config, &ignored) < 0)
                return 0;
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->has_made != NULL && volume_kinds[i]->has_made(config.state_dir, dir))
                        runs |= volume_exec_helpers_of(volume_kinds[i], words->verb) & ~VOLUME_RUNS_FS_TOOLS;
        return runs;
}

/*
 * mount gets kubelet's directory for a pod, which has the volume's name: a copy that was staged for pods that only read has to
 * grow for one that writes.
 */
static bool has_to_grow(const struct command_line *words)
{
        cleanup_provision_record struct provision_record record = {};
        const char *name = words->argc < 2 ? NULL : strrchr(words->argv[1], '/');
        struct config config;
        struct error ignored; /* the verb meets it again */

        return name != NULL && words->driver[0] != '\0' && config_load(&config, &ignored) == 0 &&
               provision_record_find(config.state_dir, name + 1, &record, &ignored) == 0 && record.grows;
}

static unsigned runs_for(struct command_line *words)
{
        if (words->verb == VERB_DETACH)
                return of_record(words) & ~VOLUME_RUNS_FS_TOOLS;
        if (words->verb == VERB_UNMOUNT)
                return of_dir(words);
        if (!volume_verb_is(words->verb, VERB_READS_OPTIONS)) /* a program by another name */
                return VOLUME_RUNS_ALL;
        if (volume_verb_is(words->verb, VERB_OF_FILESYSTEM) || (words->verb == VERB_MOUNT && has_to_grow(words)))
                return of_options(words) | VOLUME_RUNS_FS_TOOLS;
        return of_options(words);
}

int volume_exec_helpers_begin_for(unsigned runs, int argc, char **argv, struct error *error)
{
        static const struct {
                unsigned runs;
                int (*begin)(int argc, char **argv, struct error *error);
        } helpers[] = { { VOLUME_RUNS_FS_TOOLS, fs_tool_begin },
                        { VOLUME_RUNS_LVM, lvm_begin },
                        { VOLUME_RUNS_PMEM, pmem_begin },
                        { VOLUME_RUNS_REMAP, id_mappable_begin } };
        int r = 0;

        begun = runs & VOLUME_RUNS_ALL;
        for (size_t i = 0; r == 0 && i < sizeof helpers / sizeof helpers[0]; i++)
                if ((runs & helpers[i].runs) != 0)
                        r = helpers[i].begin(argc, argv, error);
        return r;
}

int volume_exec_helpers_begin(int argc, char **argv, struct error *error)
{
        const char *slash = strrchr(argv[0], '/');
        struct command_line words = { .verb = volume_verb_find(slash != NULL ? slash + 1 : argv[0]),
                                      .argc = argc,
                                      .argv = argv };
        unsigned runs;

        volume_driver_name(argv[0], words.driver);
        words.of_driver = volume_kind_of_driver(words.driver);
        runs = runs_for(&words);
        if (words.verb == VERB_MOUNT && pod_users_may_count(argc, argv))
                runs |= VOLUME_RUNS_REMAP;
        return volume_exec_helpers_begin_for(runs, argc, argv, error);
}

bool volume_exec_helpers_begun(void)
{
        return begun != 0;
}

bool volume_exec_helpers_suffice(unsigned runs)
{
        return (runs & ~begun) == 0;
}

bool volume_exec_helpers_end_killed(void)
{
        const bool lvm = lvm_end_ordered();
        const bool pmem = pmem_end_ordered();

        fs_tool_end();
        return lvm || pmem;
}

void volume_exec_helpers_end(void)
{
        fs_tool_end();
        lvm_end();
        pmem_end();
}
