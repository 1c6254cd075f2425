/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/injection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "inject/remap.h"
#include "inject/request_policy.h"
#include "mount/detached.h"
#include "mount/in_container.h"

void injection_begin(struct injection *injection, struct session *session, const struct request *request,
                     const struct source_kind *kind)
{
        injection->kind = kind;
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

/* How much of an option may go into a record, as part of a hash: not the value of what could be a secret. */
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

/* Everything that makes two requests ask for different mounts, and where their sources lead. */
static uint64_t request_digest(const struct injection *injection)
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
        if (r == 0 && request->kind == REQUEST_MOUNT_CONTAINER)
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
        (void)text_copy(record->origin, sizeof record->origin, request->source); /* until its links are resolved */
        (void)text_copy(record->target, sizeof record->target, request->target);
        (void)text_copy(record->boot_id, sizeof record->boot_id, injection->session->boot_id);
        mount_record_default_id(&injection->container->mnt_ns, request->target, record->id);
        /* the target's lock, whatever the record is called, and the record's */
        injection->locks[injection->lock_count++] = mount_record_key(record->id);
        if (request->id != NULL) {
                if (mount_record_id_derived(request->id) && strcmp(request->id, record->id) != 0)
                        return fail_because(error, EINVAL, "read record", request->id,
                                            "an id of this form is derived from a container and a target, and this is "
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

/* The record's mount is on top at the target: done already, if it is the one that is asked for. */
static int accept_present(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        const char *container = injection->container->name;
        char options[sizeof earlier->options];
        int r;

        if (earlier->digest != injection->record.digest) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "an earlier call (record %s) put another mount there", earlier->id);
                return error_where(error, container);
        }
        r = in_container_options(injection->container, injection->request->target, &earlier->identity, options,
                                 sizeof options, error);
        if (r < 0)
                return r;
        if (strcmp(options, earlier->options) != 0) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "the mount is there, but inside the container it was remounted: %s, not %s", options,
                                   earlier->options);
                return error_where(error, container);
        }
        injection->record = *earlier;
        injection->record.pid = injection->container->pid; /* as this call named the container */
        (void)text_copy(injection->record.container_id, sizeof injection->record.container_id,
                        injection->container->id);
        injection->already = true;
        return 0;
}

/* The record's mount is not at the target. Its record may be written over once the mount is nowhere else, either. */
static int check_earlier(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        enum placement placement;
        int r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);

        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        if (strcmp(earlier->target, injection->request->target) != 0)
                return fail_because(error, EEXIST, "read record", earlier->id, "this id names the mount on %s already",
                                    earlier->target);
        (void)fail_because(error, EBUSY, "find target", injection->request->target,
                           "an earlier mount for it (record %s) was moved or covered inside the container",
                           earlier->id);
        return error_where(error, injection->container->name);
}

/* What is on top at the target is this record's: it gives way to what is asked for. */
static int replace_record(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        int r;

        if (strcmp(earlier->mount_point, injection->record.mount_point) != 0) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "what is mounted there was moved inside the container, from %s",
                                   earlier->mount_point);
                return error_where(error, injection->container->name);
        }
        if (earlier->raw_device != 0 && injection->kind->settle == NULL) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "what is mounted there is a raw device; mount-remove takes it away");
                return error_where(error, injection->container->name);
        }
        injection->replaced = *earlier;
        if (!injection->request->dry_run) {
                /* a mount taken away meanwhile may hand its directories over to this one, but not from here on */
                r = state_lock(&injection->session->state, mount_record_tree_key(&injection->record.mnt_ns), error);

                if (r == 0)
                        r = mount_record_read(&injection->session->state, earlier->id, &injection->replaced, error);
                if (r < 0)
                        return r;
        }
        if (mount_identity_same(&injection->target.mount, &injection->replaced.replaces)) {
                /* its call was killed before it placed anything: what is there is still what that was to replace */
                struct mount_record intended = injection->replaced;

                intended.replaces_raw = intended.raw_device;
                intended.raw_device = 0;
                injection->replaced.raw_device = injection->replaced.replaces_raw;
                injection->replaced.raw_before = injection->replaced.replaces_raw_before;
                injection->replaced.raw_writes = true; /* as far as anybody knows */
                injection->replaced.replaces_raw = 0;
                if (!injection->request->dry_run && injection->kind->settle != NULL &&
                    (r = injection->kind->settle(injection, &intended, error)) < 0)
                        return r;
        }
        injection->replacing = true;
        injection->replaced.identity = injection->target.mount;
        injection->record.replaces = injection->target.mount;
        injection->record.replaces_raw = injection->replaced.raw_device;
        injection->record.replaces_raw_before = injection->replaced.raw_before;
        injection->made_before = injection->replaced.made;
        return 0;
}

