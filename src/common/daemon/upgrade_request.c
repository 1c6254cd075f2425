/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/upgrade_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/schema.h"
#include "daemon/upgrade.h"
#include "process/worker.h"
#include "state/config.h"
#include "state/state_dir.h"

#define TIMEOUT_MS 120000 /* for one mount: what of it takes long has limits of its own (src/remap/heir.c) */

static const struct hint hints[] = {
        { OPERATION_UPGRADE, EPROTONOSUPPORT,
          "the old program goes on; a mount that is made anew has the installed one" },
        { OPERATION_UPGRADE, 0, "the old program goes on; run remap-upgrade again" },
        { OPERATION_PIDFD_GETFD, EPERM, "it needs kernel.yama.ptrace_scope below 3; the old program goes on" },
        { OPERATION_READ, EXDEV, "run it in the node's pid namespace, with its /proc" },
        { OPERATION_START_REMAP_DAEMON, ENOENT, "install remap-daemon with make install" },
        {},
};
static const struct hint *const all_hints[] = { hints, state_hints, failure_hints, NULL };

static const struct key keys[] = {
        { "dryRun", 1, 0, KEY_BOOLEAN, .offset = offsetof(struct upgrade_request, dry_run),
          .help = "true: change nothing, only reply which program serves each mount" },
};
static const struct key_table request_table = KEY_TABLE(keys);

static const char *const statuses[] = { "Success", "Failure", NULL };

enum outcome { CURRENT, UPGRADED, OLD };
static const char *const outcomes[] = { "current", "upgraded", "old", NULL };

/* One that was found. */
struct seen {
        const struct upgrade_mount *mount;
        enum outcome outcome;
        pid_t pid;                 /* of the keeper now */
        const struct error *error; /* NULL: nothing was to be done, or it worked */
};

/* clang-format off */
#define MOUNT(X) \
        X("pid", 1, 1, json_integer(seen->pid), KEY_COUNT, .help = "that of remap-keeper") \
        X("container", 1, 0, seen->mount->container > 0 ? json_integer(seen->mount->container) : NULL, \
          KEY_COUNT, .help = "the container's first process; absent where it is served to the node") \
        X("version", 1, 0, seen->mount->version[0] != '\0' ? reply_printable(seen->mount->version) : NULL, \
          KEY_ANY, .help = "of the program that served it before; absent where that is too old to say") \
        X("program", 1, 1, json_string(outcomes[seen->outcome]), KEY_WORD, .words = outcomes, \
          .help = "what serves it: the installed one, or a newer one of another install, as before (current); the " \
                  "installed one since now (upgraded); or still an old one") \
        X("problem", 1, 0, seen->error != NULL ? make_problem(seen->error) : NULL, \
          KEY_ANY, .help = "why it is still the old one, and what to do")

#define REPLY(X) \
        X("status", 1, 1, json_string(statuses[job->failed > 0]), \
          KEY_WORD, .words = statuses, .help = "Failure: one at least could not be upgraded") \
        X("mounts", 1, 1, json_incref(job->mounts), KEY_ARRAY, .members = &mount_table, .help = "all that are served") \
        X("dryRun", 1, 0, members_true(job->request->dry_run), KEY_BOOLEAN, .help = "true: nothing was changed") \
        X("message", 1, 0, job->failed > 0 ? make_message(job) : NULL, KEY_ANY, .help = "of a failure, one sentence") \
        X("error", 1, 0, json_incref(job->detail), KEY_OBJECT, .members = &failure_detail_keys, \
          .help = "of a failure, the first problem, for programs")
/* clang-format on */

struct job {
        const struct upgrade_request *request;
        const char *state_dir;
        json_t *mounts; /* owned */
        json_t *detail; /* of the first that failed; owned; NULL: none did */
        int failed;
        bool stuck;                        /* the helper process may not answer any more: no other mount is tried */
        const struct upgrade_mount *mount; /* of a worker */
        pid_t pid;
};

static json_t *make_problem(const struct error *error)
{
        char text[2048];
        const char *hint = failure_hint(error, /* of_kind= */ NULL, all_hints);

        (void)snprintf(text, sizeof text, "%.512s%s%s%s", error_why(error), hint != NULL ? " (" : "",
                       hint != NULL ? hint : "", hint != NULL ? ")" : "");
        return reply_printable(text);
}

static json_t *make_message(const struct job *job)
{
        char text[128];

        (void)snprintf(text, sizeof text, "%d of %zu mounts: the old program serves them still", job->failed,
                       json_array_size(job->mounts));
        return json_string(text);
}

