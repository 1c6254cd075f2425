/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/file.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "inject/hints.h"
#include "inject/source.h"

#define STAYS_ATTACHED                                                                                                 \
        "volume \"%s\" stays attached: a container may have bound its mount elsewhere, or a process still uses it; "   \
        "volume-reconcile detaches it when that has ended"

static json_t *options_array(const char *text)
{
        json_t *array = json_array();

        while (array != NULL && *text != '\0') {
                size_t length = strcspn(text, ",");

                (void)json_array_append_new(array,
                                            json_stringn(text, length)); /* a reply with fewer words still is one */
                text += length + (text[length] == ',' ? 1 : 0);
        }
        return array;
}

static json_t *container_object(const struct mount_record *record)
{
        json_t *container = json_pack("{s:i}", "pid", (int)record->pid);

        if (container != NULL && record->container_id[0] != '\0')
                (void)json_object_set_new(container, "id", json_string(record->container_id));
        return container;
}

/* The container that the source is of, and its path there. */
static json_t *from_object(const struct mount_record *record)
{
        json_t *container = json_pack("{s:i}", "pid", (int)record->from_pid);

        if (container != NULL && record->from_id[0] != '\0')
                (void)json_object_set_new(container, "id", json_string(record->from_id));
        return json_pack("{s:o, s:o}", "container", container, "path", reply_printable(record->origin));
}

/* As requests name it: see mount_record_pending_id(). */
static json_t *id_text(const struct mount_record *record)
{
        char id[MOUNT_RECORD_ID_MAX];

        (void)text_copy(id, sizeof id, record->id);
        mount_record_settle_id(id);
        return json_string(id);
}

static json_t *mount_object(const struct mount_record *record)
{
        json_t *mount =
                json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:s, s:I}", "id", id_text(record), "container",
                          container_object(record), "type", record->type, "source", reply_printable(record->source),
                          "target", reply_printable(record->target), "options", options_array(record->options),
                          "idMapping", record->id_mapping, "mountId", (json_int_t)record->identity.id);

        if (mount != NULL && record->from_pid != 0)
                (void)json_object_set_new(mount, "from", from_object(record));
        if (mount != NULL && record->server_version[0] != '\0')
                (void)json_object_set_new(
                        mount, "nfs",
                        json_pack("{s:s, s:s}", "version", record->server_version, "address", record->server_address));
        return mount;
}

static bool has_former(const struct outcome *outcome)
{
        return outcome->replaced && outcome->replaced_volume[0] != '\0';
}

static json_t *replaced_object(const struct outcome *outcome)
{
        json_t *replaced = json_pack("{s:b}", "atomic", outcome->atomic);

        if (replaced != NULL && has_former(outcome))
                (void)json_object_set_new(replaced, "volume", json_string(outcome->replaced_volume));
        return replaced;
}

static json_t *how_array(unsigned how)
{
        static const char *const words[] = { "file", "cwd", "root", "mapped" }; /* the bits of enum open_files_how */
        json_t *array = json_array();

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if ((how & 1U << i) != 0)
                        (void)json_array_append_new(array, json_string(words[i]));
        return array;
}

/* What became of volumes whose mounts were replaced, by this call or an earlier one. */
static void add_former(json_t *mount, const struct former *former, bool replaced)
{
        json_t *open;

        if (replaced || former->count > 0 || former->more) {
                open = json_array();
                for (size_t i = 0; i < former->count; i++) {
                        const struct former_process *one = &former->processes[i];

                        (void)json_array_append_new(open, json_pack("{s:s, s:i, s:o, s:o}", "volume", one->volume,
                                                                    "pid", (int)one->process.pid, "command",
                                                                    reply_printable(one->process.command), "how",
                                                                    how_array(one->process.how)));
                }
                (void)json_object_set_new(mount, "stillOpen", open);
        }
        if (former->more)
                (void)json_object_set_new(mount, "stillOpenMore", json_true());
        if (former->attached[0] == '\0')
                return;
        (void)json_object_set_new(mount, "stillAttached", json_string(former->attached));
        (void)json_object_set_new(
                mount, "hint",
                former->problem[0] != '\0'
                        ? json_sprintf("volume \"%s\" stays attached: %s; volume-reconcile tries again",
                                       former->attached, former->problem)
                        : json_sprintf(STAYS_ATTACHED, former->attached));
}

static json_t *mounted_object(const struct outcome *outcome)
{
        const struct mount_record *record = outcome->record;
        json_t *mount = mount_object(record);

        if (mount == NULL)
                return NULL;
        if (record->from_pid == 0 && strcmp(record->origin, record->source) != 0)
                (void)json_object_set_new(mount, "origin", reply_printable(record->origin));
        (void)json_object_set_new(mount, "alreadyMounted", json_boolean(outcome->already));
        if (outcome->replaced)
                (void)json_object_set_new(mount, "replaced", replaced_object(outcome));
        if (outcome->former != NULL)
                add_former(mount, outcome->former, has_former(outcome));
        return mount;
}

int inject_reply_mounted(const struct outcome *outcome)
{
        return reply_say(json_pack("{s:s, s:o}", "status", "Success", "mount", mounted_object(outcome)), EXIT_DONE);
}