/*
 * An earlier call swapped mounts and was killed on the way: the new one lies beneath the old one. The old one goes now.
 * 1 done, 0 there is nothing to finish, or negative errno.
 */
static int finish_swap(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        enum placement placement;
        int r;

        if (injection->request->dry_run || !mount_identity_same(&injection->target.mount, &earlier->replaces))
                return 0;
        r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);
        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        if ((r = session_remember_home(injection->session, error)) < 0)
                return r;
        r = in_container_remove(injection->container, earlier->mount_point, &earlier->replaces, /* lazily= */ true,
                                error);
        if (r == 0)
                r = session_go_home(injection->session, error);
        return r < 0 ? r : 1;
}

/* The raw device of what was replaced, if it had one, is not needed for that any more; from here on nobody knows it. */
static int settle_raw(const struct injection *injection, struct mount_record *record, struct error *error)
{
        int r = 0;

        if (record->replaces_raw == 0 || injection->kind->settle == NULL)
                return 0;
        r = injection->kind->settle((struct injection *)injection, record, error);
        record->replaces_raw = 0;
        return r < 0 ? r : mount_record_write(&injection->session->state, record, error);
}

/* The swap of a killed call is over: the old mount's record goes if it has another id, and ours forgets about it. */
static int forget_replaced(const struct injection *injection, struct mount_record *earlier, struct error *error)
{
        static struct mount_record other;
        const struct state *state = &injection->session->state;
        int r;

        if (injection->request->dry_run)
                return 0;
        if (earlier->replaces.id == 0)
                return settle_raw(injection, earlier, error);
        r = mount_record_find(state, injection->container, injection->record.boot_id, &earlier->replaces,
                              /* by_root= */ true, earlier->id, &other, error);
        if (r == 0)
                r = mount_record_remove(state, other.id, error);
        if (r < 0 && r != -ENOENT)
                return r;
        earlier->replaces = (struct mount_identity){};
        r = mount_record_write(state, earlier, error);
        return r < 0 ? r : settle_raw(injection, earlier, error);
}

/*
 * Another call was killed while it was to replace what is there, whatever it called that: it is brought to an end. Its
 * mount lies beneath: then the one on top goes, as it was to. There is none: then its record goes. 1 the target is to
 * be looked at again, 0 nothing was left, or negative errno.
 */
