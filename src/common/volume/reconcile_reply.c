/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/reconcile_reply.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/reply.h"
#include "process/log.h"

#define REQUEST_MAX_BYTES ((size_t)65536)

int reconcile_parse(struct reconcile *ret_reconcile, int argc, char **argv, struct error *error)
{
        cleanup_json json_t *request = NULL;
        const char *key;
        json_t *value;
        int r = 0;

        ret_reconcile->actions = json_array();
        ret_reconcile->problems = json_array();
        if (argc > 2)
                return json_value_refuse(error, "the request", "one argument at most");
        if (argc == 2)
                r = strcmp(argv[1], "-") == 0 ? json_text_parse_stdin(REQUEST_MAX_BYTES, &request, error)
                                              : json_text_parse(argv[1], strlen(argv[1]), &request, error);
        if (r < 0)
                return r;
        if (request != NULL && !json_is_object(request))
                return json_value_refuse(error, "the request", "must be a JSON object");
        json_object_foreach (request, key, value) {
                if (strcmp(key, "dryRun") != 0)
                        return json_value_refuse(error, key, "unknown key");
                if (!json_is_boolean(value))
                        return json_value_refuse(error, key, "must be true or false");
                ret_reconcile->dry_run = json_is_true(value);
        }
        return 0;
}

void reconcile_did(struct reconcile *reconcile, const char *action, const char *subject)
{
        (void)json_array_append_new(reconcile->actions,
                                    json_pack("{s:s, s:o}", "action", action, "subject", reply_printable(subject)));
        log_say("%s%s: %s", reconcile->dry_run ? "would have " : "", action, subject);
}

void reconcile_problem(struct reconcile *reconcile, const char *subject, const struct error *error)
{
        char text[PATH_MAX + 1024];

        (void)snprintf(text, sizeof text, "%.1000s: %s", subject, error_why(error));
        (void)json_array_append_new(reconcile->problems, reply_printable(text));
        log_say("problem: %s", text);
}

int reconcile_status(const struct reconcile *reconcile, const struct error *error)
{
        bool understood = error == NULL || strcmp(error->operation, OPERATION_PARSE) != 0;
        json_t *reply = json_pack("{s:s, s:O?, s:O?}", "status", error == NULL ? "Success" : "Failure", "actions",
                                  reconcile->actions, "problems", reconcile->problems);

        if (reconcile->dry_run)
                (void)json_object_set_new(reply, "dryRun", json_true());
        if (error != NULL) {
                char message[PATH_MAX + 1024];
                const char *hint = failure_hint(error);

                (void)snprintf(message, sizeof message, "%.2000s: %s%s%s%s [id %s]", error->subject, error_why(error),
                               hint != NULL ? " (" : "", hint != NULL ? hint : "", hint != NULL ? ")" : "", log_id());
                log_say("failed: %s", message);
                (void)json_object_set_new(reply, "message", reply_printable(message));
        }
        return reply_say(reply, error == NULL ? EXIT_DONE : understood ? EXIT_FAILED : EXIT_NOT_UNDERSTOOD);
}
