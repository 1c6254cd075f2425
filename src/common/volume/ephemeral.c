/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/ephemeral.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "block/fs_tools.h"
#include "mount/identity.h"
#include "provision/provision.h"
#include "provision/record.h"
#include "volume/device_filesystem.h"
#include "volume/kind_loop.h"
#include "volume/kind_lvm.h"
#include "volume/kind_pmem.h"
#include "volume/provisioned.h"

#define NAME_SIZE 32 /* terminated */

static bool begun;

static void put_name(const char *dir, char *ret_name)
{
        (void)snprintf(ret_name, NAME_SIZE, "ephemeral-%016llx",
                       (unsigned long long)hash_bytes(HASH_SEED, dir, strlen(dir)));
}

static const struct volume_kind *find_kind(const char *word)
{
        static const struct volume_kind *const kinds[] = { &kind_loop, &kind_lvm, &kind_pmem };

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(kinds[i]->word, word) == 0)
                        return kinds[i];
        return NULL;
}

/* ---- what is made: a volume of its own, with a record of its own */

struct inner {
        struct volume_request request;
        struct volume_call call;
};

static void begin_inner(struct inner *inner, const struct volume_call *call, const char *dir)
{
        volume_call_begin_within(call, &inner->request, &inner->call);
        put_name(dir, inner->request.name);
}

static void end_inner(struct inner *inner)
{
        volume_call_end_within(&inner->request, &inner->call);
}

static int detach_inner(struct inner *inner, struct error *error)
{
        struct volume_call *call = &inner->call;
        int r = volume_call_open(call, error);

        if (r < 0)
                return r;
        if (!call->recorded)
                return volume_call_drop(call, error);
        call->kind = find_kind(call->record.kind);
        if (call->kind == NULL)
                return fail_because(error, EPROTO, "detach", inner->request.name, "its record is of type %.15s",
                                    call->record.kind);
        if ((r = call->kind->look(call, error)) < 0 || (r > 0 && (r = call->kind->detach(call, error)) < 0))
                return r;
        return volume_call_drop(call, error);
}

static int unmake(const struct volume_call *call, const char *dir, struct error *error)
{
        static struct inner inner; /* static, for its size */
        char name[NAME_SIZE];
        int r;

        put_name(dir, name);
        if (!provision_record_exists(call->config.state_dir, name))
                return 0; /* it goes last */
        begin_inner(&inner, call, dir);
        r = detach_inner(&inner, error);
        end_inner(&inner);
        return r < 0 ? r : provision_unmake(&call->config, name, error);
}

/* ---- make */

/* parameters: an object, owned by the caller. */
static int provision(const struct volume_call *call, const char *name, json_t *parameters, struct error *error)
{
        const struct volume_request *request = call->request;
        const char *erase;
        const char *usage;
        struct provision_request wanted = { .verb = PROVISION_CREATE,
                                            .name = name,
                                            .fs_type = request->fs_type[0] != '\0' ? request->fs_type : NULL };
        int r;

        if ((r = volume_request_option(request, "pool", &wanted.pool, error)) < 0 ||
            (r = volume_request_option(request, "profile", &wanted.profile, error)) < 0 ||
            (r = volume_request_option(request, "usage", &usage, error)) < 0 ||
            (r = volume_request_option(request, "eraseAfter", &erase, error)) < 0 ||
            (r = volume_request_size(request, "size", &wanted.size_bytes, error)) < 0)
                return r;
        if (wanted.size_bytes == 0)
                return fail_because(error, EINVAL, "make volume", "size", "an ephemeral volume needs a \"size\"");
        if (request->read_only)
                return fail_because(error, EROFS, "make volume", request->name,
                                    "an ephemeral volume is empty at first, and of no use when it is read-only");
        wanted.keeps_content = erase != NULL && strcmp(erase, "false") == 0;
        if (usage != NULL)
                (void)json_object_set_new(parameters, "usage", json_string(usage));
        wanted.parameters = json_object_size(parameters) > 0 ? parameters : NULL;
        return provision_make(&call->config, &wanted, error);
}

