/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/injection.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/node_path.h"
#include "base/text.h"
#include "inject/request/request.h"
#include "inject/request/request_keys.h"
#include "state/access.h"

void injection_init(struct injection *injection, struct session *session, const struct request *request)
{
        injection->kind = request->source_kind;
        injection->session = session;
        injection->attributes = (struct mount_attributes){ .set = request->options.attr_set,
                                                           .clear = request->options.attr_clear,
                                                           .propagation = (uint64_t)request->options.propagation,
                                                           .recursive = request->recursive };
        injection->request = request;
        /* "rw" is common in configurations, and allowed; it takes "ro" off no mount that a clone is of */
        if (injection_policy(injection) != NULL)
                injection->attributes.clear &= ~(uint64_t)MOUNT_ATTR_RDONLY;
        target_init(&injection->target);
        injection->source_fd = -EBADF;
        injection->mount_fd = -EBADF;
        injection->old_fd = -EBADF;
        injection->source_digest = HASH_SEED;
}

void injection_digest_text(struct injection *injection, const char *text)
{
        injection->source_digest = hash_bytes(injection->source_digest, text, strlen(text) + 1);
}

const struct policy *injection_policy(const struct injection *injection)
{
        return injection->request->wanted ? NULL : injection->session->policy;
}

int injection_check_policy(const struct injection *injection, struct error *error)
{
        const struct policy *policy = injection_policy(injection);

        if (policy == NULL)
                return 0;
        return policy_check_source(policy, injection->record.origin, !injection->request->read_only, error);
}

int injection_check_path(const struct injection *injection, const char *path, bool writes, struct error *error)
{
        const struct policy *policy = injection_policy(injection);
        cleanup_close int fd = -EBADF;
        char resolved[PATH_MAX];
        struct error ignored;

        if (policy == NULL)
                return 0;
        fd = node_path_open(path, resolved, &ignored); /* sets off no automount; resolved as far as it goes */
        if (!text_climbs(path) && policy_check_source(policy, resolved, writes, &ignored) == 0)
                return 0;
        return policy_forbid(policy, path, writes ? "sources (for writing)" : "sources", error);
}

/* Earlier versions told a device by what udev's link in /dev/mapper leads to. */
static const char *digested_origin(const struct injection *injection, char *path)
{
        const char *origin = injection->record.origin;

        return injection->device.number != 0 && text_starts(origin, "/dev/mapper/") && realpath(origin, path) != NULL
                       ? path
                       : origin;
}

uint64_t injection_digest(const struct injection *injection)
{
        const struct request *request = injection->request;
        const struct mount_options *options = &request->options;
        const char *kind = request->source_kind->word;
        char path[PATH_MAX];
        const char *origin = digested_origin(injection, path);
        const uint64_t numbers[] = { options->attr_set,
                                     options->attr_clear,
                                     (uint64_t)options->propagation,
                                     (uint64_t)request->ids | (uint64_t)request->cache << 8 |
                                             (uint64_t)request_fallback_differs(request) << 16,
                                     (uint64_t)request->recursive << 1 | (uint64_t)request->locked,
                                     (uint64_t)request->uid,
                                     (uint64_t)request->gid,
                                     (uint64_t)request->raw,
                                     injection->source_digest };
        uint64_t digest = hash_bytes(HASH_SEED, numbers, sizeof numbers);

        digest = hash_bytes(digest, kind, strlen(kind) + 1);
        digest = hash_bytes(digest, origin, strlen(origin) + 1);
        digest = hash_bytes(digest, &injection->device.number, sizeof injection->device.number);
        if (request->fs_type != NULL)
                digest = hash_bytes(digest, request->fs_type, strlen(request->fs_type));
        for (size_t i = 0; i < options->fs_count; i++)
                digest = hash_bytes(digest, options->fs_options[i], mount_options_kept(options->fs_options[i]));
        return digest;
}

