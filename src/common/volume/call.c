/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "pool/record.h"
#include "process/log.h"
#include "process/privileges.h"
#include "process/proc.h"
#include "process/worker.h"
#include "state/uses.h"
#include "volume/exec_helpers.h"
#include "volume/kinds.h"

#define STATE_SORT "volumes"
#define ERASE_SECONDS (24 * 3600U)

struct job {
        struct volume_call *call;
        volume_function *function;
};

static int run_in_worker(void *argument, struct error *error)
{
        const struct job *job = argument;
        int r = proc_boot_id(job->call->boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        return job->function(job->call, error);
}

/* Verbs that wait for other programs have more time. */
static unsigned seconds_of(const struct volume_call *call)
{
        switch (call->request->verb) {
        case VERB_MOUNT:
                return call->config.call_seconds +
                       (call->provisions ? call->config.device_seconds + (2 * call->config.command_seconds)
                                         : call->config.unmount_seconds);
        case VERB_MOUNTDEVICE:
        case VERB_EXPANDFS:
                return call->config.call_seconds + call->config.command_seconds;
        case VERB_ATTACH:
        case VERB_WAITFORATTACH:
                return call->config.call_seconds + call->config.device_seconds;
        default: /* overwriting takes long */
                return call->provisions ? ERASE_SECONDS : call->config.call_seconds + call->config.unmount_seconds;
        }
}

/*
 * Whether volumes of the kind that the request or the driver's name says run programs when they are mounted: what is found in
 * another way does not.
 */
static bool runs_programs(const struct volume_request *request)
{
        const struct volume_kind *kind;
        struct volume_signs signs;
        struct error ignored; /* the verb meets it again */

        if (volume_kind_read(request, volume_kind_of_driver(request->driver), &signs, &ignored) < 0)
                return false;
        kind = signs.requested != NULL ? signs.requested : signs.of_driver;
        return kind != NULL && volume_exec_helpers_of(kind, VERB_MOUNT) != 0;
}

int volume_call_begin(struct volume_call *ret_call, struct volume_request *ret_request, enum verb verb, int argc,
                      char **argv, struct error *error)
{
        static char subject[VOLUME_NAME_MAX + 32]; /* the log borrows it */
        int r;

        ret_call->request = ret_request;
        ret_call->state = (struct state)STATE_NONE;
        ret_call->provisioned = (struct state)STATE_NONE;
        ret_call->provisions = (verb == VERB_MOUNT || verb == VERB_UNMOUNT) && volume_exec_helpers_begun();
        ret_request->verb = verb;
        volume_driver_name(argv[0], ret_request->driver);
        ret_request->tells_errno = ret_request->driver[0] == '\0';
        r = config_load(&ret_call->config, error);
        log_begin(volume_verb_word(verb), r == 0 ? ret_call->config.log : "syslog");
        if (r < 0)
                return r;
        if (!volume_driver_can(ret_request->driver, verb))
                return fail(error, ENOSYS, OPERATION_NOT_SUPPORTED, volume_verb_word(verb));
        if ((r = volume_request_parse(ret_request, verb, argc, argv, error)) < 0)
                return r;
        if (verb == VERB_MOUNT) /* those of all kinds were started for what was read from standard input */
                ret_call->provisions = ret_call->provisions && runs_programs(ret_request);
        (void)text_copy(ret_call->driver, sizeof ret_call->driver, ret_request->driver);
        (void)snprintf(subject, sizeof subject, "%s %.1000s", volume_verb_word(verb),
                       ret_request->name[0] != '\0' ? ret_request->name : ret_request->dir);
        log_begin(subject, ret_call->config.log);
        return 0;
}

int volume_call_run(struct volume_call *call, volume_function *function, struct error *error)
{
        struct job job = { .call = call, .function = function };
        int r = worker_run(run_in_worker, &job, clock_now_ms() + (int64_t)seconds_of(call) * 1000, error);

        if (r == -ETIMEDOUT && call->waits)
                r = fail_because(error, EAGAIN, "lock", call->request->name,
                                 "another call for this volume has not ended within %u s; try again", seconds_of(call));
        volume_exec_helpers_end();
        policy_release(&call->policy);
        state_release(&call->provisioned); /* a worker that hangs shares its descriptors */
        state_release(&call->state);
        return r;
}

void volume_inner_init(struct volume_inner *ret_inner, const struct volume_call *outer)
{
        ret_inner->request = (struct volume_request){ .verb = outer->request->verb };
        ret_inner->call = (struct volume_call){ .request = &ret_inner->request,
                                                .config = outer->config,
                                                .policy = outer->policy,
                                                .was_unmounted = outer->was_unmounted,
                                                .state = STATE_NONE,
                                                .provisioned = STATE_NONE };
        (void)text_copy(ret_inner->call.boot_id, sizeof ret_inner->call.boot_id, outer->boot_id);
        (void)text_copy(ret_inner->call.driver, sizeof ret_inner->call.driver, outer->driver);
}

void volume_inner_end(struct volume_inner *inner)
{
        volume_record_release(&inner->call.record);
        state_release(&inner->call.provisioned);
        state_release(&inner->call.state);
        json_decref(inner->request.options);
        inner->request.options = NULL;
}

int volume_call_name(struct volume_call *call, struct error *error)
{
        (void)error; /* it cannot fail: kubelet would not go on */
        call->answer.volume_name = call->request->name;
        return 0;
}

bool volume_call_is_here(const struct volume_call *call)
{
        struct utsname names;

        if (call->request->node[0] == '\0')
                return true;
        if (call->config.node_name[0] != '\0')
                return strcasecmp(call->config.node_name, call->request->node) == 0;
        return uname(&names) == 0 && strcasecmp(names.nodename, call->request->node) == 0;
}

int volume_call_where(const struct volume_call *call, struct error *error)
{
        if (!volume_call_is_here(call))
                return 0;
        if (!privileges_are_less())
                return 1;
        return call->request->node[0] != '\0' ? 0
                                              : fail_because(error, EPERM, OPERATION_CAPSET, "root",
                                                             "this program needs root, with its capabilities");
}

/* What was made for them is still there, and those of pods that are gone are deleted by what the record says. */
static void renew_dirs(struct volume_record *record)
{
        static const struct mount_identity none;

        for (size_t i = 0; i < record->published_count; i++) {
                record->published[i].identity = none;
                record->published[i].remap_key = 0;
                record->published[i].source_device = 0;
                record->published[i].replaces = 0;
                record->published[i].waits_for_users = false;
        }
}

static void forget_dirs(struct volume_record *record)
{
        while (record->published_count > 0)
                volume_record_forget(record, record->published[0].dir);
}

/* After a reboot only an unfinished filesystem is still as the record says, and what was made for a directory alone. */
static void renew_record(struct volume_call *call)
{
        struct volume_record *record = &call->record;
        const struct volume_kind *kind;

        if (!call->recorded || strcmp(record->boot_id, call->boot_id) == 0)
                return;
        log_say("the record is from before a reboot");
        kind = volume_kind_find(record->kind);
        if (kind != NULL && kind->unmake != NULL)
                renew_dirs(record);
        else
                forget_dirs(record);
        if (record->staged.dir != NULL)
                volume_record_forget(record, record->staged.dir);
        record->device[0] = '\0';
        record->device_number = 0;
        record->filesystem = 0;
        (void)text_copy(record->boot_id, sizeof record->boot_id, call->boot_id);
}

static int read_record(struct volume_call *call, const char *name, struct error *error)
{
        int r = volume_record_read(&call->state, name, call->driver, &call->record, error);

        if (r < 0 && r != -ENOENT)
                return r;
        call->recorded = r == 0;
        call->mode_is_new = false;
        renew_record(call);
        return 0;
}

static int lock(struct volume_call *call, const char *name, struct error *error)
{
        int r;

        call->waits = true;
        r = state_lock(&call->state, volume_record_key(name), error);
        call->waits = false;
        return r;
}

int volume_call_open(struct volume_call *call, struct error *error)
{
        int r;

        if ((r = state_open(call->config.state_dir, STATE_SORT, /* create= */ true, &call->state, error)) < 0 ||
            (r = lock(call, call->request->name, error)) < 0)
                return r;
        return read_record(call, call->request->name, error);
}

struct search {
        const char *dir;
        const char *driver;
        char *name; /* VOLUME_NAME_MAX bytes */
};

static int match_dir(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        const struct search *search = argument;

        (void)file;
        (void)error;
        if (record == NULL || volume_record_mount_dir(record, search->dir) == NULL ||
            (search->driver[0] != '\0' && record->driver[0] != '\0' && strcmp(search->driver, record->driver) != 0))
                return 0;
        (void)text_copy(search->name, VOLUME_NAME_MAX, record->name);
        return 1;
}

/*
 * The volume of a directory: where a record names the directory, that one; else kubelet names the last component after a
 * FlexVolume volume. For CSI that is "mount", which may be another's name: then none is meant.
 */
static int find_name(struct volume_call *call, char *ret_name, struct error *error)
{
        const char *dir = call->request->dir;
        struct search search = { .dir = dir, .driver = call->driver, .name = ret_name };
        cleanup_volume_record struct volume_record record = {};
        int r;

        (void)text_copy(ret_name, VOLUME_NAME_MAX, strrchr(dir, '/') + 1);
        r = volume_record_read(&call->state, ret_name, call->driver, &record, error);
        if (r == 0 && volume_record_mount_dir(&record, dir) != NULL)
                return 0;
        if (r < 0 && r != -ENOENT)
                return r;
        (void)uses_complete(call->config.state_dir, &call->state, error); /* if it fails, all records are read */
        r = volume_record_each_on(&call->state, dir, match_dir, &search, error);
        if (r == 0 && call->driver[0] == '\0')
                (void)snprintf(ret_name, VOLUME_NAME_MAX, VOLUME_INNER_NONE "%016llx",
                               (unsigned long long)hash_text(dir));
        return r < 0 ? r : 0;
}

static int open_dir(void *argument, struct error *error)
{
        struct volume_call *call = argument;
        char name[VOLUME_NAME_MAX];
        int r;

        if ((r = state_open(call->config.state_dir, STATE_SORT, /* create= */ false, &call->state, error)) < 0 ||
            (r = find_name(call, name, error)) < 0 || (r = lock(call, name, error)) < 0)
                return r;
        return read_record(call, name, error);
}

int volume_call_open_dir(struct volume_call *call, struct error *error)
{
        /* half of the time: the rest is for unmounting, if the disk of the records hangs */
        int64_t deadline_ms = clock_now_ms() + (int64_t)call->config.call_seconds * 1000 / 2;
        int r = worker_run(open_dir, call, deadline_ms, error);

        if (r == 0 || (r == -ETIMEDOUT && call->waits))
                return r;
        if (r != -ENOENT && r != -EROFS && r != -EPERM && r != -EACCES && r != -EIO && r != -ETIMEDOUT)
                return r;
        if (r != -ENOENT)
                log_say("continuing without records: %s: %s", error->subject, error_why(error));
        call->recorded = false;
        return 0;
}

void volume_call_forget_owner(struct volume_call *call)
{
        if (strcmp(call->record.namespace, PROVISION_OF_CSI) == 0)
                return;
        call->record.namespace[0] = '\0';
        if (!call->mode_is_new)
                call->record.access_mode[0] = '\0';
}

void volume_call_forget_source(struct volume_call *call)
{
        call->record.formatting[0] = '\0';
        volume_call_forget_owner(call);
}

void volume_call_init_record(struct volume_call *call)
{
        struct volume_record *record = &call->record;

        (void)text_copy(record->name, sizeof record->name, call->request->name);
        if (!call->recorded) /* a record keeps its driver */
                (void)text_copy(record->driver, sizeof record->driver, call->driver);
        (void)text_copy(record->kind, sizeof record->kind, call->kind->word);
        (void)text_copy(record->boot_id, sizeof record->boot_id, call->boot_id);
        if (call->request->node != NULL)
                (void)text_copy(record->node, sizeof record->node, call->request->node);
}

int volume_call_save(struct volume_call *call, enum file_durability durability, struct error *error)
{
        int r = volume_record_write(&call->state, &call->record, durability, error);

        if (r < 0 && !call->recorded) {
                struct error ignored;

                /* it may be there, with only its directory not synced */
                (void)volume_record_remove(&call->state, &call->record, &ignored);
        }
        call->recorded = call->recorded || r == 0;
        return r;
}

int volume_call_remove_record(struct volume_call *call, struct error *error)
{
        int r;

        if (!call->recorded) {
                (void)text_copy(call->record.name, sizeof call->record.name, call->request->name);
                (void)text_copy(call->record.driver, sizeof call->record.driver, call->driver);
        }
        r = volume_record_remove(&call->state, &call->record, error);
        call->recorded = call->recorded && r < 0;
        return r;
}

int volume_call_load_policy(struct volume_call *call, struct error *error)
{
        int r = policy_load(&call->policy, "volumes", error);

        if (r < 0 || (r = policy_check_volume(&call->policy, call->kind->word, call->kind->needs_policy, error)) < 0)
                return r;
        return policy_check_options(&call->policy, &call->request->mount_options, call->kind->harmless_options,
                                    /* device_file= */ false, error);
}

void volume_call_device(const struct volume_call *call, struct block_device *ret_device)
{
        *ret_device = (struct block_device){ .number = call->record.device_number };
        (void)text_copy(ret_device->path, sizeof ret_device->path, call->record.device);
}
