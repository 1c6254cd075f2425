/* SPDX-License-Identifier: Apache-2.0 */
/* removal_find.c - which record a removal is about, and its locks. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "inject/former.h"
#include "inject/steps.h"
#include "mount/target.h"
#include "process/proc.h"
#include "process/worker.h"
#include "state/config.h"
#include "state/uses.h"

/* Whether this record is of a mount at the request's target: 1 and the mount is there, 0 and it is gone, or -ENOENT. */
static int match_target(struct removal *removal, const struct mount_record *record, const char *boot_id)
{
        const char *target = removal->request->target;
        enum placement placement;
        struct error ignored; /* a mount that cannot be looked for is not there */

        if ((strcmp(record->target, target) != 0 && strcmp(record->mount_point, target) != 0) ||
            mount_record_is_former(record) || !mount_record_is_of(record, &removal->container, boot_id))
                return -ENOENT;
        if (in_container_find(&removal->container, record->mount_point, &record->identity, &placement, &ignored) < 0)
                return 0;
        return placement != PLACEMENT_GONE;
}

/* Gives removal->record, which stays what it was where there is none. */
static int read_record(struct removal *removal, const char *id, struct error *error)
{
        char pending[MOUNT_RECORD_ID_MAX];
        int r = mount_record_read(&removal->state, id, &removal->record, error);

        if (r == -ENOENT && !mount_record_is_pending(id)) {
                mount_record_pending_id(id, pending);
                r = mount_record_read(&removal->state, pending, &removal->record, error);
        }
        return r;
}

/* What is said of a mount that has no record. */
static void begin_record(struct removal *removal)
{
        removal->record = (struct mount_record){};
        (void)text_copy(removal->record.target, sizeof removal->record.target, removal->request->target);
}

struct search {
        struct removal *removal;
        const char *boot_id;
        int there; /* of the best record so far, as match_target() returns it */
        bool gone; /* the best record so far is of a container that has ended */
};

/* The process id that procDir means, whether the process runs or not, and whose procfs it is; nothing if it is none. */
static void take_directory(struct removal *removal, const char *path)
{
        char first[PATH_MAX + 2];
        cleanup_close int fd = -EBADF;
        struct statfs fs;
        uint64_t pid;
        char *name;

        if (text_path_normal(path, first) < 0)
                return;
        name = strrchr(first, '/') + 1;
        if (!text_number(name, INT32_MAX, &pid))
                return;
        name[0] = '1'; /* of any procfs: that of its pid namespace's first process */
        name[1] = '\0';
        fd = sys_openat2(AT_FDCWD, first, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
        if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC &&
            proc_pid_namespace_of(fd, &removal->named_pid_ns) == 0)
                removal->named_pid = (pid_t)pid;
}

static void take_named_pid(struct removal *removal)
{
        const struct container_reference *named = &removal->named;

        if (named->proc_dir != NULL)
                take_directory(removal, named->proc_dir);
        else
                removal->named_pid = named->pid;
}

/* Whether a record's process has the id that the request names. */
static bool is_of_named_pid(const struct removal *removal, const struct mount_record *record)
{
        uint64_t here;
        struct error ignored;

        if (removal->named_pid == 0 || record->pid != removal->named_pid)
                return false;
        if (removal->named_pid_ns == 0)
                return mount_record_check_namespace(record, &ignored) == 0;
        return record->pid_ns == removal->named_pid_ns ||
               (record->pid_ns == 0 && proc_pid_namespace(&here) == 0 && here == removal->named_pid_ns);
}

/* Whether a record is of the container that has this id, though it was named otherwise: a full id is an identity. */
static bool is_of_identity(const struct mount_record *record, const char *id)
{
        char key[WISH_KEY_SIZE];

        wish_key(id, key);
        return strcmp(record->wanted, key) == 0;
}

/* Whether a record names its container as the request does: the same id, or the same process id. */
static bool named_alike(const struct removal *removal, const struct mount_record *record)
{
        const struct container_reference *named = &removal->named;
        char name[CONTAINER_NAME_MAX];

        container_reference_name(named, name, sizeof name);
        if (name[0] != '\0' && (strcmp(record->container_id, name) == 0 || is_of_identity(record, name)))
                return true;
        if (name[0] != '\0' && record->container_id[0] != '\0')
                return false; /* that container had a name, and another one */
        return is_of_named_pid(removal, record);
}