/* In the order they were asked for. */
int inject_reply_mounted_all(const struct outcome *outcomes, size_t count)
{
        json_t *mounts = json_array();

        for (size_t index = 0; index < count; index++)
                for (size_t i = 0; i < count; i++)
                        if (outcomes[i].request->index == index)
                                (void)json_array_append_new(mounts, mounted_object(&outcomes[i]));
        return reply_say(json_pack("{s:s, s:o}", "status", "Success", "mounts", mounts), EXIT_DONE);
}

int inject_reply_removed(const struct outcome *outcome)
{
        const struct mount_record *record = outcome->record;
        json_t *removed = json_object();
        json_t *reply;

        if (record->id[0] != '\0')
                (void)json_object_set_new(removed, "id", id_text(record));
        if (record->target[0] != '\0')
                (void)json_object_set_new(removed, "target", reply_printable(record->target));
        if (record->pid != 0)
                (void)json_object_set_new(removed, "container", container_object(record));
        reply = json_pack("{s:s, s:o, s:b}", "status", "Success", "removed", removed, "alreadyRemoved",
                          outcome->already);
        if (reply != NULL && outcome->in_use) {
                char id[MOUNT_RECORD_ID_MAX];

                json_t *hint;

                mount_record_removed_id(record, id);
                hint = record->volume[0] != '\0'
                               ? json_sprintf(STAYS_ATTACHED, record->volume)
                               : json_sprintf("a process still has the device open, and can use it until it closes it; "
                                              "until then record %s says that the device is in use",
                                              id);
                (void)json_object_set_new(reply, "stillReachable", json_true());
                (void)json_object_set_new(reply, "hint", hint);
        }
        return reply_say(reply, EXIT_DONE);
}

static void add_notes(json_t *reply, const char *key, const char (*ids)[MOUNT_RECORD_ID_MAX], size_t count)
{
        json_t *list;

        if (reply == NULL || count == 0)
                return;
        list = json_array();
        for (size_t i = 0; i < count; i++)
                (void)json_array_append_new(list, json_string(ids[i]));
        (void)json_object_set_new(reply, key, list);
}

static const char *const device_words[] = {
        [BLOCK_DEVICE_PRESENT] = "present", [BLOCK_DEVICE_REPLACED] = "replaced", [BLOCK_DEVICE_GONE] = "gone"
};

static json_t *listed_object(const void *entries, size_t i)
{
        const struct listing_entry *entry = (const struct listing_entry *)entries + i;
        const struct mount_record *record = listing_record(entry);
        json_t *mount = mount_object(record);

        if (mount == NULL)
                return NULL;
        (void)json_object_set_new(mount, "state", json_string(listing_state(entry)));
        (void)json_object_set_new(mount, "wanted", json_boolean(entry->wanted));
        if (record->disk != 0)
                (void)json_object_set_new(mount, "device", json_string(device_words[entry->device]));
        if (record->removed)
                (void)json_object_set_new(mount, "stillReachable", json_true());
        if (record->remap_key != 0)
                (void)json_object_set_new(
                        mount, "remap",
                        json_pack("{s:i, s:b}", "pid", record->remap_pid, "running", entry->remap_runs));
        if (entry->problem[0] != '\0')
                (void)json_object_set_new(mount, "problem", json_string(entry->problem));
        return mount;
}

int inject_reply_listed(const struct listing *listing)
{
        json_t *reply = json_pack("{s:s}", "status", "Success");

        add_notes(reply, "setAside", listing->set_aside, listing->set_aside_count);
        add_notes(reply, "unreadable", listing->unreadable, listing->unreadable_count);
        return reply_say_list(reply, "mounts", listing->count, listed_object, listing->entries, EXIT_DONE);
}

static json_t *steps_array(const struct plan *plan)
{
        const struct source_kind *kind = plan->request->source_kind;
        json_t *steps = json_array();

        for (size_t i = 0; i < plan->count; i++) {
                const char *undo = step_undo(plan->steps[i], kind);
                json_t *step = json_pack("{s:s}", "ensure", step_text(plan->steps[i], kind));

                if (step != NULL && undo[0] != '\0')
                        (void)json_object_set_new(step, "undo", json_string(undo));
                (void)json_array_append_new(steps, step);
        }
        return steps;
}

int inject_reply_planned(const struct plan *plan, const struct outcome *outcome)
{
        return reply_say(json_pack("{s:s, s:b, s:b, s:o}", "status", "Success", "dryRun", 1,
                                   plan->request->kind == REQUEST_MOUNT_REMOVE ? "alreadyRemoved" : "alreadyMounted",
                                   outcome->already, "plan", steps_array(plan)),
                         EXIT_DONE);
}

int inject_reply_planned_all(const struct plan *plans, const struct outcome *outcomes, size_t count)
{
        json_t *mounts = json_array();

        for (size_t index = 0; index < count; index++)
                for (size_t i = 0; i < count; i++)
                        if (plans[i].request->index == index)
                                (void)json_array_append_new(mounts, json_pack("{s:s, s:b, s:o}", "target",
                                                                              plans[i].request->target,
                                                                              "alreadyMounted", outcomes[i].already,
                                                                              "plan", steps_array(&plans[i])));
        return reply_say(json_pack("{s:s, s:b, s:o}", "status", "Success", "dryRun", 1, "mounts", mounts), EXIT_DONE);
}

