/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply.h"

#include <stddef.h>

#include "base/failure.h"
#include "base/reply.h"
#include "base/schema.h"
#include "inject/request/source.h"

static json_t *success(void)
{
        return json_string(schema_success[0]);
}

/* ---- of mounts that were made */

/* clang-format off */
#define MOUNTED(X) \
        X("status", REPLIES_MADE, REPLIES_MADE, success(), KEY_WORD, .words = schema_success, .help = "it is mounted") \
        X("mount", REPLIES_ONE, REPLIES_ONE, what, KEY_OBJECT, .members = &reply_mount_keys, .help = "what was mounted") \
        X("mounts", REPLIES_BATCH, REPLIES_BATCH, what, \
          KEY_ARRAY, .members = &reply_mount_keys, .help = "what was mounted, in the order of the request")
/* clang-format on */

static const struct key mounted_rows[] = { MOUNTED(MEMBER_ROW) };
static const struct key_table mounted_keys = KEY_TABLE(mounted_rows);

static int say_mounted(unsigned programs, json_t *what)
{
        struct members members = { .programs = programs };

        MOUNTED(MEMBER_PUT)
        return reply_say(members_end(&members), EXIT_DONE);
}

int inject_reply_mounted(const struct outcome *outcome)
{
        const unsigned programs = outcome->request->source_kind->switches ? REPLIES_SWITCH : REPLIES_MOUNT;

        return say_mounted(programs, reply_mount_made(programs, outcome));
}

/* In the order they were asked for. */
int inject_reply_mounted_all(const struct outcome *outcomes, size_t count)
{
        json_t *mounts = json_array();

        for (size_t index = 0; index < count; index++)
                for (size_t i = 0; i < count; i++)
                        if (outcomes[i].request->index == index)
                                (void)json_array_append_new(mounts, reply_mount_made(REPLIES_BATCH, &outcomes[i]));
        return say_mounted(REPLIES_BATCH, mounts);
}

/* ---- of one that was removed */

/* clang-format off */
#define REMOVED_MOUNT(X) \
        X("id", ALL, 0, record->id[0] != '\0' ? reply_mount_id(record) : NULL, KEY_ANY, .help = "the record's name") \
        X("target", ALL, 0, members_text(record->target), KEY_ANY, .help = "where it was") \
        X("container", ALL, 0, record->pid != 0 ? reply_container(record->pid, record->container_id) : NULL, \
          KEY_OBJECT, .members = &reply_container_keys, .help = "the container it was in")

#define REMOVED(X) \
        X("status", ALL, ALL, success(), KEY_WORD, .words = schema_success, .help = "it is not mounted any more") \
        X("removed", ALL, ALL, removed_object(record), \
          KEY_OBJECT, .members = &removed_mount_keys, .help = "what was removed") \
        X("alreadyRemoved", ALL, ALL, json_boolean(outcome->already), \
          KEY_BOOLEAN, .help = "whether it was gone before") \
        X("stillReachable", ALL, 0, members_true(outcome->in_use), \
          KEY_BOOLEAN, .help = "true: a process still has the raw device open, or uses the volume") \
        X("hint", ALL, 0, outcome->in_use ? why_reachable(record) : NULL, KEY_ANY, .help = "what that means")
/* clang-format on */

static const struct key removed_mount_rows[] = { REMOVED_MOUNT(MEMBER_ROW) };
static const struct key_table removed_mount_keys = KEY_TABLE(removed_mount_rows);
static const struct key removed_rows[] = { REMOVED(MEMBER_ROW) };
static const struct key_table removed_keys = KEY_TABLE(removed_rows);

static json_t *removed_object(const struct mount_record *record)
{
        struct members members = { .programs = REPLIES_REMOVE };

        REMOVED_MOUNT(MEMBER_PUT)
        return members_end(&members);
}

static json_t *why_reachable(const struct mount_record *record)
{
        char id[MOUNT_RECORD_ID_MAX];

        mount_record_removed_id(record, id);
        return record->volume[0] != '\0'
                       ? reply_stays_attached(record->volume)
                       : json_sprintf("a process still has the device open, and can use it until it closes it; "
                                      "until then record %s says that the device is in use",
                                      id);
}

