/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/reconcile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/reply.h"
#include "base/text.h"
#include "block/loop.h"
#include "mount/on_node.h"
#include "process/log.h"
#include "process/proc.h"
#include "process/worker.h"
#include "provision/provision.h"
#include "state/mount_record.h"
#include "volume/call.h"
#include "volume/ephemeral.h"
#include "volume/kind.h"
#include "volume/kind_ephemeral.h"
#include "volume/mount_dir.h"

#define RUN_SECONDS 600
#define IDLE_SECONDS 600
#define REQUEST_MAX_BYTES ((size_t)65536)

/* Who is at it: what was found out once, for all that follow. */
struct round {
        struct reconcile *reconcile;
        struct config config;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct known {
                char name[VOLUME_NAME_MAX];
                char driver[VOLUME_DRIVER_MAX];
        } * records; /* all that there were at first; owned */
        size_t count;
};

static void did(struct round *round, const char *action, const char *subject)
{
        (void)json_array_append_new(round->reconcile->actions,
                                    json_pack("{s:s, s:o}", "action", action, "subject", reply_printable(subject)));
        log_say("%s%s: %s", round->reconcile->dry_run ? "would have " : "", action, subject);
}

static void problem(struct round *round, const char *subject, const struct error *error)
{
        char text[PATH_MAX + 1024];

        (void)snprintf(text, sizeof text, "%.1000s: %s", subject, error_why(error));
        (void)json_array_append_new(round->reconcile->problems, reply_printable(text));
        log_say("problem: %s", text);
}

/* ---- one volume */

/* A mount that was remembered, if it is there and ours, is taken off, unless somebody uses it. */
static int take_off(struct round *round, const struct volume_call *call, const char *dir)
{
        struct error error = {};
        unsigned ignored;
        bool lazy;
        int r;

        if (mount_dir_look(call, dir, &ignored, &error) != PLACE_OURS)
                return 0;
        if (!round->reconcile->dry_run &&
            (r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ false, &lazy, &error)) < 0) {
                problem(round, dir, &error);
                return r;
        }
        did(round, "unmounted", dir);
        return 0;
}

/* Forget the directory; what was made for it goes: the directory, if it is empty, and an ephemeral volume. */
static int forget(struct round *round, struct volume_call *call, const char *dir)
{
        struct mount_dir *place = volume_record_mount_dir(&call->record, dir);
        struct error error = {};
        char copy[PATH_MAX];
        int r;

        if (strcmp(call->record.kind, kind_ephemeral.word) == 0) {
                if (!round->reconcile->dry_run && (r = ephemeral.unmake(call, dir, &error)) < 0) {
                        problem(round, dir, &error);
                        return r;
                }
                did(round, "deleted an ephemeral volume", dir);
        }
        (void)text_copy(copy, sizeof copy, dir); /* the record owns what dir points to */
        if (!round->reconcile->dry_run)
                mount_dir_unmake(copy, place->made);
        volume_record_forget(&call->record, copy);
        return 0;
}

static void drop(struct round *round, struct volume_call *call)
{
        struct error error = {};

        did(round, "removed the record", call->record.name);
        if (!round->reconcile->dry_run && volume_call_drop(call, &error) < 0)
                problem(round, call->record.name, &error);
}

/* A filesystem that was being made when the machine went down looks whole, perhaps: whoever attaches it next makes it
 * anew. */
static void keep_for_formatting(struct round *round, struct volume_call *call)
{
        struct error error = {};

        did(round, "kept the record: its filesystem was not finished", call->record.name);
        call->record.device[0] = '\0';
        call->record.device_number = 0;
        (void)text_copy(call->record.boot_id, sizeof call->record.boot_id, call->boot_id);
        if (!round->reconcile->dry_run && volume_call_save(call, FILE_DURABLE, &error) < 0)
                problem(round, call->record.name, &error);
}