static int check_type(const struct volume_call *call, const char *type, struct error *error)
{
        const char *tilde = strchr(call->driver, '~');
        const char *word;
        int r = volume_request_option(call->request, "type", &word, error);

        if (r < 0)
                return r;
        if (word == NULL && tilde != NULL && find_kind(tilde + 1) != NULL)
                word = tilde + 1;
        if (word == NULL || find_kind(word) == NULL || strcmp(word, type) == 0)
                return 0;
        return fail_because(error, EINVAL, "make volume", call->request->name, "its pool is of type %s, not %s", type,
                            word);
}

static int mount_inner(struct inner *inner, struct error *error)
{
        enum file_durability durability;
        cleanup_close int mount_fd = -EBADF;
        struct volume_call *call = &inner->call;
        int r;

        if ((r = policy_check_volume(&call->policy, call->kind->word, error)) < 0 ||
            (r = volume_call_open(call, error)) < 0 || (r = call->kind->attach(call, error)) < 0)
                return r;
        mount_fd = device_filesystem_mount(call, &durability, error);
        if (mount_fd < 0 || (r = volume_call_save(call, durability, error)) < 0)
                return mount_fd < 0 ? mount_fd : r;
        return fd_take(&mount_fd);
}

/* What was provisioned, attached and mounted. */
static int use(const struct volume_call *call, const char *name, json_t *parameters, struct error *error)
{
        static struct inner inner; /* static, for its size */
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_find(call->config.state_dir, name, &record, error);

        if (r < 0)
                return r == -ENOENT ? fail(error, ENOENT, "find record", name) : r;
        if ((r = check_type(call, record.pool_type, error)) < 0 ||
            (r = provisioned_keep(call->request, &record, error)) < 0)
                return r;
        if (json_object_get(record.parameters, "usage") != NULL)
                (void)json_object_set(parameters, "usage", json_object_get(record.parameters, "usage"));
        begin_inner(&inner, call, call->request->dir);
        inner.request.options = json_incref(parameters);
        inner.request.mount_options = call->request->mount_options;
        (void)text_copy(inner.request.fs_type, sizeof inner.request.fs_type, record.fs_type);
        inner.call.kind = find_kind(record.pool_type);
        r = inner.call.kind != NULL ? mount_inner(&inner, error) : fail(error, EPROTO, "find kind", record.pool_type);
        end_inner(&inner);
        return r;
}

static int make(struct volume_call *call, struct error *error)
{
        static const struct mount_identity none;
        cleanup_json json_t *parameters = json_object();
        const char *dir = call->request->dir;
        struct error ignored; /* the first failure is the one to tell */
        char name[NAME_SIZE];
        int r;

        put_name(dir, name);
        if ((r = volume_record_remember(&call->record, dir, /* staged= */ false, 0, &none, error)) < 0 ||
            (r = volume_call_save(call, FILE_DURABLE, error)) < 0)
                return r;
        if ((r = provision(call, name, parameters, error)) >= 0)
                r = use(call, name, parameters, error);
        if (r >= 0)
                return r;
        if (unmake(call, dir, &ignored) == 0) {
                volume_record_forget(&call->record, dir);
                if (call->record.published_count == 0)
                        (void)volume_call_drop(call, &ignored);
                else
                        (void)volume_call_save(call, FILE_ORDERED, &ignored);
        }
        return r;
}

const struct volume_ephemeral ephemeral = { .make = make, .unmake = unmake };

/* ---- before privileges go */

int ephemeral_begin_mount(int argc, char **argv, struct error *error)
{
        int r;

        for (int i = 0; i < argc; i++)
                begun = begun || strstr(argv[i], "ephemeral") != NULL || (i > 0 && strcmp(argv[i], "-") == 0);
        if (!begun)
                return 0;
        r = fs_tool_begin(argc, argv, error);
        return r < 0 ? r : provision_begin(argc, argv, error);
}

int ephemeral_begin_unmount(int argc, char **argv, struct error *error)
{
        struct config config;
        struct error ignored; /* told again by who works */
        char dir[PATH_MAX];
        char name[NAME_SIZE];

        if (argc < 2 || text_path_normal(argv[1], dir) < 0 || config_load(&config, &ignored) < 0)
                return 0;
        put_name(dir, name);
        begun = provision_record_exists(config.state_dir, name);
        return begun ? provision_begin(argc, argv, error) : 0;
}

bool ephemeral_begun(void)
{
        return begun;
}