int inject_reply_removed(const struct outcome *outcome)
{
        const struct mount_record *record = outcome->record;
        struct members members = { .programs = REPLIES_REMOVE };

        REMOVED(MEMBER_PUT)
        return reply_say(members_end(&members), EXIT_DONE);
}

/* ---- of all */

static json_t *notes_array(const char (*ids)[MOUNT_RECORD_ID_MAX], size_t count)
{
        json_t *list = count > 0 ? json_array() : NULL;

        for (size_t i = 0; i < count; i++)
                (void)json_array_append_new(list, json_string(ids[i]));
        return list;
}

/* LATER: there may be ten thousand, so each is printed as it is made (reply_say_list()), behind the others. */
/* clang-format off */
#define LISTED(X, LATER) \
        X("status", ALL, ALL, success(), KEY_WORD, .words = schema_success, .help = "the records were read") \
        LATER("mounts", ALL, ALL, NULL, KEY_ARRAY, .members = &reply_mount_keys, .help = "what flexgraft mounted") \
        X("setAside", ALL, 0, notes_array(listing->set_aside, listing->set_aside_count), \
          KEY_ARRAY, .help = "records that cannot be understood, and were renamed") \
        X("unreadable", ALL, 0, notes_array(listing->unreadable, listing->unreadable_count), \
          KEY_ARRAY, .help = "records that cannot be read")
/* clang-format on */

#define NOTHING(...)
static const struct key listed_rows[] = { LISTED(MEMBER_ROW, MEMBER_ROW) };
static const struct key_table listed_keys = KEY_TABLE(listed_rows);

static json_t *listed_object(const void *entries, size_t i)
{
        return reply_mount_listed((const struct listing_entry *)entries + i);
}

int inject_reply_listed(const struct listing *listing)
{
        struct members members = { .programs = REPLIES_LIST };

        LISTED(MEMBER_PUT, NOTHING)
        return reply_say_list(members_end(&members), "mounts", listing->count, listed_object, listing->entries,
                              EXIT_DONE);
}

/* ---- of what would be done */

/* clang-format off */
#define STEP(X) \
        X("ensure", ALL, ALL, json_string(step_text(step, kind)), KEY_ANY, .help = "what must hold") \
        X("undo", ALL, 0, members_text(step_undo(step, kind)), \
          KEY_ANY, .help = "how it is undone when a later step fails")

#define PLANNED_MOUNT(X) \
        X("target", ALL, ALL, json_string(plan->request->target), \
          KEY_ANY, .help = "where it would be, as the container sees it") \
        X("alreadyMounted", ALL, ALL, json_boolean(already), \
          KEY_BOOLEAN, .help = "whether the same request was done before") \
        X("plan", ALL, ALL, steps_array(plan), KEY_ARRAY, .members = &step_keys, .help = "the steps, in order")

#define PLANNED(X) \
        X("status", ALL, ALL, success(), \
          KEY_WORD, .words = schema_success, .help = "the request could be carried out so far") \
        X("dryRun", ALL, ALL, json_true(), KEY_BOOLEAN, .help = "true") \
        X("alreadyMounted", REPLIES_ONE, REPLIES_ONE, json_boolean(already), \
          KEY_BOOLEAN, .help = "whether the same request was done before") \
        X("alreadyRemoved", REPLIES_REMOVE, REPLIES_REMOVE, json_boolean(already), \
          KEY_BOOLEAN, .help = "whether it is gone") \
        X("plan", REPLIES_ONE | REPLIES_REMOVE, REPLIES_ONE | REPLIES_REMOVE, what, \
          KEY_ARRAY, .members = &step_keys, .help = "the steps, in order") \
        X("mounts", REPLIES_BATCH, REPLIES_BATCH, what, \
          KEY_ARRAY, .members = &planned_mount_keys, .help = "a plan for each entry, in the order of the request")
/* clang-format on */

static const struct key step_rows[] = { STEP(MEMBER_ROW) };
static const struct key_table step_keys = KEY_TABLE(step_rows);
static const struct key planned_mount_rows[] = { PLANNED_MOUNT(MEMBER_ROW) };
static const struct key_table planned_mount_keys = KEY_TABLE(planned_mount_rows);
static const struct key planned_rows[] = { PLANNED(MEMBER_ROW) };
static const struct key_table planned_keys = KEY_TABLE(planned_rows);