static int detach(struct round *round, struct volume_call *call)
{
        struct error error = {};
        struct block_device device;
        int r = call->kind->look == NULL ? 0 : call->kind->look(call, &error);

        if (r == 0 && call->kind->wakes && !round->reconcile->dry_run && (r = call->kind->detach(call, &error)) < 0) {
                problem(round, call->record.name, &error);
                return r;
        }
        if (r <= 0 || call->kind->foreign)
                return 0;
        volume_call_device(call, &device);
        if (!round->reconcile->dry_run &&
            ((r = block_device_check_unused(&device, &error)) < 0 || (r = call->kind->detach(call, &error)) < 0)) {
                problem(round, call->record.name, &error);
                return r;
        }
        did(round, "detached", device.path);
        return 0;
}

/* All of it: what no call of this boot asked for, or what was never answered. What is in use stays, with its record. */
static void take_away(struct round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;

        while (record->published_count > 0) {
                if (take_off(round, call, record->published[0].dir) < 0 ||
                    forget(round, call, record->published[0].dir) < 0)
                        return;
        }
        if (record->staged.dir != NULL) {
                if (take_off(round, call, record->staged.dir) < 0 || forget(round, call, record->staged.dir) < 0)
                        return;
        }
        if (detach(round, call) < 0)
                return;
        if (record->formatting[0] != '\0')
                keep_for_formatting(round, call);
        else
                drop(round, call);
}

static bool forget_lost(struct round *round, struct volume_call *call, const char *dir)
{
        char copy[PATH_MAX];

        (void)text_copy(copy, sizeof copy, dir); /* as above */
        if (forget(round, call, dir) < 0)
                return false;
        did(round, "forgot a directory that is not mounted", copy);
        return true;
}

/* What is remembered and not there is forgotten. Returns whether anything was. */
static bool forget_gone(struct round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;
        struct error error = {};
        bool changed = false;
        unsigned ignored;
        size_t i = 0;

        while (i < record->published_count) {
                int r = mount_dir_look(call, record->published[i].dir, &ignored, &error);

                /* what cannot be looked at may be there */
                if (r == PLACE_OURS || r < 0 || !forget_lost(round, call, record->published[i].dir))
                        i++;
                else
                        changed = true;
        }
        if (record->staged.dir != NULL) {
                int r = mount_dir_look(call, record->staged.dir, &ignored, &error);

                if (r >= 0 && r != PLACE_OURS && forget_lost(round, call, record->staged.dir))
                        changed = true;
        }
        return changed;
}

/*
 * Whether no pod has had the volume for so long that kubelet has forgotten it: killed between two of its steps it never
 * takes the next. Should it come back to it, the next step attaches it again.
 */
static bool is_idle(const struct volume_call *call)
{
        struct stat st;

        return call->record.published_count == 0 && fstatat(call->state.dir_fd, call->record.file, &st, 0) == 0 &&
               st.st_mtime < time(NULL) - IDLE_SECONDS;
}

static void reconcile_volume(struct round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;
        bool begun; /* and perhaps not finished */
        struct error error = {};
        int attached = 0;
        bool changed;

        if (volume_kind_choose(call, &error) < 0) {
                problem(round, record->name, &error);
                return;
        }
        begun = call->kind->attach != NULL && record->device[0] == '\0';
        if (strcmp(record->boot_id, call->boot_id) != 0) {
                if (call->kind->look != NULL)
                        (void)call->kind->look(call, &error); /* the device that is the volume's now, if any */
                take_away(round, call);
                return;
        }
        if (call->kind->look != NULL && (attached = call->kind->look(call, &error)) < 0) {
                problem(round, record->name, &error);
                return;
        }
        if (record->formatting[0] != '\0' && attached == 0)
                return; /* the record is all there is, and needed */
        changed = forget_gone(round, call);
        if (attached > 0 && is_idle(call)) {
                if (record->staged.dir == NULL) {
                        take_away(round, call);
                        return;
                }
                error_because(&error, EBUSY, "look for users", record->name,
                              "mounted on %s, and no pod has had it for %d minutes: unmountdevice and detach let it go",
                              record->staged.dir, IDLE_SECONDS / 60);
                problem(round, record->name, &error);
        }
        if (call->kind->attach != NULL ? attached == 0 || (begun && record->staged.dir == NULL)
                                       : record->published_count == 0)
                take_away(round, call);
        else if ((changed || begun) && !round->reconcile->dry_run && volume_call_save(call, FILE_ORDERED, &error) < 0)
                problem(round, record->name, &error);
}