static int finish_other(struct injection *injection, struct error *error)
{
        static struct mount_record other;
        const struct state *state = &injection->session->state;
        int r = mount_record_find_replacing(state, injection->container, injection->record.boot_id,
                                            &injection->target.mount, &other, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = finish_swap(injection, &other, error);
        if (r > 0) {
                r = forget_replaced(injection, &other, error);
                return r < 0 ? r : 1;
        }
        if (r < 0 || strcmp(other.id, injection->record.id) == 0)
                return r; /* our own record is written over anyway */
        if (other.raw_device != 0 && injection->kind->settle != NULL) {
                other.replaces_raw = other.raw_device;
                other.raw_device = 0;
                if ((r = injection->kind->settle(injection, &other, error)) < 0)
                        return r;
        }
        return mount_record_remove(state, other.id, error);
}

/* Something is mounted exactly at the target. */
static int look_at_mount(struct injection *injection, struct mount_record *known, struct error *error)
{
        const struct request *request = injection->request;
        static struct mount_record other;
        int r;

        if (known != NULL && mount_identity_same(&injection->target.mount, &known->identity)) {
                if ((r = forget_replaced(injection, known, error)) < 0)
                        return r;
                r = accept_present(injection, known, error);
                if (r == 0 && known->translator_key != 0 && !request->dry_run &&
                    !mount_record_remap_lives(&injection->session->state, known->translator_key)) {
                        injection->already = false; /* it is there, and dead */
                        return replace_record(injection, known, error);
                }
                return r == -EBUSY && request->replace ? replace_record(injection, known, error) : r;
        }
        if (request->replace && injection->session->state.dir_fd >= 0) {
                const struct state *state = &injection->session->state;
                const char *boot_id = injection->record.boot_id;

                /* rather the record of what is there than our own, of a call that was killed before it placed anything
                 */
                r = mount_record_find(state, injection->container, boot_id, &injection->target.mount,
                                      /* by_root= */ true, injection->record.id, &other, error);
                if (r == -ENOENT)
                        r = mount_record_find(state, injection->container, boot_id, &injection->target.mount,
                                              /* by_root= */ true, /* except= */ NULL, &other, error);
                if (r != -ENOENT)
                        return r < 0 ? r : replace_record(injection, &other, error);
        }
        (void)fail_because(error, EBUSY, "find target", request->target, "something is mounted there already");
        return error_where(error, injection->container->name);
}

/* The target, as it is now; with the tree lock held if something has to be made. */
static int look_at_target(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        int r;

        target_release(&injection->target);
        r = target_look(injection->container, request->target, &injection->target, error);
        if (r == 0 && injection->target.missing > 0 && !request->dry_run) {
                /* look again, now that no other call makes or removes mount points in this container */
                target_release(&injection->target);
                r = state_lock(&injection->session->state, mount_record_tree_key(&injection->record.mnt_ns), error);
                if (r == 0)
                        r = target_look(injection->container, request->target, &injection->target, error);
        }
        return r;
}

int injection_look(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        struct mount_record earlier;
        bool known;
        int r;

        injection->replacing = false; /* a batch looks twice */
        injection->made_before = 0;
        record->replaces = (struct mount_identity){};
        record->replaces_raw = 0;
        record->digest = request_digest(injection);
        r = injection->session->state.dir_fd < 0
                    ? -ENOENT
                    : mount_record_read(&injection->session->state, record->id, &earlier, error);
        if (r < 0 && r != -ENOENT && r != -EBADMSG)
                return r;
        known = r == 0 && mount_record_is_of(&earlier, injection->container, record->boot_id);
        if (r == 0 && !known && strcmp(earlier.boot_id, record->boot_id) == 0) {
                /* the chosen name is another container's; it is free again once that one is gone */
                cleanup_container struct container alive = CONTAINER_NONE;
                struct error ignored;

                if (mount_record_reach(&earlier, record->boot_id, &alive, &ignored) == 0)
                        return fail_because(error, EEXIST, "read record", record->id,
                                            "this id names a mount in another container (pid %d)", earlier.pid);
        }
        if ((r = look_at_target(injection, error)) < 0)
                return r;
        if (known && injection->target.mount_root && (r = finish_swap(injection, &earlier, error)) != 0) {
                if (r < 0 || (r = look_at_target(injection, error)) < 0)
                        return r;
        }
        if (injection->target.mount_root && request->replace && !request->dry_run &&
            (r = finish_other(injection, error)) != 0)
                return r < 0 ? r : injection_look(injection, error); /* once more: there is nothing left to finish */
        (void)text_copy(record->mount_point, sizeof record->mount_point, injection->target.path);
        if (injection->target.mount_root) {
                /* a record of this id whose mount is elsewhere, or covered here, is not to be written over */
                if (known && !mount_identity_same(&injection->target.mount, &earlier.identity) &&
                    !mount_identity_same(&injection->target.mount, &earlier.replaces) &&
                    (r = check_earlier(injection, &earlier, error)) < 0)
                        return r;
                return look_at_mount(injection, known ? &earlier : NULL, error);
        }
        if (injection->target.missing > 0 && !request->mkdir)
                return container_fail(injection->container, ENOENT, "find target", request->target, error);
        if (known && (r = check_earlier(injection, &earlier, error)) < 0)
                return r;
        if (known && strcmp(earlier.mount_point, record->mount_point) == 0)
                injection->made_before = earlier.made; /* it was killed, or its mount was taken away inside */
        if (injection->made_before > 0)
                injection->earlier = earlier; /* comes back if this call fails: it knows what was made */
        return 0;
}

static int fail_strategy(const struct injection *injection, const char *reason, struct error *error)
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
                return fail_strategy(
                        injection, "a bind shows the superblock that there is; \"userns\" would need a new one", error);
        if (injection->container->own_user_ns && injection->request->ids == IDS_REMAP && !injection->kind->translatable)
                return fail_strategy(injection, "\"remap\" is for what the kernel cannot map, and this it can", error);
        return injection->kind->make(injection, owned, error);
}

