/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_ephemeral.c - volumes of a pool that live as long as they are mounted for a pod.
 *
 * mount makes a volume as volume-create does and unmount deletes it. Its name is made of the pod's directory, so that
 * unmount, which gets only the directory, finds it. The directory is in the driver's record before anything is made.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "mount/identity.h"
#include "mount/open_files.h"
#include "pool/record.h"
#include "provision/provision.h"
#include "state/access.h"
#include "volume/call.h"
#include "volume/device_filesystem.h"
#include "volume/kinds.h"
#include "volume/provisioned.h"
#include "volume/sighting.h"
#include "volume/volume.h"

#define USERS_MAX 4 /* that a message names */
#define USERS_MS 1000
#define POOL_TYPES_MAX 16 /* of all kinds */

/* The kind of the volumes of such a pool. */
static const struct volume_kind *find_kind(const char *word)
{
        const struct volume_kind *kind = volume_kind_find(word);

        return kind != NULL && kind->pool_types != NULL && kind->has_device ? kind : NULL;
}

/* The types of pools whose volumes such kinds have: others have no device. */
static const char *const *find_pool_types(void)
{
        static const char *types[POOL_TYPES_MAX + 1];
        size_t count = 0;

        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                for (const char *const *type = volume_kinds[i]->pool_types;
                     find_kind(volume_kinds[i]->word) != NULL && *type != NULL && count < POOL_TYPES_MAX; type++)
                        types[count++] = *type; /* "pmem" twice: it is also "lvm" */
        return types;
}

/* ---- the volume that is made: an inner call, with a record of its own */

static struct volume_inner current;

static void init_inner(const struct volume_call *call, const char *dir)
{
        volume_inner_init(&current, call);
        volume_record_put_ephemeral(dir, current.request.name);
}

/* Undo what wraps it. It takes locks in another order than detach_inner(): a call of its own. */
static int unwrap(struct volume_inner *inner, struct error *error)
{
        int r = volume_call_open(&inner->call, error);

        return r < 0 ? r : volume_unwrap(&inner->call, error);
}

static int detach_inner(struct volume_inner *inner, struct error *error)
{
        struct volume_call *call = &inner->call;
        int r = volume_call_open(call, error);

        if (r < 0)
                return r;
        sighting_forget(call); /* as volume-reconcile has seen what a process kept from its end */
        if (!call->recorded)
                return volume_call_remove_record(call, error);
        call->kind = find_kind(call->record.kind);
        if (call->kind == NULL)
                return fail_because(error, EPROTO, "detach", inner->request.name, "its record is of type %.15s",
                                    call->record.kind);
        if ((r = call->kind->look(call, error)) < 0 || (r > 0 && (r = call->kind->detach(call, error)) < 0))
                return r;
        return volume_call_remove_record(call, error);
}

/* What a mount leaves that is killed before its first record has its name. */
static int forget_unnamed(const struct volume_call *call, const char *name, struct error *error)
{
        cleanup_state struct state records = STATE_NONE;
        int r = provision_record_open(call->config.state_dir, /* create= */ false, &records, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = provision_record_lock(&records, name, error)) < 0)
                return r;
        return provision_record_exists(call->config.state_dir, name)
                       ? 0
                       : provision_record_remove(&records, name, /* id= */ NULL, error);
}

/*
 * It is unmounted, but its filesystem is active, by a mount that was detached lazily or by one that a container has.
 * kubelet only calls unmount again, so the error says which processes have to end.
 */
static int name_users(struct error *error)
{
        static struct open_files files;
        char device[64];
        char names[160] = "";
        size_t length = 0;
        struct stat st;

        if (!text_copy(device, sizeof device, error->subject) || stat(device, &st) < 0 || !S_ISBLK(st.st_mode))
                return -EBUSY;
        files = (struct open_files){};
        open_files_find_on(st.st_rdev, USERS_MAX, clock_now_ms() + USERS_MS, &files);
        for (size_t i = 0; i < files.count && length < sizeof names; i++) {
                char *command = files.processes[i].command; /* its own choice: it must not look like another process */

                for (char *c = command; (c = strpbrk(c, "(),")) != NULL;)
                        *c = '?';
                length += (size_t)snprintf(names + length, sizeof names - length, "%s%d (%s)", i > 0 ? ", " : "",
                                           files.processes[i].pid, command);
        }
        if (files.count == 0)
                return fail_because(
                        error, EBUSY, "delete volume", device,
                        "it is unmounted, but %s is still in use, perhaps by a mount in a container; unmount "
                        "deletes it when that has ended",
                        device);
        return fail_because(error, EBUSY, "delete volume", device,
                            "it is unmounted, but files on %s are still used by process %s%s; unmount deletes it when "
                            "they are closed",
                            device, names, files.more ? " and others" : "");
}

