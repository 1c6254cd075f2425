/* SPDX-License-Identifier: Apache-2.0 */
#include "host/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/schema.h"
#include "host/probes.h"
#include "host/wanted.h"
#include "process/log.h"
#include "process/worker.h"
#include "provision/provision.h"

#define ROW_MS 5000 /* for one row; a pool may take all that is left */
#define MESSAGE_MAX 4096

struct row_job {
        const struct host_row *row;
        struct host_finding *finding;
};

struct read_job {
        const json_t *kinds;
        struct wanted *wanted;
};

struct pool_job {
        const struct config *config;
        struct wanted_file *file;
};

int host_begin(int argc, char **argv, struct error *error)
{
        int r = provision_begin(argc, argv, error);

        return r < 0 ? r : programs_begin(error);
}

/* ---- workers */

static int read_wanted(void *argument, struct error *error)
{
        struct read_job *job = argument;

        return wanted_read(job->kinds, job->wanted, error);
}

static int probe_row(void *argument, struct error *error)
{
        struct row_job *job = argument;

        (void)error;
        job->row->probe(job->row->argument, job->finding);
        return 0;
}

static int measure_pool(void *argument, struct error *error)
{
        struct pool_job *job = argument;

        (void)error;
        wanted_pool_measure(job->config, job->file);
        return 0;
}

/* A worker for one row. What is left of a killed one's finding is not taken. */
static void run_limited(worker_function *function, void *job, struct host_finding *finding, int64_t deadline_ms)
{
        struct error error = {};

        if (clock_now_ms() >= deadline_ms)
                host_found(finding, HOST_UNKNOWN, "not tried: there was no time left");
        else if (worker_run(function, job, deadline_ms, &error) == -ETIMEDOUT)
                host_found(finding, HOST_UNKNOWN, "no answer in time: a filesystem, a device or a program hangs");
        else if (error.errnum != 0)
                host_found(finding, HOST_UNKNOWN, "%s", error_why(&error));
}

/* ---- the reply */

static const char *const statuses[] = { "Success", "Failure", NULL };

/* clang-format off */
#define ROW(X) \
        X("name", 1, 1, json_string(name), KEY_ANY, .help = "what was looked at") \
        X("group", 1, 1, json_string(group), KEY_ANY, .help = "what it is one of") \
        X("state", 1, 1, json_string(host_state_words[finding->state]), \
          KEY_WORD, .words = host_state_words, .help = "unknown: it could not be tried") \
        X("required", 1, 1, json_boolean(required), \
          KEY_BOOLEAN, .help = "whether the configuration, or every program, needs it") \
        X("neededBy", 1, 1, needed_by, KEY_ARRAY, .help = "what needs it, or is better with it") \
        X("found", 1, 1, reply_printable(finding->found), KEY_ANY, .help = "how that was seen") \
        X("advice", 1, 0, finding->state != HOST_OK && advice != NULL ? json_string(advice) : NULL, \
          KEY_ANY, .help = "what to do about it")

#define REPLY(X) \
        X("status", 1, 1, json_string(statuses[ready ? 0 : 1]), \
          KEY_WORD, .words = statuses, .help = "Failure: something required is missing") \
        X("message", 1, 0, ready ? NULL : message_of(lacking), KEY_ANY, .help = "of a failure, one sentence") \
        X("ready", 1, 1, json_boolean(ready), \
          KEY_BOOLEAN, .help = "whether everything required is there, as far as is known") \
        X("missing", 1, 0, ready ? NULL : json_incref(lacking), \
          KEY_ARRAY, .help = "the names of the rows that are required and missing") \
        X("rows", 1, 1, rows, KEY_ARRAY, .members = &row_keys, .help = "what was looked at")
/* clang-format on */

static const struct key row_rows[] = { ROW(MEMBER_ROW) };
static const struct key_table row_keys = KEY_TABLE(row_rows);
static const struct key reply_rows[] = { REPLY(MEMBER_ROW) };
const struct key_table host_reply_keys = KEY_TABLE(reply_rows);

/* Adds a row; takes needed_by. Returns whether the configuration needs it and it is missing. */
static bool add_row(json_t *rows, const char *name, const char *group, const struct host_finding *finding,
                    bool required, json_t *needed_by, const char *advice)
{
        struct members members = { .programs = 1 };

        if (finding->refused)
                advice = "run host-check as root, with all capabilities";
        ROW(MEMBER_PUT)
        (void)json_array_append_new(rows, members_end(&members));
        return required && finding->state == HOST_MISSING;
}

/* "the configuration needs what is missing here: lvm, pool big": the names in a row of the reply each. */
static void add_name(json_t *names, bool lacks, const char *name)
{
        if (lacks)
                (void)json_array_append_new(names, reply_printable(name));
}

static json_t *message_of(const json_t *names)
{
        char text[MESSAGE_MAX] = "the configuration needs what is missing here: ";
        const json_t *name;
        size_t i;

        json_array_foreach (names, i, name) {
                size_t length = strlen(text);

                (void)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? ", " : "", json_string_value(name));
        }
        return reply_printable(text);
}

static json_t *reply_of(const struct wanted *wanted, const struct host_finding *findings)
{
        cleanup_json json_t *lacking = json_array();
        struct members members = { .programs = 1 };
        json_t *rows = json_array();
        bool ready;

        for (size_t i = 0; i < wanted->file_count; i++) {
                const struct wanted_file *file = &wanted->files[i];

                add_name(lacking,
                         add_row(rows, file->name, "configuration", &file->finding, /* required= */ true,
                                 json_pack("[s]", "the configuration"), file->advice),
                         file->name);
        }
        for (enum need need = 0; need < NEEDS; need++) {
                const struct host_row *row = &host_rows[need];
                bool required;
                json_t *by = wanted_by(wanted, need, &required);

                bool untried = findings[need].state == HOST_UNKNOWN && row->untried != NULL;

                add_name(lacking,
                         add_row(rows, row->name, row->group, &findings[need], required, by,
                                 untried ? row->untried : row->advice),
                         row->name);
        }
        ready = json_array_size(lacking) == 0;
        REPLY(MEMBER_PUT)
        return members_end(&members);
}

int host_check(const struct host_request *request, const struct privileges *privileges, json_t **ret_reply,
               struct error *error)
{
        static struct wanted wanted;
        static struct host_finding findings[NEEDS];
        const int64_t end_ms = clock_now_ms() + (int64_t)request->timeout_seconds * 1000;
        struct read_job read = { .kinds = request->kinds, .wanted = &wanted };
        int r;

        host_privileges_look(privileges);
        r = worker_run(read_wanted, &read, end_ms, error);
        log_begin("host-check", wanted.config.log[0] != '\0' ? wanted.config.log : "syslog");
        if (r < 0)
                return r;
        hooks_look_in(wanted.config.cdi_dir);
        for (enum need need = 0; need < NEEDS; need++) {
                struct row_job job = { .row = &host_rows[need], .finding = &findings[need] };
                int64_t row_end_ms = clock_now_ms() + ROW_MS;

                run_limited(probe_row, &job, &findings[need], row_end_ms < end_ms ? row_end_ms : end_ms);
        }
        programs_end();
        for (size_t i = 0; i < wanted.file_count; i++) {
                struct pool_job job = { .config = &wanted.config, .file = &wanted.files[i] };

                if (wanted.files[i].pool)
                        run_limited(measure_pool, &job, &wanted.files[i].finding, end_ms);
        }
        provision_end();
        *ret_reply = reply_of(&wanted, findings);
        json_decref(wanted.needs);
        return 0;
}
