/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/json.h"
#include "base/key.h"
#include "base/reply.h"
#include "base/schema.h"
#include "pool/pool_kind.h"
#include "process/log.h"

static const struct key keys[] = {
        { "dryRun", 1, 0, KEY_BOOLEAN, .offset = offsetof(struct reconcile, dry_run),
          .help = "true: change nothing, only reply with what would be done" },
};
static const struct key_table request_table = KEY_TABLE(keys);

static const char *const statuses[] = { "Success", "Failure", NULL };

/* clang-format off */
#define ACTION(X) \
        X("action", 1, 1, json_string(action), KEY_ANY, .help = "what was done, or would be") \
        X("subject", 1, 1, reply_printable(subject), KEY_ANY, .help = "to what")

#define REPLY(X) \
        X("status", 1, 1, json_string(statuses[message == NULL ? 0 : 1]), \
          KEY_WORD, .words = statuses, .help = "whether the node could be looked at") \
        X("actions", 1, 0, json_incref(reconcile->actions), \
          KEY_ARRAY, .members = &action_table, .help = "what was done, or would be") \
        X("problems", 1, 0, json_incref(reconcile->problems), KEY_ARRAY, .help = "what could not be done, and why") \
        X("dryRun", 1, 0, members_true(reconcile->dry_run), KEY_BOOLEAN, .help = "true: nothing was changed") \
        X("message", 1, 0, message != NULL ? reply_printable(message) : NULL, \
          KEY_ANY, .help = "of a failure, one sentence") \
        X("error", 1, 0, message != NULL ? failure_detail(error, pool_kind_hint(error)) : NULL, \
          KEY_OBJECT, .members = &failure_detail_keys, .help = "the same, for programs")
/* clang-format on */

static const struct key action_rows[] = { ACTION(MEMBER_ROW) };
static const struct key_table action_table = KEY_TABLE(action_rows);
static const struct key reply_rows[] = { REPLY(MEMBER_ROW) };
static const struct key_table reply_table = KEY_TABLE(reply_rows);

static const struct schema_form replies[] = { { "reconciled", 1, &reply_table }, {} };

static const struct people_form people[] = {
        { .rows = "actions", .line = "{action}: {subject}" },
        { .rows = "problems", .line = "problem: {}" },
        { .when = "!message,!actions,!problems", .line = "records and node agree" },
        {},
};

const struct schema reconcile_schema = {
        .request = &request_table, .programs = 1, .replies = replies, .people = people
};

int reconcile_parse(struct reconcile *ret_reconcile, int argc, char **argv, struct error *error)
{
        cleanup_json json_t *request = NULL;
        int r;

        ret_reconcile->actions = json_array();
        ret_reconcile->problems = json_array();
        r = key_read_request(argc, argv, &request, error);
        return r < 0 ? r : key_take_all(&request_table, 1, ret_reconcile, request, error);
}

void reconcile_did(struct reconcile *reconcile, const char *action, const char *subject)
{
        struct members members = { .programs = 1 };

        ACTION(MEMBER_PUT)
        (void)json_array_append_new(reconcile->actions, members_end(&members));
        log_say("%s%s: %s", reconcile->dry_run ? "would have " : "", action, subject);
}

void reconcile_problem(struct reconcile *reconcile, const char *subject, const struct error *error)
{
        char text[PATH_MAX + 1024];

        (void)snprintf(text, sizeof text, "%.1000s: %s", subject, error_why(error));
        (void)json_array_append_new(reconcile->problems, reply_printable(text));
        log_failure("problem: %s", text);
}

/* message: of the error; NULL: there is none. What was done before is told with it. */
static json_t *reply_of(const struct reconcile *reconcile, const char *message, const struct error *error)
{
        struct members members = { .programs = 1 };

        REPLY(MEMBER_PUT)
        return members_end(&members);
}

int reconcile_status(const struct reconcile *reconcile, const struct error *error)
{
        char message[PATH_MAX + 1024];
        bool understood;

        if (error == NULL)
                return reply_say(reply_of(reconcile, /* message= */ NULL, /* error= */ NULL), EXIT_DONE);
        understood = failure_understood(error);
        (void)snprintf(message, sizeof message, "%.2000s%s%s", understood ? error->subject : FAILURE_NOT_UNDERSTOOD,
                       understood ? ": " : "", error_why(error));
        log_failure("failed: %s", message);
        return reply_say(reply_of(reconcile, message, error), failure_exit_status(error));
}