static int unmake(const struct volume_call *call, const char *dir, struct error *error)
{
        char name[VOLUME_EPHEMERAL_NAME_SIZE];
        int r;

        volume_record_put_ephemeral(dir, name);
        if (!provision_record_exists(call->config.state_dir, name))
                return forget_unnamed(call, name, error); /* its record is removed last */
        init_inner(call, dir);
        r = unwrap(&current, error);
        volume_inner_end(&current);
        if (r < 0)
                return r;
        init_inner(call, dir);
        r = detach_inner(&current, error);
        volume_inner_end(&current);
        if (r == 0)
                r = provision_unmake(&call->config, name, call->soon, error);
        return r == -EBUSY ? name_users(error) : r;
}

static bool has_made(const char *state_dir, const char *dir)
{
        char name[VOLUME_EPHEMERAL_NAME_SIZE];

        volume_record_put_ephemeral(dir, name);
        return provision_record_exists(state_dir, name);
}

/* ---- make */

static int check_writable(const struct volume_request *request, struct error *error)
{
        return !request->read_only ? 0
                                   : fail_because(error, EROFS, "make volume", request->name,
                                                  "an ephemeral volume is empty at first: it cannot be read-only");
}

static bool is_made(const struct volume_call *call, const char *name)
{
        cleanup_provision_record struct provision_record record = {};
        struct error ignored; /* who makes it meets it again */

        return provision_record_find(call->config.state_dir, name, &record, &ignored) == 0 &&
               record.lifecycle == PROVISION_CREATED;
}

/* parameters: an object, owned by the caller. */
static int provision(const struct volume_call *call, const char *name, json_t *parameters,
                     char ret_problem[PROFILES_PROBLEM_SIZE], struct error *error)
{
        const struct volume_request *request = call->request;
        const char *erase;
        const char *usage;
        struct provision_request wanted = { .verb = PROVISION_CREATE,
                                            .name = name,
                                            .fs_type = request->fs_type[0] != '\0' ? request->fs_type : NULL,
                                            .pool_types = find_pool_types() };
        int r;

        if ((r = volume_request_option(request, "pool", &wanted.pool, error)) < 0 ||
            (r = volume_request_option(request, "profile", &wanted.profile, error)) < 0 ||
            (r = volume_request_option(request, "usage", &usage, error)) < 0 ||
            (r = volume_request_option(request, "eraseAfter", &erase, error)) < 0 ||
            (r = volume_request_size(request, "size", &wanted.size_bytes, error)) < 0)
                return r;
        if (wanted.size_bytes == 0)
                return fail_because(error, EINVAL, "make volume", "size", "an ephemeral volume needs a \"size\"");
        if ((r = check_writable(request, error)) < 0)
                return r;
        if (is_made(call, name))
                erase = NULL; /* volume-create may have modified it since, as nobody who has the volume notices */
        wanted.keeps_content = erase != NULL && strcmp(erase, "false") == 0;
        wanted.erases = erase != NULL && !wanted.keeps_content;
        if (usage != NULL)
                (void)json_object_set_new(parameters, "usage", json_string(usage));
        wanted.parameters = json_object_size(parameters) > 0 ? parameters : NULL;
        return provision_make(&call->config, &wanted, ret_problem, error);
}

static int check_type(const struct volume_call *call, const char *type, struct error *error)
{
        const struct volume_kind *of_driver = volume_kind_of_driver(call->driver);
        const char *word;
        int r = volume_request_option(call->request, "type", &word, error);

        if (r < 0)
                return r;
        if (word == NULL && of_driver != NULL)
                word = of_driver->word;
        if (word == NULL || find_kind(word) == NULL || strcmp(word, type) == 0)
                return 0;
        return fail_because(error, EINVAL, "make volume", call->request->name, "its pool is of type %s, not %s", type,
                            word);
}