static void reconcile_name(struct round *round, const char *name, const char *driver)
{
        static struct volume_request request; /* static, for their size */
        static struct volume_call call;
        struct error error = {};

        request = (struct volume_request){};
        call = (struct volume_call){
                .request = &request, .state = STATE_NONE, .config = round->config, .ephemeral = &ephemeral
        };
        (void)text_copy(request.name, sizeof request.name, name);
        (void)text_copy(call.driver, sizeof call.driver, driver);
        (void)text_copy(call.boot_id, sizeof call.boot_id, round->boot_id);
        if (state_open(call.config.state_dir, "volumes", /* create= */ false, &call.state, &error) < 0)
                problem(round, name, &error);
        else if (state_try_lock(&call.state, volume_record_key(name))) { /* else a call is at it */
                int r = volume_record_read(&call.state, name, driver, &call.record, &error);

                call.recorded = r == 0;
                if (r == 0)
                        reconcile_volume(round, &call);
                else if (r != -ENOENT)
                        problem(round, name, &error);
        }
        volume_record_release(&call.record);
        state_release(&call.state);
}

static int collect(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct round *round = argument;
        struct known *grown;

        if (record == NULL && error->errnum == EBADMSG) {
                did(round, "set aside a torn record", file);
                return 0;
        }
        if (record == NULL) {
                problem(round, file, error);
                return 0;
        }
        grown = reallocarray(round->records, round->count + 1, sizeof *grown);
        if (grown == NULL)
                return fail(error, ENOMEM, "list records", record->name);
        round->records = grown;
        (void)text_copy(grown[round->count].name, sizeof grown->name, record->name);
        (void)text_copy(grown[round->count].driver, sizeof grown->driver, record->driver);
        round->count++;
        return 0;
}

/* ---- files that are not records any more, or not ours to read */

static void tell_files(struct round *round, const struct state *state)
{
        DIR *list = state_list(state);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL) {
                struct error error = { .errnum = EBADMSG,
                                       .reason = "a torn record, set aside; look at it and remove it" };

                if (entry->d_name[0] != '.' && text_ends(entry->d_name, STATE_ASIDE_SUFFIX))
                        problem(round, entry->d_name, &error);
        }
        if (list != NULL)
                (void)closedir(list);
}

static int reconcile_volumes(struct round *round, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = state_open(round->config.state_dir, "volumes", /* create= */ false, &state, error);

        if (r == -ENOENT)
                return 0; /* there never was one */
        if (r < 0 || (r = volume_record_each(&state, !round->reconcile->dry_run, collect, round, error)) < 0)
                return r;
        for (size_t i = 0; i < round->count; i++)
                reconcile_name(round, round->records[i].name, round->records[i].driver);
        if (!round->reconcile->dry_run)
                volume_record_tidy(&state);
        tell_files(round, &state);
        return 0;
}

/* ---- volumes of pools */

static void tell_tidied(const char *name, const struct error *error, void *argument)
{
        struct round *round = argument;

        if (error != NULL)
                problem(round, name, error);
        else
                did(round, "took away a volume that was half made, or half deleted", name);
}

/* ---- loop devices without a record */

struct ownership {
        const struct loop_device *loop;
        const char *state_dir;
        bool unsure; /* there is a record that cannot be read, and it may be that */
};

static int owns(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct ownership *ownership = argument;

        (void)file;
        ownership->unsure = ownership->unsure || (record == NULL && error->errnum != EBADMSG);
        return record != NULL && loop_device_tagged_for(ownership->loop->tag, ownership->state_dir, record->driver,
                                                        volume_record_key(record->name));
}