/* Whether all attributes are locked: asked for, or what a policy gives read-only is to stay so. */
static bool locks_all(const struct injection *injection)
{
        const struct request *request = injection->request;

        return request->locked || (request->held && request->read_only && injection->container->own_user_ns);
}

/* Whether nosuid and nodev are locked in any case, and the rest only if it was asked for. */
static bool locks_some(const struct injection *injection)
{
        return injection->container->own_user_ns && (injection->kind->foreign || injection->request->held);
}

static int dress(struct injection *injection, bool mapped, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_attributes attributes = { .set = injection->attributes.set,
                                               .clear = injection->attributes.clear,
                                               .propagation = injection->attributes.propagation,
                                               .recursive = injection->attributes.recursive,
                                               .apart = injection->container->own_user_ns };
        int r;

        /* What shall stay the container's to change comes after the lock, which takes whatever is set by then. */
        if (locks_some(injection) && !locks_all(injection))
                attributes.set &= ~(uint64_t)(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
        r = detached_mount_dress(injection->mount_fd, request->source, &attributes,
                                 mapped ? injection->container->user_ns_fd : -1, error);
        if (r == -EPERM && injection->from != NULL)
                (void)snprintf(error->reason, sizeof error->reason,
                               "attributes of the source's mount, its access times (atime) perhaps, are locked in "
                               "container %s",
                               injection->from->name);
        return r;
}

/* Whether owners come out right on a superblock that the container's user namespace owns; btrfs on 6.1 shows 65534. */
static int check_owner(const struct injection *injection, struct error *error)
{
        struct stat st;

        if (fstat(injection->mount_fd, &st) < 0)
                return fail(error, errno, "fstat", injection->request->source);
        if (st.st_uid == 65534 || st.st_gid == 65534)
                return fail_strategy(injection,
                                     "owned by the container's user namespace, its owners would show as 65534", error);
        return 0;
}

/* A filesystem that cannot be id-mapped: a superblock of the container's own, where the running kernel allows it. */
static int dress_owned(struct injection *injection, struct error *error)
{
        struct error mapped = *error;
        int r;

        fd_close(&injection->mount_fd); /* the node's superblock goes, so that the container's can be */
        r = injection->kind->make(injection, /* owned= */ true, error);
        if (r == 0)
                r = check_owner(injection, error);
        if (r == 0)
                r = dress(injection, /* mapped= */ false, error);
        if (r < 0) {
                struct error owned = *error;

                (void)fail_because(error, mapped.errnum, mapped.operation, mapped.subject,
                                   "idmapped: %s; userns: %s: %s", strerrorname_np(mapped.errnum),
                                   strerrorname_np(owned.errnum),
                                   owned.kernel[0] != '\0' ? owned.kernel : owned.reason);
        }
        return r;
}

int injection_translate(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        /* what nobody may do with the mount that is shown, nobody may do through the one behind it, either */
        const struct mount_attributes behind = {
                .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                       (injection->attributes.set & (MOUNT_ATTR_RDONLY | MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME)),
                .clear = (injection->attributes.set & MOUNT_ATTR__ATIME) != 0 ? MOUNT_ATTR__ATIME : 0,
                .propagation = MS_PRIVATE,
                .recursive = request->recursive,
        };
        int fd;
        int r = detached_mount_dress(injection->mount_fd, request->source, &behind, /* user_ns_fd= */ -1, error);

        if (r < 0)
                return r;
        fd = remap_mount(injection->mount_fd, request->source, injection->container, &injection->session->state,
                         &record->translator_key, &record->translator_pid, error);
        if (fd < 0)
                return fd;
        fd_close(&injection->mount_fd); /* the translator's now */
        injection->mount_fd = fd;
        (void)text_copy(record->id_mapping, sizeof record->id_mapping, "remap");
        return 0;
}

static int dress_translated(struct injection *injection, struct error *error)
{
        int r = injection_translate(injection, error);

        return r < 0 ? r : dress(injection, /* mapped= */ false, error);
}

int injection_dress(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const char *word = NULL;
        int r;

        if (injection->kind->maps)
                return dress(injection, /* mapped= */ false, error);
        if (injection->container->own_user_ns && request->ids == IDS_REMAP)
                return dress_translated(injection, error);
        if (!injection->container->own_user_ns)
                word = "none";
        else if (request->ids == IDS_HOST)
                word = "host";
        else if (request->ids == IDS_USERNS) {
                if ((r = check_owner(injection, error)) < 0)
                        return r;
                word = "userns";
        }
        if (word != NULL) {
                r = dress(injection, /* mapped= */ false, error);
        } else {
                word = "idmapped";
                r = dress(injection, /* mapped= */ true, error);
                if ((r == -EINVAL || r == -EPERM) && injection->kind->ownable && request->ids == IDS_AUTO) {
                        word = "userns";
                        r = dress_owned(injection, error);
                }
                if (r < 0 && error->reason[0] == '\0')
                        (void)snprintf(error->reason, sizeof error->reason,
                                       "its owners cannot be mapped for the container (%s)",
                                       strerrordesc_np(error->errnum));
        }
        if (r < 0)
                return r;
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, word);
        return 0;
}