/* What may be a full id, or the beginning of one, is the same container at each runtime. */
static bool may_be_full(const char *id)
{
        return strlen(id) >= CONTAINER_ID_SHORT_LENGTH && strspn(id, "0123456789abcdef") == strlen(id);
}

/* A container of another runtime than the request names, which has the same name. */
static bool is_of_another(const struct removal *removal, const struct mount_record *record)
{
        const struct container_reference *named = &removal->named;

        return named->runtime != NULL && record->runtime[0] != '\0' && strcmp(named->runtime, record->runtime) != 0 &&
               !may_be_full(named->id);
}

/*
 * A record of a mount at the target in a container that the request names, but that is not the one that was found: its
 * container has ended, or its runtime does not know it any more. 1 it runs, 0 it is gone, -ENOENT not such a record, or
 * another negative errno.
 */
static int match_ended(struct removal *removal, const struct mount_record *record, const char *boot_id,
                       struct error *error)
{
        cleanup_container struct container other = CONTAINER_NONE;
        const char *target = removal->request->target;
        int r;

        if ((strcmp(record->target, target) != 0 && strcmp(record->mount_point, target) != 0) ||
            mount_record_is_former(record) || !named_alike(removal, record))
                return -ENOENT;
        r = mount_record_reach(record, boot_id, &other, error);
        if (r == -ESRCH)
                return 0;
        /* the container that was found is the one that the request means */
        if (removal->reachable || is_of_another(removal, record))
                return -ENOENT;
        return r < 0 ? r : 1;
}

static void take_record(struct removal *removal, const struct mount_record *record)
{
        if (record != &removal->record)
                removal->record = *record;
}

static int match_any(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct search *search = argument;
        struct removal *removal = search->removal;
        int r = -ENOENT;

        (void)id;
        if (record == NULL)
                return mount_record_unread(error); /* one that is damaged is not the one */
        if (removal->reachable)
                r = match_target(removal, record, search->boot_id);
        if (r > 0 || (r == 0 && search->there < 0)) {
                take_record(removal, record);
                search->there = r;
                search->gone = false;
        }
        if (r >= 0 || search->there >= 0)
                return search->there > 0;
        r = match_ended(removal, record, search->boot_id, error);
        if (r > 0 || (r == 0 && !search->gone)) {
                take_record(removal, record);
                search->gone = r == 0;
        }
        return r == -ENOENT ? 0 : r;
}

/*
 * No record says that its mount is at the target. 1 what is mounted there has a record after all, 0 nothing is mounted
 * there, or negative errno: EBUSY something is that has no record.
 */
static int find_by_mount(struct removal *removal, const char *boot_id, struct error *error)
{
        const char *target = removal->request->target;
        struct mount_seen seen = {};
        int r = target_see(&removal->container, target, &seen, NULL, NULL, error);

        if (r == -ENOENT || r == -ENOTDIR || (r == 0 && !seen.root))
                return 0;
        if (r == 0)
                r = removal->state.dir_fd < 0
                            ? -ENOENT
                            : mount_record_find(&removal->state, &removal->container, boot_id, &seen.identity,
                                                /* by_root= */ true, /* except= */ NULL, &removal->record, error);
        /* a file of an xfs that has shut down does not tell that it is no root (mount/identity.c) */
        if (r == 0 && mount_record_is_above(&removal->record, target)) {
                begin_record(removal);
                return 0;
        }
        if (r == -ENOENT) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_RECORD, target,
                                   "something is mounted there that flexgraft has no record of");
                return error_where(error, removal->container.name);
        }
        return r < 0 ? r : 1;
}