/* Under the lock of its volume nobody is between attaching it and writing that down. */
static void reconcile_locked(struct round *round, const struct state *state, const struct loop_device *loop)
{
        struct ownership ownership = { .loop = loop, .state_dir = round->config.state_dir };
        struct block_device device = { .number = loop->number };
        struct error error = {};
        bool lazy;

        if (volume_record_each(state, /* set_aside= */ false, owns, &ownership, &error) != 0)
                return;
        if (ownership.unsure) {
                error_because(&error, ENODATA, "find record", loop->path,
                              "left, as perhaps of a volume whose record cannot be read: %s", loop->tag);
                problem(round, loop->path, &error);
                return;
        }
        (void)text_copy(device.path, sizeof device.path, loop->path);
        if (block_device_check_unused(&device, &error) < 0) {
                error_because(&error, EBUSY, "find device", loop->path,
                              "a loop device of ours without a record, and in use: %s", loop->tag);
                problem(round, loop->path, &error);
                return;
        }
        if (!round->reconcile->dry_run && loop_device_detach(loop, &lazy, &error) < 0)
                problem(round, loop->path, &error);
        else
                did(round, "detached", loop->path);
}

static int reconcile_loop(const struct loop_device *loop, void *argument, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        struct round *round = argument;
        uint64_t key;

        if (!loop_device_tagged_by(loop->tag, round->config.state_dir, &key) || loop->ending)
                return 0;
        if (state_open(round->config.state_dir, "volumes", !round->reconcile->dry_run, &state, error) < 0)
                problem(round, loop->path, error);
        else if (state_try_lock(&state, key))
                reconcile_locked(round, &state, loop);
        return 0;
}

/* ---- what was put into containers that are gone */

static void reconcile_injected(struct round *round)
{
        cleanup_state struct state state = STATE_NONE;
        char id[MOUNT_RECORD_ID_MAX];
        struct error error = {};
        DIR *list;

        if (state_open(round->config.state_dir, "mounts", /* create= */ false, &state, &error) < 0)
                return;
        list = mount_record_list(&state, &error);
        while (list != NULL && mount_record_next(list, id)) {
                cleanup_container struct container container = CONTAINER_NONE;
                static struct mount_record record; /* static, for its size */
                int r;

                if (!state_try_lock(&state, mount_record_key(id)) || mount_record_read(&state, id, &record, &error) < 0)
                        continue;
                r = mount_record_reach(&record, round->boot_id, &container, &error);
                if (r == 0 && record.translator_key != 0 && !mount_record_remap_lives(&state, record.translator_key)) {
                        /* not taken away: who writes to it had better fail than write to what is below */
                        error_because(&error, ENOTCONN, "find translator", record.target,
                                      "nobody serves it any more, and it is dead in container pid %d; the same request "
                                      "again puts another in its place",
                                      (int)record.pid);
                        problem(round, id, &error);
                }
                if (r != -ESRCH)
                        continue;
                did(round, "removed the record of a mount in a container that is gone", id);
                if (!round->reconcile->dry_run && mount_record_remove(&state, id, &error) < 0)
                        problem(round, id, &error);
        }
        if (list != NULL)
                (void)closedir(list);
}

static int run_round(void *argument, struct error *error)
{
        struct round *round = argument;
        int r = proc_boot_id(round->boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if ((r = reconcile_volumes(round, error)) < 0)
                return r;
        reconcile_injected(round);
        if ((r = loop_device_each(reconcile_loop, round, error)) < 0)
                return r;
        return provision_tidy(&round->config, round->reconcile->dry_run, tell_tidied, round, error);
}

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

int reconcile_run(struct reconcile *reconcile, struct error *error)
{
        static struct round round; /* static, for its size; the log borrows of it */
        int r = config_load(&round.config, error);

        round.reconcile = reconcile;
        log_begin("volume-reconcile", r == 0 ? round.config.log : "syslog");
        if (r < 0)
                return r;
        r = worker_run(run_round, &round, clock_now_ms() + (int64_t)RUN_SECONDS * 1000, error);
        provision_end();
        free(round.records);
        return r;
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
