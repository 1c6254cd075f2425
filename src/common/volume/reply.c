/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/reply.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/file.h"
#include "base/reply.h"
#include "base/schema.h"
#include "process/log.h"
#include "volume/kinds.h"
#include "volume/request.h"

/* kubelet waits until its pipes are closed, and a worker that hangs shares them. */
static int say(json_t *reply)
{
        int r = reply_say(reply, EXIT_DONE);

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                (void)close(fd); /* the reply is written */
        return r;
}

static int not_supported(void)
{
        /* the exit status says the same */
        (void)file_write_all(STDOUT_FILENO, VOLUME_DRIVER_NOT_SUPPORTED, strlen(VOLUME_DRIVER_NOT_SUPPORTED));
        return EXIT_FAILED;
}

int volume_reply_init(const char *driver)
{
        const char *line = volume_driver_init(driver);

        return file_write_all(STDOUT_FILENO, line, strlen(line)) < 0 ? EXIT_FAILED : EXIT_DONE;
}

#define DEVICES (VERB_BIT(ATTACH) | VERB_BIT(WAITFORATTACH))

/* Of volume_driver_init(), which is a line already. */
static const struct key capability_rows[] = {
        { "attach", ALL, ALL, KEY_BOOLEAN, .help = "whether volumes are attached before they are mounted" },
        { "selinuxRelabel", ALL, ALL, KEY_BOOLEAN, .help = "whether kubelet may relabel the files" },
        { "supportsMetrics", ALL, ALL, KEY_BOOLEAN, .help = "whether kubelet may measure the volume" },
        { "fsGroup", ALL, ALL, KEY_BOOLEAN, .help = "whether kubelet may give the files a group" },
        { "requiresFSResize", ALL, ALL, KEY_BOOLEAN, .help = "whether expandfs follows expandvolume" },
};
static const struct key_table capability_keys = KEY_TABLE(capability_rows);

/* clang-format off */
#define SUCCESS(X) \
        X("status", ALL, ALL, json_string(schema_success[0]), KEY_WORD, .words = schema_success, .help = "it is done") \
        X("message", ALL, 0, members_text(answer->message), KEY_ANY, .help = "what else there is to say") \
        X("device", DEVICES, DEVICES, answer->device != NULL ? reply_printable(answer->device) : NULL, \
          KEY_ANY, .help = "path of the device; empty for a volume without one") \
        X("volumeName", VERB_BIT(GETVOLUMENAME), VERB_BIT(GETVOLUMENAME), reply_printable(answer->volume_name), \
          KEY_ANY, .help = "name of the volume") \
        X("attached", VERB_BIT(ISATTACHED), VERB_BIT(ISATTACHED), json_boolean(answer->attached), \
          KEY_BOOLEAN, .help = "whether it has its device on the node") \
        X("volumeNewSize", VERBS_OF_SIZES, 0, \
          answer->new_size_bytes != 0 ? json_integer((json_int_t)answer->new_size_bytes) : NULL, \
          KEY_COUNT, .help = "bytes") \
        X("capabilities", VERB_BIT(INIT), VERB_BIT(INIT), NULL, \
          KEY_OBJECT, .members = &capability_keys, .help = "what the driver can do")
/* clang-format on */

static const struct key success_rows[] = { SUCCESS(MEMBER_ROW) };
const struct key_table volume_success_keys = KEY_TABLE(success_rows);

int volume_reply_success(const struct volume_call *call)
{
        const struct volume_answer *answer = &call->answer;
        struct members members = { .programs = 1U << call->request->verb };

        SUCCESS(MEMBER_PUT)
        return say(members_end(&members));
}