/* The records that named_alike() may take. */
static int search_by_name(struct search *search, struct error *error)
{
        const struct container_reference *named = &search->removal->named;
        const struct state *state = &search->removal->state;
        char identity[MOUNT_RECORD_WANTED_NAME_SIZE];
        char name[CONTAINER_NAME_MAX];
        char key[WISH_KEY_SIZE];
        int r = 0;

        container_reference_name(named, name, sizeof name);
        if (name[0] != '\0')
                r = mount_record_each_called(state, name, match_any, search, error);
        if (r == 0 && name[0] != '\0') {
                wish_key(name, key);
                mount_record_wanted_name(key, identity);
                r = mount_record_each_called(state, identity, match_any, search, error);
        }
        if (r == 0 && search->removal->named_pid != 0)
                r = mount_record_each_of_process(state, search->removal->named_pid, match_any, search, error);
        return r;
}

/* The record of this target in this container, whatever its id; preferably one whose mount is there. */
static int find_by_target(struct removal *removal, const char *boot_id, struct error *error)
{
        struct search search = { .removal = removal, .boot_id = boot_id, .there = -ENOENT };
        char id[MOUNT_RECORD_ID_MAX];
        int r = -ENOENT;

        mount_record_default_id(&removal->container.mnt_ns, removal->request->target, id);
        if (removal->state.dir_fd >= 0 && removal->reachable)
                r = mount_record_read(&removal->state, id, &removal->record, error);
        if (r == 0)
                (void)match_any(&removal->record, id, &search, error);
        else if (r != -ENOENT && r != -EBADMSG)
                return r;
        if (search.there < 0 && !search.gone) /* it is none of this mount */
                begin_record(removal);
        if (search.there <= 0 && removal->state.dir_fd >= 0 && removal->reachable &&
            (r = mount_record_each_of(&removal->state, &removal->container.mnt_ns, boot_id, /* except= */ NULL,
                                      match_any, &search, error)) < 0)
                return r;
        /* none is of the container that was found: perhaps one is of a container that was called the same */
        if (search.there < 0 && removal->state.dir_fd >= 0 && (r = search_by_name(&search, error)) < 0)
                return r;
        if (r > 0 && search.there < 0) /* it is of a container that runs, though its name is not known any more */
                return 0;
        if (search.there <= 0 && removal->reachable && (r = find_by_mount(removal, boot_id, error)) != 0)
                return r < 0 ? r : 0;
        if (search.gone) {
                container_release(&removal->container);
                removal->container = (struct container)CONTAINER_NONE;
                removal->reachable = false;
                return 0;
        }
        return search.there < 0 ? fail(error, ENOENT, OPERATION_FIND_RECORD, removal->request->target) : 0;
}

/* A volume's lock comes before those of mounts. */
static int hold_volume(struct removal *removal, struct error *error)
{
        const struct volume_releaser *releaser = removal->request->releaser;
        const char *volume = removal->record.volume;
        int r;

        if (strcmp(removal->held, volume) == 0)
                return 0;
        if (removal->holds)
                releaser->drop();
        removal->holds = volume[0] != '\0';
        removal->held[0] = '\0';
        (void)worker_waits_for_others(false);
        if (removal->holds && (r = releaser->hold(volume, error)) < 0)
                return r;
        (void)worker_waits_for_others(removal->holds); /* the container is asked, which may hang */
        (void)text_copy(removal->held, sizeof removal->held, volume);
        return 0;
}

/*
 * Locks the record that was found, and reads it again. 0; 1 and nothing is locked: it was removed meanwhile, or its id
 * is in use for another target or container by now, so look again; or negative errno.
 */
static int lock_record(struct removal *removal, struct error *error)
{
        struct mount_record *record = &removal->record;
        uint64_t keys[MOUNT_RECORD_LOCKS_MAX];
        uint64_t keys_now[MOUNT_RECORD_LOCKS_MAX];
        size_t count = mount_record_lock_keys(record, keys);
        char boot_id[PROC_BOOT_ID_SIZE];
        char id[MOUNT_RECORD_ID_MAX];
        int r = hold_volume(removal, error);

        (void)text_copy(boot_id, sizeof boot_id, record->boot_id);
        (void)text_copy(id, sizeof id, record->id);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = state_lock(&removal->state, keys[i], error);
        if (r == 0)
                r = read_record(removal, id, error);
        /* the keys are made of its id, its container and its target */
        if (r == 0 && mount_record_lock_keys(record, keys_now) == count &&
            memcmp(keys, keys_now, count * sizeof keys[0]) == 0 && strcmp(boot_id, record->boot_id) == 0 &&
            strcmp(removal->held, record->volume) == 0)
                return 0;
        if (r < 0 && r != -ENOENT)
                return r;
        for (size_t i = 0; i < count; i++)
                state_unlock(&removal->state, keys[i]);
        return 1;
}

