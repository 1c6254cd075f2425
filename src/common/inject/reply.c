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

static json_t *mount_object(const struct mount_record *record)
{
        json_t *mount =
                json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:s, s:I}", "id", record->id, "container",
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
                (void)json_object_set_new(mount, "replaced", json_pack("{s:b}", "atomic", outcome->atomic));
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

        if (record->id[0] != '\0')
                (void)json_object_set_new(removed, "id", json_string(record->id));
        if (record->target[0] != '\0')
                (void)json_object_set_new(removed, "target", reply_printable(record->target));
        if (record->pid != 0)
                (void)json_object_set_new(removed, "container", container_object(record));
        return reply_say(json_pack("{s:s, s:o, s:b}", "status", "Success", "removed", removed, "alreadyRemoved",
                                   outcome->already),
                         EXIT_DONE);
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

int inject_reply_listed(const struct listing *listing)
{
        json_t *mounts = json_array();
        json_t *reply;

        for (size_t i = 0; i < listing->count; i++) {
                const struct listing_entry *entry = &listing->entries[i];
                json_t *mount = mount_object(&entry->record);

                if (mount != NULL) {
                        (void)json_object_set_new(mount, "state", json_string(placement_word(entry->placement)));
                        if (entry->record.remap_key != 0)
                                (void)json_object_set_new(mount, "remap",
                                                          json_pack("{s:i, s:b}", "pid", entry->record.remap_pid,
                                                                    "running", entry->remap_runs));
                        if (entry->problem[0] != '\0')
                                (void)json_object_set_new(mount, "problem", json_string(entry->problem));
                }
                (void)json_array_append_new(mounts, mount);
        }
        reply = json_pack("{s:s, s:o}", "status", "Success", "mounts", mounts);
        add_notes(reply, "setAside", listing->set_aside, listing->set_aside_count);
        add_notes(reply, "unreadable", listing->unreadable, listing->unreadable_count);
        return reply_say(reply, EXIT_DONE);
}

static json_t *steps_array(const struct plan *plan)
{
        json_t *steps = json_array();

        for (size_t i = 0; i < plan->count; i++) {
                const char *undo = step_undo(plan->steps[i]);
                json_t *step = json_pack("{s:s}", "ensure", step_text(plan->steps[i]));

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
        if (container->id != NULL || container->known_as != NULL)
                (void)snprintf(ret_name, size, "container %s",
                               container->id != NULL ? container->id : container->known_as);
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

        if (request->kind == 0) { /* it failed before the request was read */
                ret_text[0] = '\0';
                return;
        }
        name_container(&request->container, container, sizeof container);
        switch (request->kind) {
        case REQUEST_MOUNT_CONTAINER:
                name_container(&request->from, from, sizeof from);
                (void)snprintf(ret_text, size, "cannot mount %s of %s on %s in %s: ", request->source, from,
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
        default:
                (void)snprintf(ret_text, size, "cannot mount %s on %s in %s: ", request->source, request->target,
                               container);
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

static int say_failure(const struct request *request, const struct request *entry, const struct error *error)
{
        static char message[5 * PATH_MAX];

        if (entry != NULL)
                (void)snprintf(message, sizeof message, "mounts[%zu]: ", entry->index);
        put_message(entry != NULL ? entry : request, error, message + strlen(message),
                    sizeof message - strlen(message));
        return failure_say(message, error);
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
        const char *hint = understood ? failure_hint(error) : NULL;
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
        line[sizeof line - 2] = '\0';
        text_make_printable(line); /* what an annotation brought must not write a log of its own */
        length = strlen(line);
        line[length] = '\n';
        (void)file_write_all(STDERR_FILENO, line, length + 1); /* nobody is left to tell */
        return failure_exit_status(error);
}

int inject_reply_usage(const char *program, const char *complaint)
{
        char line[256];

        (void)snprintf(line, sizeof line, "%s: %s\n", program, complaint);
        (void)file_write_all(STDERR_FILENO, line, strlen(line)); /* nobody is left to tell */
        return EXIT_NOT_UNDERSTOOD;
}