int injection_lock(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_attributes rest;
        int fd;

        if (!injection->container->own_user_ns && !request->locked)
                return 0; /* its root is the node's: nothing binds it */
        if (!injection->container->own_user_ns)
                return fail_because(error, EINVAL, "lock attributes", request->target,
                                    "the container has no user namespace of its own, so its root can undo everything");
        fd = detached_mount_lock(injection->mount_fd, injection->container, injection->directory, request->recursive,
                                 error);
        if (fd < 0)
                return fd;
        fd_close(&injection->mount_fd);
        injection->mount_fd = fd;
        if (locks_all(injection))
                return 0;
        rest = (struct mount_attributes){
                .set = injection->attributes.set & (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC),
                .propagation = injection->attributes.propagation,
                .recursive = request->recursive,
        };
        return detached_mount_dress(fd, request->source, &rest, -1, error);
}

/* Whether a mount may be put on what is there now. */
static int check_target(struct injection *injection, struct error *error)
{
        const struct target *target = &injection->target;
        const char *path = injection->request->target;

        if (target->mount_root && !injection->replacing)
                (void)fail_because(error, EBUSY, "find target", path, "something is mounted there already");
        else if (target->directory != injection->directory)
                (void)fail_because(error, injection->directory ? ENOTDIR : EISDIR, "find target", path,
                                   injection->directory ? "a directory cannot be mounted on a file"
                                                        : "a file cannot be mounted on a directory");
        else
                return 0;
        return error_where(error, injection->container->name);
}