static void name_container(const struct container_reference *container, char *ret_name, size_t size)
{
        char name[CONTAINER_NAME_MAX];

        container_reference_name(container, name, sizeof name);
        if (name[0] != '\0')
                (void)snprintf(ret_name, size, "container %s", name);
        else if (container->proc_dir != NULL)
                (void)snprintf(ret_name, size, "container %.200s", container->proc_dir);
        else
                (void)snprintf(ret_name, size, "container %d", container->pid);
}

/* "cannot mount /dev/vdb on /data in container web: ": what was tried, as far as the request says. */
static void intention(const struct request *request, char *ret_text, size_t size)
{
        char container[256];
        char from[256];

        name_container(&request->container, container, sizeof container);
        switch (request->kind) {
        case REQUEST_NONE: /* it failed before the request was read */
                ret_text[0] = '\0';
                return;
        case REQUEST_MOUNT:
                if (request->source_kind->of_container) {
                        name_container(&request->from, from, sizeof from);
                        (void)snprintf(ret_text, size, "cannot mount %s of %s on %s in %s: ", request->source, from,
                                       request->target, container);
                } else
                        (void)snprintf(ret_text, size, "cannot mount %s on %s in %s: ", request->source,
                                       request->target, container);
                return;
        case REQUEST_MOUNT_BATCH:
                (void)snprintf(ret_text, size, "cannot mount: ");
                return;
        case REQUEST_MOUNT_REMOVE:
                if (request->id != NULL)
                        (void)snprintf(ret_text, size, "cannot remove %s: ", request->id);
                else
                        (void)snprintf(ret_text, size, "cannot remove %s from %s: ", request->target, container);
                return;
        case REQUEST_MOUNT_LIST:
                (void)snprintf(ret_text, size, "cannot list mounts: ");
                return;
        }
}

/* The error in words: one sentence. */
static void put_message(const struct request *request, const struct error *error, char *ret_message, size_t size)
{
        static char tried[3 * PATH_MAX]; /* static, for its size */
        bool understood = strcmp(error->operation, OPERATION_PARSE) != 0;
        bool told; /* the subject is in the message already */

        if (understood)
                intention(request, tried, sizeof tried);
        else
                (void)snprintf(tried, sizeof tried, FAILURE_NOT_UNDERSTOOD);
        told = !understood || strstr(tried, error->subject) != NULL || strstr(error->reason, error->subject) != NULL;
        (void)snprintf(ret_message, size, "%s%s%s%s%s%s%s", tried, told ? "" : error->subject, told ? "" : ": ",
                       error_why(error), error->kernel[0] != '\0' ? " (kernel: " : "", error->kernel,
                       error->kernel[0] != '\0' ? ")" : "");
}

static const char *hint_of(const struct request *request, const struct error *error)
{
        return failure_hint(error, request->source_kind != NULL ? request->source_kind->hints : NULL, inject_all_hints);
}

static int say_failure(const struct request *request, const struct request *entry, const struct error *error)
{
        static char message[5 * PATH_MAX];

        if (entry != NULL)
                (void)snprintf(message, sizeof message, "mounts[%zu]: ", entry->index);
        put_message(entry != NULL ? entry : request, error, message + strlen(message),
                    sizeof message - strlen(message));
        return failure_say(message, error, hint_of(entry != NULL ? entry : request, error));
}

int inject_reply_failure(const struct request *request, const struct error *error)
{
        return say_failure(request, NULL, error);
}

int inject_reply_failure_in(const struct request *request, const struct request *entry, const struct error *error)
{
        return say_failure(request, entry, error);
}

int inject_reply_complaint(const char *program, const struct request *request, const struct error *error)
{
        static char line[6 * PATH_MAX];
        bool understood = failure_exit_status(error) == EXIT_FAILED;
        const char *hint = understood ? hint_of(request, error) : NULL;
        size_t length = (size_t)snprintf(line, sizeof line, "%s: ", program);

        if (understood)
                put_message(request, error, line + length, sizeof line - length);
        else
                (void)snprintf(line + length, sizeof line - length, "%s%s%s",
                               error->reason[0] != '\0' ? "" : error->subject, error->reason[0] != '\0' ? "" : ": ",
                               error_why(error));
        length = strlen(line);
        (void)snprintf(line + length, sizeof line - length, "%s%s%s", hint != NULL ? " (" : "",
                       hint != NULL ? hint : "", hint != NULL ? ")" : "");
        return failure_complain(line, sizeof line, error);
}

int inject_reply_usage(const char *program, const char *complaint)
{
        char line[256];

        (void)snprintf(line, sizeof line, "%s: %s\n", program, complaint);
        (void)file_write_all(STDERR_FILENO, line, strlen(line)); /* nobody is left to tell */
        return EXIT_NOT_UNDERSTOOD;
}