/*
 * The map of a user namespace says which ids on a disk or a server are the container's. If a user without privileges
 * made the namespace, that user chose the map, and may have chosen any ids.
 */
static int check_map(const struct injection *injection, const struct container *container, struct error *error)
{
        const struct request *request = injection->request;

        if (container->foreign_user_ns)
                return fail_because(error, EPERM, OPERATION_MAP_IDS, container->name,
                                    "its user namespace is not below the one that this program runs in");
        if (!container->own_user_ns || container->map_owner == 0 || injection->kind->fresh || request->ids == IDS_HOST)
                return 0;
        if (injection_policy(injection) != NULL)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "ids",
                                    "user %u of the node made the container's user namespace and chose its ids; with "
                                    "a policy only \"ids\": \"host\" is allowed",
                                    container->map_owner);
        if (request->ids != IDS_AUTO)
                return 0;
        return fail_because(error, EACCES, OPERATION_MAP_IDS, container->name,
                            "user %u of the node made the container's user namespace and chose which ids are the "
                            "container's",
                            container->map_owner);
}

static int check_maps(const struct injection *injection, struct error *error)
{
        const struct container *from = injection->from;
        int r;

        if (from != NULL && container_same_user_ns(from, injection->container))
                return 0; /* nothing is mapped */
        r = check_map(injection, injection->container, error);
        return r < 0 || from == NULL ? r : check_map(injection, from, error);
}

int injection_pin_container(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const struct policy *policy = injection_policy(injection);
        int r = policy == NULL ? 0 : request_policy_check(policy, request, error);

        if (r == 0)
                r = session_pin(injection->session, &request->container, &injection->container, error);
        if (r == 0 && injection->kind->of_container) {
                target_init(&injection->source);
                r = session_pin(injection->session, &request->from, &injection->from, error);
        }
        return r < 0 ? r : check_maps(injection, error);
}

int injection_claim(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        int r = session_open_state(injection->session, error);

        if (r < 0)
                return r;
        record->pid = injection->container->pid;
        record->start_time = injection->container->start_time;
        record->mnt_ns = injection->container->mnt_ns;
        /* pidfd < 0: its pid is of another procfs */
        r = injection->container->pidfd >= 0 ? proc_pid_namespace(&record->pid_ns)
                                             : proc_pid_namespace_of(injection->container->proc_fd, &record->pid_ns);
        if (r < 0)
                return fail(error, -r, OPERATION_READ, "ns/pid");
        record->recursive = request->recursive;
        if (injection->container->identity[0] != '\0')
                wish_key(injection->container->identity, record->wanted);
        else if (request->unwanted && request->container.or_pid != 0 &&
                 request->container.or_pid == injection->container->pid)
                return request_rules_refuse_nameless("persist", error);
        else if (request->persist)
                return fail_because(error, EINVAL, OPERATION_FIND_CONTAINER, injection->container->name,
                                    "\"persist\" needs a container that can be told from a later one of this name: one "
                                    "of crun or runc, with its bundle on a filesystem that knows when directories were "
                                    "made, or one with a full id of 64 digits");
        (void)text_copy(record->container_id, sizeof record->container_id, injection->container->id);
        if (injection->container->runtime != NULL)
                (void)text_copy(record->runtime, sizeof record->runtime, injection->container->runtime);
        (void)text_copy(record->source, sizeof record->source, request->source);
        (void)text_copy(record->origin, sizeof record->origin, request->source); /* until open() resolves its links */
        (void)text_copy(record->target, sizeof record->target, request->target);
        (void)text_copy(record->boot_id, sizeof record->boot_id, injection->session->boot_id);
        mount_record_default_id(&injection->container->mnt_ns, request->target, record->id);
        if (request->id != NULL) {
                if (mount_record_id_derived(request->id) && strcmp(request->id, record->id) != 0)
                        return fail_because(error, EINVAL, OPERATION_READ_RECORD, request->id,
                                            "ids of this form are derived from a container and a target, and this is "
                                            "not theirs");
                (void)text_copy(record->id, sizeof record->id, request->id);
        }
        injection->lock_count = mount_record_lock_keys(record, injection->locks);
        if (injection->from != NULL) {
                record->from_pid = injection->from->pid;
                (void)text_copy(record->from_id, sizeof record->from_id, injection->from->id);
        }
        return 0;
}