static int describe(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        struct mount_seen seen;
        struct statfs fs;
        int r = mount_see(injection->mount_fd, "", &seen);

        if (r < 0)
                return fail(error, -r, "statx", record->source);
        if (fstatfs(injection->mount_fd, &fs) < 0)
                return fail(error, errno, "fstatfs", record->source);
        record->identity = seen.identity;
        record->below = record->recursive ? MOUNT_RECORD_NOT_COUNTED : 0;
        r = mount_see_short_id(injection->mount_fd, &record->identity.short_id);
        if (r < 0)
                return fail(error, -r, "statx", record->source);
        mount_options_text((unsigned long)fs.f_flags, record->options, sizeof record->options);
        (void)text_copy(record->type, sizeof record->type, injection->fs_type[0] != '\0' ? injection->fs_type : "bind");
        return 0;
}

int injection_record(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        const struct target *target = &injection->target;
        int r;

        if (target->missing == 0 && (r = check_target(injection, error)) < 0)
                return r;
        if ((r = describe(injection, error)) < 0)
                return r;
        record->made = target->missing > injection->made_before ? target->missing : injection->made_before;
        injection->recorded = true; /* from here on it may be there */
        return mount_record_write(&injection->session->state, record, error);
}

int injection_make_target(struct injection *injection, struct error *error)
{
        struct target *target = &injection->target;
        int r = target_make(injection->container, target, injection->directory, error);

        if (r < 0)
                return r;
        /* what was missing may be there after all, by a rename in the container: look again as at what was there */
        return check_target(injection, error);
}

int injection_allow_device(struct injection *injection, struct error *error)
{
        return injection->kind->allow(injection, error);
}

/*
 * The new mount is placed beneath the old one, which then goes: the target is never bare. Where the kernel cannot do
 * that (before Linux 6.5, or for a mount that came by propagation) the old one goes first. A clone of it is kept until
 * everything is done: it comes back if anything fails.
 */
static int swap(struct injection *injection, struct error *error)
{
        const char *path = injection->record.mount_point;
        int r;

        injection->old_fd = detached_mount_clone_inside(injection->target.fd, injection->container, path,
                                                        /* recursive= */ true, /* user_ns_fd= */ -1, error);
        if (injection->old_fd < 0 && injection->old_fd != -EINVAL) /* EINVAL: unbindable; then there is no way back */
                return injection->old_fd;
        injection->placed = true; /* from here on it may be there */
        r = in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ true,
                               &injection->attributes, error);
        if (r < 0 && r != -EINVAL)
                return r;
        injection->atomic = r == 0;
        fd_close(&injection->target.fd); /* held, it keeps the old one */
        r = in_container_remove(injection->container, path, &injection->record.replaces, /* lazily= */ true, error);
        if (r < 0 || injection->atomic)
                return r;
        if ((r = session_go_home(injection->session, error)) < 0 ||
            (r = target_look(injection->container, injection->request->target, &injection->target, error)) < 0)
                return r;
        return in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ false,
                                  &injection->attributes, error);
}

int injection_place(struct injection *injection, struct error *error)
{
        int r = container_alive(injection->container, error);

        if (r < 0)
                return r;
        if (injection->replacing) {
                if ((r = session_remember_home(injection->session, error)) == 0)
                        r = swap(injection, error);
        } else {
                injection->placed = true; /* from here on it may be there */
                r = in_container_place(injection->mount_fd, injection->container, &injection->target,
                                       /* beneath= */ false, &injection->attributes, error);
        }
        fd_close(&injection->target.fd); /* held, it would make the container's own umount fail with EBUSY */
        return r;
}