/* Of the lock of the target in the container that was found: the same as that of a mount there. */
static uint64_t target_key(const struct removal *removal)
{
        char id[MOUNT_RECORD_ID_MAX];

        mount_record_default_id(&removal->container.mnt_ns, removal->request->target, id);
        return mount_record_key(id);
}

/* The record that the request is about, read. */
static int find_record(struct removal *removal, const char *boot_id, struct error *error)
{
        const struct request *request = removal->request;

        if (request->id == NULL)
                return find_by_target(removal, boot_id, error);
        begin_record(removal);
        (void)text_copy(removal->record.id, sizeof removal->record.id, request->id);
        return removal->state.dir_fd < 0 ? -ENOENT : read_record(removal, request->id, error);
}

/*
 * The record that the request is about, found and locked. ENOENT: there is none, and as the target's lock is held, there
 * will be none of a call that has said what is wanted there and has not recorded its mount yet.
 */
static int find_and_lock(struct removal *removal, const char *boot_id, struct error *error)
{
        const struct request *request = removal->request;
        bool locked = false;
        uint64_t key = 0;
        int r;

        for (;;) {
                r = find_record(removal, boot_id, error);
                if (request->dry_run || (r < 0 && r != -ENOENT))
                        return r;
                if (r == -ENOENT && (locked || request->id != NULL || !removal->reachable || removal->state.dir_fd < 0))
                        return r;
                if (r == -ENOENT) {
                        key = target_key(removal);
                        if ((r = state_lock(&removal->state, key, error)) < 0)
                                return r;
                        locked = true;
                        continue;
                }
                if (locked) /* its volume's lock comes before it */
                        state_unlock(&removal->state, key);
                locked = false;
                if ((r = lock_record(removal, error)) <= 0)
                        return r;
        }
}

/* Before the container's mount namespace is entered, which has another /proc. */
static int find_partner(struct removal *removal, const char *boot_id, struct error *error)
{
        char id[MOUNT_RECORD_ID_MAX];
        int r;

        (void)text_copy(id, sizeof id, removal->record.id);
        if (mount_record_is_pending(id))
                mount_record_settle_id(id);
        else
                mount_record_pending_id(removal->record.id, id);
        r = mount_record_read(&removal->state, id, &removal->partner, error);
        if (r == 0 && mount_record_is_of(&removal->partner, &removal->container, boot_id))
                return 0;
        removal->partner.id[0] = '\0';
        if (r < 0 && r != -ENOENT && r != -EBADMSG)
                return r;
        r = mount_record_find(&removal->state, &removal->container, boot_id, &removal->record.identity,
                              /* by_root= */ true, removal->record.id, &removal->partner, error);

        if (r == -ENOENT && removal->record.replaces.id != 0) /* or the one that it replaces */
                r = mount_record_find(&removal->state, &removal->container, boot_id, &removal->record.replaces,
                                      /* by_root= */ true, removal->record.id, &removal->partner, error);
        if (r < 0)
                removal->partner.id[0] = '\0';
        return r == -ENOENT ? 0 : r;
}

/*
 * The container that the request names. 0; 1 it has ended, and its records tell what there is to remove; 2 likewise,
 * but its process id is that of a process of the node by now, or always was, or it has made so many control groups that
 * it cannot be found by its unit: if no record is of it, that is the error; or negative errno.
 */
static int pin(struct removal *removal, struct error *error)
{
        const struct container_reference *named = &removal->named;
        int r = named_container_pin(named, &removal->container, error);

        removal->reachable = r == 0;
        removal->unknown = r == -ENOENT && strcmp(error->operation, OPERATION_FIND_CONTAINER) == 0;
        take_named_pid(removal);
        if (named->proc_dir != NULL && removal->named_pid == 0)
                return r;
        if (r == -ESRCH || removal->unknown)
                return 1;
        if (r == -E2BIG && strcmp(error->operation, OPERATION_FIND_CONTAINER) == 0)
                return 2;
        return r == -EINVAL && removal->named_pid != 0 ? 2 : r;
}

