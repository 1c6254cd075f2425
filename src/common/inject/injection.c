/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/injection.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "inject/request_policy.h"

void injection_begin(struct injection *injection, struct session *session, const struct request *request)
{
        injection->kind = request->source_kind;
        injection->session = session;
        injection->attributes = (struct mount_attributes){ .set = request->options.attr_set,
                                                           .clear = request->options.attr_clear,
                                                           .propagation = (uint64_t)request->options.propagation,
                                                           .recursive = request->recursive };
        injection->request = request;
        injection->target.fd = -EBADF;
        injection->target.base_fd = -EBADF;
        injection->source = injection->target;
        injection->source_fd = -EBADF;
        injection->mount_fd = -EBADF;
        injection->old_fd = -EBADF;
        injection->source_digest = HASH_SEED;
}

void injection_digest_text(struct injection *injection, const char *text)
{
        injection->source_digest = hash_bytes(injection->source_digest, text, strlen(text) + 1);
}

int injection_check_policy(const struct injection *injection, struct error *error)
{
        const struct policy *policy = injection->session->policy;

        if (policy == NULL)
                return 0;
        return policy_check_source(policy, injection->record.origin, !injection->request->read_only, error);
}

/* How many bytes of an option a record's hash may include: not the value of an option that may hold a secret. */
static size_t option_in_record(const char *option)
{
        static const char *const secrets[] = { "pass", "secret", "cred", "key", "token", "user" };
        size_t name = strcspn(option, "=");

        for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
                const char *found = strstr(option, secrets[i]);

                if (found != NULL && (size_t)(found - option) < name)
                        return name;
        }
        return strlen(option);
}

uint64_t injection_digest(const struct injection *injection)
{
        const struct request *request = injection->request;
        const struct mount_options *options = &request->options;
        const uint64_t numbers[] = {
                (uint64_t)request->kind, options->attr_set,
                options->attr_clear,     (uint64_t)options->propagation,
                (uint64_t)request->ids,  (uint64_t)request->recursive << 1 | (uint64_t)request->locked,
                (uint64_t)request->uid,  (uint64_t)request->gid,
                (uint64_t)request->raw,  injection->source_digest
        };
        uint64_t digest = hash_bytes(HASH_SEED, numbers, sizeof numbers);

        digest = hash_bytes(digest, injection->record.origin, strlen(injection->record.origin) + 1);
        digest = hash_bytes(digest, &injection->device.number, sizeof injection->device.number);
        if (request->fs_type != NULL)
                digest = hash_bytes(digest, request->fs_type, strlen(request->fs_type));
        for (size_t i = 0; i < options->fs_count; i++)
                digest = hash_bytes(digest, options->fs_options[i], option_in_record(options->fs_options[i]));
        return digest;
}

int injection_pin_container(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const struct policy *policy = injection->session->policy;
        int r = policy == NULL ? 0 : request_policy_check(policy, request, error);

        if (r == 0)
                r = session_pin(injection->session, &request->container, &injection->container, error);
        if (r == 0 && injection->kind->of_container)
                r = session_pin(injection->session, &request->from, &injection->from, error);
        return r;
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
        record->recursive = request->recursive;
        (void)text_copy(record->container_id, sizeof record->container_id, injection->container->id);
        (void)text_copy(record->source, sizeof record->source, request->source);
        (void)text_copy(record->origin, sizeof record->origin, request->source); /* until open() resolves its links */
        (void)text_copy(record->target, sizeof record->target, request->target);
        (void)text_copy(record->boot_id, sizeof record->boot_id, injection->session->boot_id);
        mount_record_default_id(&injection->container->mnt_ns, request->target, record->id);
        /* the lock of the target, and that of the record if its id is another */
        injection->locks[injection->lock_count++] = mount_record_key(record->id);
        if (request->id != NULL) {
                if (mount_record_id_derived(request->id) && strcmp(request->id, record->id) != 0)
                        return fail_because(error, EINVAL, "read record", request->id,
                                            "ids of this form are derived from a container and a target, and this is "
                                            "not theirs");
                (void)text_copy(record->id, sizeof record->id, request->id);
                injection->locks[injection->lock_count++] = mount_record_key(record->id);
        }
        if (injection->from != NULL) {
                record->from_pid = injection->from->pid;
                (void)text_copy(record->from_id, sizeof record->from_id, injection->from->id);
        }
        return 0;
}

int injection_fail_ids(const struct injection *injection, const char *reason, struct error *error)
{
        return fail_because(error, EOPNOTSUPP, "map ids", injection->request->source, "%s", reason);
}

int injection_open_source(struct injection *injection, struct error *error)
{
        return injection->kind->open(injection, error);
}

int injection_make_mount(struct injection *injection, struct error *error)
{
        bool owned = injection->container->own_user_ns && injection->request->ids == IDS_USERNS;

        if (owned && !injection->kind->ownable)
                return injection_fail_ids(
                        injection, "a bind mount has the superblock of its source; \"userns\" needs a new one", error);
        if (injection->container->own_user_ns && injection->request->ids == IDS_REMAP &&
            injection->kind->remap == REMAP_NEVER)
                return injection_fail_ids(injection,
                                          "\"remap\" is not for this kind of mount: the kernel maps its owners", error);
        return injection->kind->make(injection, owned, error);
}

void injection_release(struct injection *injection)
{
        fd_close(&injection->mount_fd);
        fd_close(&injection->old_fd);
        fd_close(&injection->source_fd);
        target_release(&injection->target);
        target_release(&injection->source);
        for (size_t i = 0; i < injection->layer_count; i++)
                fd_close(&injection->layer_fds[i]);
}