int injection_confirm(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        char options[sizeof record->options];
        int r = container_alive(injection->container, error);

        if (r == 0)
                r = in_container_options(injection->container, request->target, &record->identity, options,
                                         sizeof options, error);
        if (r < 0)
                return r;
        if (strcmp(options, record->options) != 0) {
                (void)fail_because(error, ESTALE, "look again", request->target,
                                   "it was remounted inside the container meanwhile: %s, not %s", options,
                                   record->options);
                return error_where(error, injection->container->name);
        }
        /* what came with it, so that what the container mounts below later is told apart when it is taken away */
        if (request->recursive &&
            (r = in_container_count_below(injection->container, record->mount_point, &record->below, error)) < 0)
                return r;
        /* as long as the old one's record is there, ours tells of it */
        if (injection->replacing && strcmp(injection->replaced.id, record->id) != 0)
                r = mount_record_remove(&injection->session->state, injection->replaced.id, error);
        record->replaces = (struct mount_identity){};
        if (r == 0 && (request->recursive || injection->replacing))
                r = mount_record_write(&injection->session->state, record, error);
        if (r == 0 && record->replaces_raw != 0 && (r = session_go_home(injection->session, error)) == 0)
                r = settle_raw(injection, record, error);
        return r;
}

/* The mount that was to be replaced, at its place again: another mount of the same, so its record tells another id. */
static int restore_old(struct injection *injection, struct error *error)
{
        struct mount_record *old = &injection->replaced;
        const struct mount_attributes as_it_was = { .recursive = true };
        cleanup_target struct target target = TARGET_NONE;
        enum placement placement;
        struct mount_seen seen;
        int r = in_container_find(injection->container, old->mount_point, &old->identity, &placement, error);

        if (r < 0 || placement != PLACEMENT_GONE || injection->old_fd < 0)
                return r;
        if ((r = target_look(injection->container, old->mount_point, &target, error)) < 0)
                return r;
        if (target.missing > 0)
                return container_fail(injection->container, ENOENT, "find target", old->mount_point, error);
        r = mount_see(injection->old_fd, "", &seen);
        if (r == 0) {
                old->identity = seen.identity;
                r = mount_see_short_id(injection->old_fd, &old->identity.short_id);
        }
        if (r < 0)
                return fail(error, -r, "statx", old->mount_point);
        if ((r = mount_record_write(&injection->session->state, old, error)) < 0)
                return r;
        return in_container_place(injection->old_fd, injection->container, &target, /* beneath= */ false, &as_it_was,
                                  error);
}

/* The record goes, or becomes what it was. */
static int undo_record(struct injection *injection, struct error *error)
{
        const struct state *state = &injection->session->state;
        int r = 0;

        if (injection->replacing) {
                r = mount_record_write(state, &injection->replaced, error);
                if (r < 0 || strcmp(injection->replaced.id, injection->record.id) == 0)
                        return r;
        } else if (injection->made_before > 0)
                return mount_record_write(state, &injection->earlier, error);
        return mount_record_remove(state, injection->record.id, error);
}

int injection_undo(struct injection *injection, struct error *error)
{
        const struct target *target = &injection->target;
        unsigned left;
        int r = 0;

        if (injection->placed) {
                r = session_remember_home(injection->session, error);
                if (r == 0)
                        r = in_container_take_back(injection->mount_fd, injection->container, error);
                if (r == 0)
                        r = session_go_home(injection->session, error);
                if (r == 0 && injection->replacing)
                        r = restore_old(injection, error);
                if (r < 0)
                        return r;
        }
        fd_close(&injection->target.fd);
        if (injection->recorded) {
                r = target_unmake(injection->container, injection->record.mount_point, target->missing - target->made,
                                  target->made, &left, error);
        }
        if (injection->kind->undo != NULL) {
                struct error other;
                int undone = injection->kind->undo(injection, r == 0 ? error : &other);

                r = r == 0 ? undone : r;
        }
        /* last: as long as anything is left, the record tells */
        return r == 0 && injection->recorded ? undo_record(injection, error) : r;
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