/* The record that the request is about, with its words taken as removal->named has them. ENOENT: there is none. */
static int find_named(struct removal *removal, int pinned, const char *boot_id, struct error *error)
{
        int r = find_and_lock(removal, boot_id, error);

        /* no container is known of a process of the node, or none was found: say so */
        if (r == -ENOENT && pinned == 2 && (r = named_container_pin(&removal->named, &removal->container, error)) == 0)
                r = -ENOENT;
        return r;
}

/*
 * A beginning of an id that is too short for a removal, but that finds a container: a failure if something is mounted on
 * the target there, since the request may mean that mount.
 */
static int check_beginning(struct removal *removal, const char *boot_id, struct error *error)
{
        const char *id;
        int r;

        removal->named.whole_id = false;
        r = pin(removal, error);
        if (r != 0)
                return r < 0 ? r : -ENOENT;
        r = find_by_target(removal, boot_id, error);
        id = strrchr(removal->container.identity, '/'); /* a user's id comes before it */
        id = id != NULL ? id + 1 : removal->container.identity;
        if (r == 0 || r == -EBUSY)
                return fail_because(
                        error, ENOTUNIQ, OPERATION_FIND_CONTAINER, removal->named.id,
                        "it is the beginning of the id of a container with a mount on %.200s, and too short "
                        "to remove that: give at least %d characters of %s",
                        removal->request->target, CONTAINER_ID_SHORT_LENGTH, id);
        container_release(&removal->container);
        removal->container = (struct container)CONTAINER_NONE;
        removal->reachable = false;
        return r;
}

/* No runtime knows the container by its name, and nothing is recorded of one that was called so. */
static int find_otherwise(struct removal *removal, const char *boot_id, struct error *error)
{
        const struct container_reference *named = &removal->request->container;
        int r;

        if (named->or_pid == 0 && named->runtime == NULL)
                return -ENOENT;
        if ((r = want_has_called(removal, error)) != 0)
                return r < 0 ? r : -ENOENT;
        if (named->or_pid == 0)
                return check_beginning(removal, boot_id, error);
        removal->named = (struct container_reference){ .pid = named->or_pid };
        r = pin(removal, error);
        /* a process of the node is not what they mean */
        return r < 0 ? r : find_named(removal, /* pinned= */ r == 2 ? 1 : r, boot_id, error);
}

int removal_find_record(struct removal *removal, struct error *error)
{
        const struct request *request = removal->request;
        char boot_id[PROC_BOOT_ID_SIZE];
        char state_dir[PATH_MAX];
        int pinned = 0;
        int r = proc_boot_id(boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        removal->named = request->container;
        removal->named.whole_id = true;
        removal->named.or_pid = 0; /* the process may be a stranger's by now: find_otherwise() asks the records first */
        if (request->has_container && (pinned = pin(removal, error)) < 0)
                return pinned;
        if ((r = config_state_dir(state_dir, error)) < 0)
                return r;
        r = mount_record_open(state_dir, /* create= */ false, &removal->state, error);
        if (r < 0 && r != -ENOENT) /* ENOENT: no mount was ever recorded */
                return r;
        if (r == 0 && !request->dry_run)
                (void)uses_complete(state_dir, &removal->state, error); /* if it fails, all records are read */
        r = find_named(removal, pinned, boot_id, error);
        if (r == -ENOENT && removal->unknown)
                r = find_otherwise(removal, boot_id, error);
        if (r == -ENOENT) {
                removal->already = true;
                removal->record.mnt_ns = removal->container.mnt_ns; /* for volumes that were replaced there */
                (void)text_copy(removal->record.boot_id, sizeof removal->record.boot_id, boot_id);
                return 0;
        }
        if (r == 0 && !removal->reachable) {
                r = mount_record_reach(&removal->record, boot_id, &removal->container, error);
                removal->reachable = r == 0;
                if (r == -ESRCH)
                        return 0; /* its mounts are gone with it; only the record is left */
        }
        return r < 0 ? r : find_partner(removal, boot_id, error);
}