static int mount_inner(struct volume_inner *inner, struct error *error)
{
        struct volume_call *call = &inner->call;
        int r;

        if ((r = policy_check_volume(&call->policy, call->kind->word, call->kind->needs_policy, error)) < 0 ||
            (r = volume_kind_wrapper(call->request, call->kind, &call->wrapper, error)) < 0 ||
            (r = volume_call_open(call, error)) < 0 || (r = provisioned_hold(call, error)) < 0)
                return r;
        return call->wrapper != NULL ? call->wrapper->wrap(call, error) : device_filesystem_attach(call, error);
}

/* Attach and mount what was provisioned. had_made: by an earlier call, perhaps of an earlier version. */
static int use(struct volume_call *call, const char *name, json_t *parameters, bool had_made, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_find(call->config.state_dir, name, &record, error);

        if (r < 0)
                return r == -ENOENT ? fail(error, ENOENT, OPERATION_FIND_RECORD, name) : r;
        if ((r = check_type(call, record.pool_type, error)) < 0 ||
            (r = provisioned_keep(call->request, &record, error)) < 0)
                return r;
        /* by the mount flags, or the access mode, of its profile */
        call->request->read_only = call->request->read_only || access_reads_only(record.access_mode);
        if (!had_made && (r = check_writable(call->request, error)) < 0)
                return r;
        if (json_object_get(call->request->options, kind_kata.flag) != NULL)
                (void)json_object_set(parameters, kind_kata.flag,
                                      json_object_get(call->request->options, kind_kata.flag));
        provisioned_keep_parameters(parameters, &record);
        init_inner(call, call->request->dir);
        current.request.options = json_incref(parameters);
        current.request.mount_options = call->request->mount_options;
        (void)text_copy(current.request.fs_type, sizeof current.request.fs_type, record.fs_type);
        current.call.kind = find_kind(record.pool_type);
        r = current.call.kind != NULL ? mount_inner(&current, error)
                                      : fail(error, EPROTO, "find kind", record.pool_type);
        (void)text_copy(call->answer.message, sizeof call->answer.message, current.call.answer.message);
        volume_inner_end(&current);
        return r;
}

static int make(struct volume_call *call, struct error *error)
{
        static const struct mount_identity none;
        cleanup_json json_t *parameters = json_object();
        const char *dir = call->request->dir;
        const bool had_made = has_made(call->config.state_dir, dir); /* with what a pod may have written */
        struct error ignored;                                        /* the first failure is the one to report */
        char name[VOLUME_EPHEMERAL_NAME_SIZE];
        char problem[PROFILES_PROBLEM_SIZE];
        int r;

        volume_record_put_ephemeral(dir, name);
        if ((r = volume_record_remember(&call->record, dir, /* staged= */ false, 0, &none, error)) < 0 ||
            (r = volume_call_save(call, FILE_DURABLE, error)) < 0)
                return r;
        if ((r = provision(call, name, parameters, problem, error)) >= 0 &&
            (r = use(call, name, parameters, had_made, error)) >= 0)
                profiled_tell(call, problem);
        if (r >= 0 || had_made) /* what an earlier call made is unmount's to delete, and stays recorded for it */
                return r;
        if (unmake(call, dir, &ignored) == 0) {
                volume_record_forget(&call->record, dir);
                if (call->record.published_count == 0)
                        (void)volume_call_remove_record(call, &ignored);
                else
                        (void)volume_call_save(call, FILE_ORDERED, &ignored);
        }
        return r;
}

static const struct volume_option options[] = {
        { .key = "ephemeral",
          .type = VOLUME_OPTION_BOOLEAN,
          .fallback = "false",
          .help = "true: a new volume of a pool, for as long as the pod has it" },
        { .key = "size", .type = VOLUME_OPTION_SIZE, .help = "of the new volume" },
        { .key = "pool", .help = "pool that it is made in; \"default\" unless a profile picks one" },
        { .key = "profile", .help = "profile of profiles.json that picks a pool and its parameters" },
        { .key = "usage", .help = "pmem pools: AppDirect or FileIO" },
        { .key = "eraseAfter",
          .type = VOLUME_OPTION_BOOLEAN,
          .fallback = "true",
          .help = "false: do not overwrite its content before it is deleted" },
        {},
};

const struct volume_kind kind_ephemeral = { VOLUME_KIND(ephemeral), .options = options,      .flag = "ephemeral",
                                            .makes_device = true,   .runs = VOLUME_RUNS_ALL, .make = make,
                                            .unmake = unmake,       .has_made = has_made };