int volume_reply_failure(const struct volume_request *request, const struct error *error)
{
        static char message[3 * PATH_MAX];
        const char *hint = volume_kind_hint(request, error);
        const char *volume = request->name[0] != '\0' ? request->name : request->dir;
        bool told = error->reason[0] != '\0' ? strstr(error->reason, error->subject) != NULL
                                             : strcmp(volume, error->subject) == 0;
        size_t length;

        if (strcmp(error->operation, OPERATION_NOT_SUPPORTED) == 0)
                return not_supported();
        if (!failure_understood(error))
                length = (size_t)snprintf(message, sizeof message, "%s%s%s: " FAILURE_NOT_UNDERSTOOD "%s%s%s",
                                          volume_verb_word(request->verb), volume[0] != '\0' ? " " : "", volume,
                                          told ? "" : error->subject, told ? "" : ": ", error_why(error));
        else
                length = (size_t)snprintf(message, sizeof message, "cannot %s %s: %s%s%s%s%s%s",
                                          volume_verb_word(request->verb), volume[0] != '\0' ? volume : "a volume",
                                          told ? "" : error->subject, told ? "" : ": ", error_why(error),
                                          error->kernel[0] != '\0' ? " (kernel: " : "", error->kernel,
                                          error->kernel[0] != '\0' ? ")" : "");
        if (length < sizeof message - 256)
                (void)snprintf(message + length, sizeof message - length, "%s%s%s [id %s]", hint != NULL ? " (" : "",
                               hint != NULL ? hint : "", hint != NULL ? ")" : "", log_id());
        log_failure("failed: %s (%s: %s)", message, error->operation, strerrorname_np(error->errnum) ?: "no name");
        /* kubelet knows no field "error" */
        return say(failure_object(message, request->tells_errno ? error : NULL, hint));
}

/* ---- what the driver's verbs take and reply, for --help and --schema */

static const char *const not_supported_words[] = { "Not supported", NULL };

static const struct key not_supported_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = not_supported_words, .help = "no volume of this driver has the verb" },
        { "message", ALL, ALL, KEY_ANY, .help = "the same in words" },
};
static const struct key_table no_support = KEY_TABLE(not_supported_keys);

static const struct schema_form replies[] = {
        { "done", ALL, &volume_success_keys },
        { "failed", ALL, &failure_keys },
        { "not supported", ALL, &no_support },
        {},
};

#define ROWS_MAX 64
#define HELP_MAX 512

static enum key_type type_of(enum volume_option_type type)
{
        switch (type) {
        case VOLUME_OPTION_BOOLEAN:
                return KEY_BOOLEAN;
        case VOLUME_OPTION_SIZE:
                return KEY_SIZE;
        default:
                return KEY_STRING;
        }
}

/* One option of a kind: "loop: name of the file (default NAME.img)". */
static void describe(char *text, size_t size, const struct volume_kind *kind, const struct volume_option *option)
{
        (void)snprintf(text, size, "%s: %s%s%s%s", kind->word, option->help,
                       option->fallback != NULL ? " (default: " : "", option->fallback ?: "",
                       option->fallback != NULL ? ")" : "");
}

/* An option of one kind, to a row of its own or to that of the same option of another. */
static void add(struct key_table *table, struct key *rows, const struct volume_kind *kind,
                const struct volume_option *option)
{
        static char helps[ROWS_MAX][HELP_MAX]; /* kept: the rows point to them */
        size_t at = 0;
        size_t length;

        while (at < table->count && strcmp(rows[at].name, option->key) != 0)
                at++;
        if (at == ROWS_MAX)
                return;
        length = strlen(helps[at]);
        if (length > 0 && length < HELP_MAX - 2)
                length += (size_t)snprintf(helps[at] + length, HELP_MAX - length, "; ");
        describe(helps[at] + length, HELP_MAX - length, kind, option);
        rows[at] = (struct key){ option->key, 1, 0, type_of(option->type), .help = helps[at] };
        table->count += at == table->count;
}

/* The options of all kinds of volumes, as rows: made of the rows of the kinds (volume/kind.h) when they are asked for. */
static const struct key_table *option_keys(void)
{
        static struct key rows[ROWS_MAX]; /* kept, with the table: they are made once */
        static struct key_table table = { .rows = rows };

        if (table.count > 0)
                return &table;
        memcpy(rows, volume_request_keys.rows, volume_request_keys.count * sizeof rows[0]);
        table.count = volume_request_keys.count;
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                for (const struct volume_option *option = volume_kinds[i]->options;
                     option != NULL && option->key != NULL; option++)
                        add(&table, rows, volume_kinds[i], option);
        return &table;
}

#define TRAITS(name, word, letters, arguments, traits) TRAITS_OF_##name = (traits),
enum { VOLUME_VERBS(TRAITS) };

#define SCHEMA(name, word, letters, arguments, traits)                                                                 \
        const struct schema volume_schema_##name = {                                                                   \
                .request_of = (TRAITS_OF_##name & VERB_READS_OPTIONS) != 0 ? option_keys : NULL,                       \
                .programs = 1,                                                                                         \
                .texts = true,                                                                                         \
                .reply_programs = VERB_BIT(name),                                                                      \
                .replies = replies,                                                                                    \
        };

VOLUME_VERBS(SCHEMA)
