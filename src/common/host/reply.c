/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - the request of host-check, and its replies as they are printed (host/check.h). */
#include <errno.h>
#include <stdio.h>

#include "base/failure.h"
#include "base/json.h"
#include "base/key.h"
#include "base/people.h"
#include "base/reply.h"
#include "host/check.h"
#include "host/finding.h"
#include "host/wanted.h"
#include "state/state_dir.h"

/* ---- the request */

static int take_kinds(void *object, const char *name, const json_t *value, struct error *error)
{
        struct host_request *request = object;
        cleanup_json json_t *words = wanted_kind_words();
        const json_t *kind;
        size_t i;

        if (!json_is_array(value))
                return fail_because(error, EINVAL, OPERATION_PARSE, name, "%s: must be an array of words", name);
        json_array_foreach (value, i, kind) {
                const json_t *word;
                size_t j;
                bool known = false;

                json_array_foreach (words, j, word)
                        known = known || json_equal(word, kind);
                if (!known)
                        return fail_because(error, EINVAL, OPERATION_PARSE, name,
                                            "%s: entry %zu is no kind of mount or volume; --schema lists them", name,
                                            i + 1);
        }
        request->kinds = value;
        return 0;
}

static json_t *schema_of_kinds(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:s, s:{s:o}}", "type", "array", "items", "enum", wanted_kind_words());
}

static const struct key keys[] = {
        { "kinds", 1, 0, KEY_OWN, .take = take_kinds, .schema = schema_of_kinds, .positional = 1,
          .spelling = SPELLED_LIST,
          .help = "kinds of mounts and volumes that must work, besides what the configuration names: [\"nfs\", "
                  "\"lvm\"]" },
        { "timeoutSeconds", 1, 0, KEY_INTEGER, 1, 3600, .offset = offsetof(struct host_request, timeout_seconds),
          .preset = "30", .help = "give up after so many seconds; what was not tried by then is unknown" },
};
static const struct key_table request_table = KEY_TABLE(keys);

int host_parse(int argc, char **argv, struct host_request *ret_request, struct error *error)
{
        int r;

        *ret_request = (struct host_request){ .timeout_seconds = 30 };
        r = key_read_request(argc, argv, &ret_request->json, error);
        return r < 0 ? r : key_take_all(&request_table, 1, ret_request, ret_request->json, error);
}

/* ---- the reply */

static const struct schema_form replies[] = { { "checked", 1, &host_reply_keys }, { "failed", 1, &failure_keys }, {} };

static const struct people_form people[] = { {} }; /* the table below */

const struct schema host_schema = { .request = &request_table, .programs = 1, .replies = replies, .people = people };

/* ---- the table */

static const char *const heads[] = { "STATE", "REQUIRED", "NAME", "FOUND, AND WHAT TO DO" };

static void cell(const void *argument, size_t row, size_t column, char *ret_text, size_t size)
{
        static const char *const members[] = { "state", "", "name", "found" };
        const json_t *object = json_array_get(argument, row);
        const char *advice = json_string_value(json_object_get(object, "advice"));

        if (column == 1)
                (void)snprintf(ret_text, size, "%s", json_is_true(json_object_get(object, "required")) ? "yes" : "no");
        else
                (void)snprintf(ret_text, size, "%s%s%s", json_string_value(json_object_get(object, members[column])),
                               column == 3 && advice != NULL ? "; " : "", column == 3 && advice != NULL ? advice : "");
}

int host_say(json_t *reply, bool table)
{
        const json_t *rows = json_object_get(reply, "rows");
        bool ready = json_is_true(json_object_get(reply, "ready"));
        int r;

        if (!table)
                return reply_say(reply, ready ? EXIT_DONE : EXIT_FAILED);
        r = table_say(heads, sizeof heads / sizeof heads[0], json_array_size(rows), cell, rows);
        json_decref(reply);
        return r < 0 || !ready ? EXIT_FAILED : EXIT_DONE;
}

int host_say_failure(const struct error *error, bool table)
{
        bool understood = failure_exit_status(error) == EXIT_FAILED;
        char message[PATH_MAX + 1024];

        (void)snprintf(message, sizeof message, "%s%s%s", table ? "host-check: " : "",
                       understood ? "cannot check this node: " : FAILURE_NOT_UNDERSTOOD, error_why(error));
        return table ? failure_complain(message, sizeof message, error)
                     : failure_say(message, error, failure_hint(error, /* of_kind= */ NULL, state_all_hints));
}