static json_t *step_object(enum step step, const struct source_kind *kind)
{
        struct members members = { .programs = 1 };

        STEP(MEMBER_PUT)
        return members_end(&members);
}

static json_t *steps_array(const struct plan *plan)
{
        json_t *steps = json_array();

        for (size_t i = 0; i < plan->count; i++)
                (void)json_array_append_new(steps, step_object(plan->steps[i], plan->request->source_kind));
        return steps;
}

static json_t *planned_mount_object(const struct plan *plan, bool already)
{
        struct members members = { .programs = REPLIES_BATCH };

        PLANNED_MOUNT(MEMBER_PUT)
        return members_end(&members);
}

static int say_planned(unsigned programs, bool already, json_t *what)
{
        struct members members = { .programs = programs };

        PLANNED(MEMBER_PUT)
        return reply_say(members_end(&members), EXIT_DONE);
}

int inject_reply_planned(const struct plan *plan, const struct outcome *outcome)
{
        return say_planned(plan->request->kind == REQUEST_MOUNT_REMOVE ? REPLIES_REMOVE : REPLIES_MOUNT,
                           outcome->already, steps_array(plan));
}

int inject_reply_planned_all(const struct plan *plans, const struct outcome *outcomes, size_t count)
{
        json_t *mounts = json_array();

        for (size_t index = 0; index < count; index++)
                for (size_t i = 0; i < count; i++)
                        if (plans[i].request->index == index)
                                (void)json_array_append_new(mounts,
                                                            planned_mount_object(&plans[i], outcomes[i].already));
        return say_planned(REPLIES_BATCH, /* already= */ false, mounts);
}

const struct schema_form inject_reply_forms[] = {
        { "mounted", REPLIES_MADE, &mounted_keys }, { "removed", REPLIES_REMOVE, &removed_keys },
        { "listed", REPLIES_LIST, &listed_keys },   { "planned", REPLIES_MADE | REPLIES_REMOVE, &planned_keys },
        { "failed", ALL, &failure_keys },           {},
};

#define CONTAINER(object) "{" object "container.id|" object "container.pid}"

static const struct people_column open[] = {
        { "PID", "pid" }, { "COMMAND", "command" }, { "HOW", "how" }, { "VOLUME", "volume" }, {}
};

static const struct people_column steps[] = { { "ENSURE", "ensure" }, { "IF A LATER STEP FAILS", "undo" }, {} };

const struct people_form inject_people[] = {
        { .when = "mount.id,!mount.alreadyMounted,!mount.replaced",
          .line = "mounted {mount.source} on {mount.target} in " CONTAINER("mount.") ": {mount.options}; owners: "
                                                                                     "{mount.idMapping}" },
        { .when = "mount.replaced",
          .line = "replaced {mount.target} in " CONTAINER("mount.") " by {mount.source}: {mount.options}; owners: "
                                                                    "{mount.idMapping}" },
        { .when = "mount.alreadyMounted",
          .line = "{mount.source} is on {mount.target} in " CONTAINER("mount.") " already: {mount.options}" },
        { .when = "mount.stillOpen", .line = "processes that still have files of the replaced volume open:" },
        { .rows = "mount.stillOpen", .columns = open },
        { .when = "mount.stillOpenMore", .line = "there may be more of them" },
        { .when = "mount.stillAttached", .line = "{mount.hint}" },
        { .rows = "mounts",
          .when = "id,!alreadyMounted",
          .line = "mounted {source} on {target} in " CONTAINER("") ": {options}; owners: {idMapping}" },
        { .rows = "mounts",
          .when = "id,alreadyMounted",
          .line = "{source} is on {target} in " CONTAINER("") " already: {options}" },
        { .when = "removed,!alreadyRemoved", .line = "removed {removed.target|removed.id}" },
        { .when = "removed,alreadyRemoved", .line = "nothing to remove: {removed.target|removed.id} is gone already" },
        { .when = "stillReachable", .line = "{hint}" },
        { .when = "dryRun,alreadyMounted", .line = "nothing would change: it is mounted already" },
        { .when = "dryRun,alreadyRemoved", .line = "nothing would change: it is gone already" },
        { .rows = "mounts", .when = "plan,!alreadyMounted", .line = "would mount on {target}" },
        { .rows = "mounts", .when = "plan,alreadyMounted", .line = "nothing would change on {target}" },
        { .rows = "plan", .columns = steps },
        {},
};