int injection_fail_ids(const struct injection *injection, const char *reason, struct error *error)
{
        return fail_because(error, EOPNOTSUPP, OPERATION_MAP_IDS, injection->request->source, "%s", reason);
}

/* What is wanted is of that source, not of another one that has its name by now. */
static int check_wanted_source(const struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        char identity[SOURCE_IDENTITY_SIZE];
        int r;

        if (!request->wanted || injection->kind->identify == NULL)
                return 0;
        r = injection->kind->identify(injection, identity, error);
        if (r < 0 || strcmp(identity, request->wanted_source) == 0)
                return r;
        return fail_because(
                error, ESTALE, "find source", request->source,
                "it is another one than the one that \"persist\" was said of; mount-remove takes the wish back");
}

int injection_open_source(struct injection *injection, struct error *error)
{
        int r = injection->kind->open(injection, error);

        char *uses = injection->record.uses;

        if (r < 0 || (r = check_wanted_source(injection, error)) < 0)
                return r;
        use_keys_add_device(uses, injection->device.number);
        injection->record.disk = injection->device.number;
        injection->record.disk_sequence =
                injection->device.number != 0 ? block_device_disk(injection->device.number) : 0;
        /* before anything is written to it; again once the mount is recorded */
        if (injection->device.number != 0 && injection->session->state.dir_fd >= 0 &&
            (r = access_check_container(&injection->session->state, injection->session->state_dir, &injection->record,
                                        injection->volume_file, !injection->request->read_only, error)) < 0)
                return r;
        use_keys_add_opened(uses, injection->layer_count == 0 ? injection->source_fd : -EBADF);
        if (injection->from != NULL)
                use_keys_add_opened(uses, injection->source.fd);
        for (size_t i = 0; i < injection->layer_count; i++)
                use_keys_add_opened(uses, injection->layer_fds[i]);
        return 0;
}

int injection_check_remap(const struct injection *injection, struct error *error)
{
        if (injection->container->own_user_ns && injection->request->ids == IDS_REMAP &&
            injection->kind->remap == REMAP_NEVER)
                return injection_fail_ids(injection,
                                          "\"remap\" is not for this kind of mount: the kernel maps its owners", error);
        return 0;
}

bool injection_falls_back(const struct injection *injection)
{
        const struct request *request = injection->request;
        const struct policy *policy = injection_policy(injection);
        const enum source_remap remap = injection->kind->remap;

        /* another container's owners may have to be mapped for one without a user namespace of its own, too */
        if ((!injection->container->own_user_ns && !injection->kind->of_container) || request->ids != IDS_AUTO ||
            remap == REMAP_NEVER || request->recursive)
                return false;
        if (request->fallback != FALLBACK_UNSAID)
                return request->fallback == FALLBACK_REMAP;
        return remap == REMAP_FALLBACK || (policy != NULL && policy_falls_back(policy));
}

void injection_let_go(struct injection *injection)
{
        if (injection->kind->release != NULL)
                injection->kind->release(injection);
}

bool injection_close_may_wait(const struct injection *injection)
{
        return injection->replacing || injection->kind->close_waits;
}

void injection_close(struct injection *injection)
{
        fd_close(&injection->mount_fd);
        fd_close(&injection->old_fd);
        fd_close(&injection->source_fd);
        target_release(&injection->target);
        if (injection->from != NULL)
                target_release(&injection->source);
        for (size_t i = 0; i < injection->layer_count; i++)
                fd_close(&injection->layer_fds[i]);
}