static const struct key mount_rows[] = { MOUNT(MEMBER_ROW) };
static const struct key_table mount_table = KEY_TABLE(mount_rows);
static const struct key reply_rows[] = { REPLY(MEMBER_ROW) };
static const struct key_table reply_table = KEY_TABLE(reply_rows);

static const struct schema_form replies[] = { { "looked", 1, &reply_table }, { "failed", 1, &failure_keys }, {} };

static const struct people_column columns[] = {
        { "PID", "pid" },         { "CONTAINER", "container" }, { "VERSION", "version" },
        { "PROGRAM", "program" }, { "PROBLEM", "problem" },     {},
};
static const struct people_form people[] = {
        { .when = "mounts", .rows = "mounts", .columns = columns },
        { .when = "!mounts,!message", .line = "remap-daemon serves no mount" },
        {},
};

const struct schema upgrade_schema = { .request = &request_table, .programs = 1, .replies = replies, .people = people };

int upgrade_parse(int argc, char **argv, struct upgrade_request *ret_request, struct error *error)
{
        int r;

        *ret_request = (struct upgrade_request){};
        r = key_read_request(argc, argv, &ret_request->json, error);
        return r == 0 ? key_take_all(&request_table, 1, ret_request, ret_request->json, error) : r;
}

int upgrade_say_failure(const struct error *error)
{
        char message[PATH_MAX + 1024];

        if (!failure_understood(error))
                (void)snprintf(message, sizeof message, FAILURE_NOT_UNDERSTOOD "%s", error_why(error));
        else
                (void)snprintf(message, sizeof message, "cannot upgrade what serves mounts: %s: %s", error->subject,
                               error_why(error));
        return failure_say(message, error, failure_hint(error, /* of_kind= */ NULL, all_hints));
}

static int work(void *argument, struct error *error)
{
        struct job *job = argument;

        return upgrade_mount(job->mount, &job->pid, error);
}

static json_t *describe(const struct seen *seen)
{
        struct members members = { .programs = 1 };

        MOUNT(MEMBER_PUT)
        return members_end(&members);
}

static int try(struct job *job, struct error *error)
{
        int r;

        if (job->stuck)
                return fail_because(error, ECANCELED, OPERATION_UPGRADE, "remap-daemon",
                                    "not tried, as that of another mount took too long");
        r = worker_run(work, job, clock_now_ms() + TIMEOUT_MS, error);
        job->stuck = r == -ETIMEDOUT;
        return r;
}

/* A failure of one is none of the others. */
static int see(const struct upgrade_mount *mount, void *argument, struct error *ignored)
{
        static struct error error;
        struct job *job = argument;
        struct seen seen = { .mount = mount, .outcome = mount->current ? CURRENT : OLD, .pid = mount->pid };

        (void)ignored;
        job->mount = mount;
        if (!mount->current && !job->request->dry_run) {
                if (try(job, &error) < 0) {
                        seen.error = &error;
                        if (job->failed++ == 0)
                                job->detail = failure_detail(&error, failure_hint(&error, NULL, all_hints));
                } else {
                        seen.outcome = UPGRADED;
                        seen.pid = job->pid;
                }
        }
        (void)json_array_append_new(job->mounts, describe(&seen));
        return 0;
}

static json_t *reply_of(const struct job *job)
{
        struct members members = { .programs = 1 };

        REPLY(MEMBER_PUT)
        return members_end(&members);
}

/* Of two such calls at a time one waits. */
static int lock(const char *state_dir, struct state *state, struct error *error)
{
        static const char name[] = "remap-upgrade";
        int r = state_open(state_dir, "mounts", /* create= */ false, state, error);

        if (r == -ENOENT)
                return 0;
        /* as all keys of locks, with the two highest bits clear */
        return r < 0 ? r : state_lock(state, hash_bytes(HASH_SEED, name, sizeof name) >> 2, error);
}

int upgrade_run(const struct upgrade_request *request, json_t **ret_reply, struct error *error)
{
        static char state_dir[PATH_MAX];
        cleanup_state struct state state = STATE_NONE;
        struct job job = { .request = request, .state_dir = state_dir, .mounts = json_array() };
        int r = config_state_dir(state_dir, error);

        if (r == 0 && !request->dry_run)
                r = lock(state_dir, &state, error);
        if (r == 0)
                r = upgrade_each(state_dir, see, &job, error);
        if (r >= 0)
                *ret_reply = reply_of(&job);
        json_decref(job.mounts);
        json_decref(job.detail);
        return r < 0 ? r : job.failed;
}
