/* SPDX-License-Identifier: Apache-2.0 */
#include "state/uses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/text.h"
#include "block/loop_guard.h"
#include "mount/identity.h"
#include "mount/in_container.h"
#include "process/proc.h"

struct list {
        struct state volumes;
        struct state mounts;
        struct state wishes; /* opened for the index as a whole */
        struct state index;
        const char *state_dir;
        const char *keys;
        char boot_id[PROC_BOOT_ID_SIZE];
        uses_function *function;
        void *argument;
};

static void list_release(struct list *list)
{
        state_release(&list->volumes);
        state_release(&list->mounts);
        state_release(&list->wishes);
        state_release(&list->index);
}
#define cleanup_list __attribute__((cleanup(list_release)))

/* ---- the records of the index */

static struct state *state_of(struct list *list, char sort)
{
        return sort == USE_HOLDER_VOLUME ? &list->volumes : sort == USE_HOLDER_WISH ? &list->wishes : &list->mounts;
}

static const struct record_table *table_of(char sort)
{
        return sort == USE_HOLDER_VOLUME ? &volume_record_table
               : sort == USE_HOLDER_WISH ? &wish_record_table
                                         : &mount_record_table;
}

/* Of a file's name: the lock of its record. */
static uint64_t lock_of(char sort, const char *file)
{
        return record_lock_key(table_of(sort), file);
}

static bool is_pending(struct list *list, char sort, const char *file)
{
        return !state_is_free(state_of(list, sort), lock_of(sort, file));
}

/* What an entry of the index leads to. */
struct holder {
        struct volume_record volume;
        struct mount_record mount;
        char keys[USE_KEYS_SIZE];
};

static void holder_release(struct holder *holder)
{
        volume_record_release(&holder->volume);
}
#define cleanup_holder __attribute__((cleanup(holder_release)))

/* holder: not initialised; to be released. */
static int read_holder(struct list *list, char sort, const char *file, struct holder *holder, struct error *error)
{
        bool of_volume = sort == USE_HOLDER_VOLUME;
        void *record = of_volume ? (void *)&holder->volume : &holder->mount;
        int r;

        holder->volume = (struct volume_record){};
        if (state_of(list, sort)->dir_fd < 0)
                return -ENOENT; /* there never was such a record */
        r = record_read(state_of(list, sort), of_volume ? &volume_record_table : &mount_record_table, file, record,
                        error);
        if (r < 0)
                return r;
        if (of_volume)
                volume_record_keys(&holder->volume, holder->keys);
        else
                mount_record_keys(&holder->mount, holder->keys);
        return 0;
}

/* ---- volumes */

static void put_pod(const char *dir, char *ret_user)
{
        const char *device = strstr(dir, "/kubernetes.io/csi/volumeDevices/publish/"); /* .../VOLUME/POD */
        const size_t end = volume_record_pod_length(dir);
        size_t begin = end;

        while (begin > 0 && dir[begin - 1] != '/')
                begin--;
        if (end > begin && end - begin < CONTAINER_NAME_MAX)
                (void)text_copy(ret_user, end - begin + 1, dir + begin);
        else if (device != NULL)
                (void)text_copy(ret_user, CONTAINER_NAME_MAX, strrchr(dir, '/') + 1);
}

/* Whether it is mounted on the directory, now or soon. */
static bool is_mounted(struct list *list, const struct volume_record *record, const struct mount_dir *place,
                       struct use *use)
{
        struct mount_dir now = *place;
        struct mount_seen seen;
        int r;

        if (strcmp(record->boot_id, list->boot_id) == 0 && volume_record_dir_still(place))
                return true;
        r = mount_see(AT_FDCWD, place->dir, &seen);
        if (r == 0 && (volume_record_dir_shows(place, &seen) ||
                       (seen.root && record->device_number != 0 && seen.device == record->device_number)))
                return true;
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
                return true; /* it cannot be asked */
        if (strcmp(record->boot_id, list->boot_id) == 0 && volume_record_dir_has(place) != 0)
                return true; /* below another mount; or that cannot be asked */
        if (place->pod_device != 0 && loop_guard_exists(place->pod_device))
                return true; /* a process may have it open */
        if (volume_record_dir_now(list->state_dir, record->name, record->driver, place->dir, &now))
                return true; /* exchanged since the record was read */
        use->pending = is_pending(list, USE_HOLDER_VOLUME, use->file);
        return use->pending;
}

static int tell_dir(struct list *list, const struct volume_record *record, const char *file,
                    const struct mount_dir *place, enum use_kind kind, struct error *error)
{
        struct use use = { .kind = kind,
                           .target = place->dir,
                           .since = place->since,
                           .writes = !place->read_only,
                           .raw = place->pod_device != 0,
                           .file = file,
                           .volume = record };

        if (!is_mounted(list, record, place, &use))
                return 0;
        if (kind == USE_PUBLISHED)
                put_pod(place->dir, use.user);
        return list->function(&use, list->argument, error);
}

static int tell_volume(struct list *list, const struct volume_record *record, const char *file, struct error *error)
{
        const struct use attached = { .kind = USE_ATTACHED,
                                      .target = "",
                                      .since = record->since,
                                      .writes = !record->read_only,
                                      .file = file,
                                      .volume = record };
        int r = 0;

        /* the pods first: a message names one */
        for (size_t i = 0; r == 0 && i < record->published_count; i++)
                r = tell_dir(list, record, file, &record->published[i], USE_PUBLISHED, error);
        if (r == 0 && record->staged.dir != NULL)
                r = tell_dir(list, record, file, &record->staged, USE_STAGED, error);
        return r == 0 && record->device[0] != '\0' ? list->function(&attached, list->argument, error) : r;
}

/* Of those of a record, the directory that the key is of. */
static int tell_volume_on(struct list *list, const struct volume_record *record, const char *key, const char *file,
                          struct error *error)
{
        const struct mount_dir *place;
        int r = 0;

        for (size_t i = 0; r == 0 && (place = volume_record_dir(record, i)) != NULL; i++) {
                char own[USE_KEYS_SIZE] = "";

                use_keys_add_directory(own, place->dir);
                if (strcmp(own, key) == 0)
                        r = tell_dir(list, record, file, place, place == &record->staged ? USE_STAGED : USE_PUBLISHED,
                                     error);
        }
        return r;
}

/* ---- containers */

/* Whether the container still has it; what cannot be asked counts. */
static bool is_held(struct list *list, const struct mount_record *record, struct use *use)
{
        cleanup_container struct container container = CONTAINER_NONE;
        struct error ignored;
        bool there = false;
        int r = mount_record_reach(record, list->boot_id, &container, &ignored);

        if (r == 0)
                (void)text_copy(use->user, sizeof use->user, container.name);
        if (r == 0 && (use->kind == USE_RAW || mount_record_is_former(record)))
                return true; /* it may have the device open, or files of the volume, or have bound it elsewhere */
        if (r == 0)
                r = in_container_has(&container, &record->identity, &there, &ignored);
        if (r == 0 && !there && record->replaces.id != 0) /* a replacement was killed: either may be there */
                r = in_container_has(&container, &record->replaces, &there, &ignored);
        if (r == 0 &&
            (there || (record->volume[0] != '\0' && mount_record_is_elsewhere(&list->mounts, record, &container))))
                return true;
        if (record->remap_key != 0 && mount_record_remap_lives(&list->mounts, record->remap_key))
                return true;
        if (r < 0 && r != -ESRCH)
                return true; /* it cannot be asked */
        if (r == -ESRCH && !record->removed && mount_record_process_runs(record, list->boot_id))
                return true;
        /* what it wrote may not be on the device yet, and a process that left its mount namespace may still write */
        use->ended = use->kind == USE_RAW && r == -ESRCH && mount_guard_exists(record);
        if (use->ended)
                return true;
        use->pending = is_pending(list, USE_HOLDER_MOUNT, use->file);
        return use->pending;
}

static int tell_mount(struct list *list, const struct mount_record *record, const char *file, struct error *error)
{
        struct use use = { .kind = record->raw_device != 0 ? USE_RAW : USE_MOUNTED,
                           .pid = record->pid,
                           .target = record->target,
                           .since = record->since,
                           .writes = record->raw_device != 0 ? record->raw_writes : !text_starts(record->options, "ro"),
                           .raw = record->raw_device != 0,
                           .removed = record->removed,
                           .file = file,
                           .mount = record };

        if (record->container_id[0] != '\0')
                (void)text_copy(use.user, sizeof use.user, record->container_id);
        else
                (void)snprintf(use.user, sizeof use.user, "pid %d", (int)record->pid);
        return is_held(list, record, &use) ? list->function(&use, list->argument, error) : 0;
}

/* ---- the question */

/* Whether an earlier key of the question has led to the record already. */
static bool is_told(const char *asked, const char *key, const char *keys)
{
        char earlier[USE_KEY_SIZE];

        while (use_keys_next(&asked, earlier) && strcmp(earlier, key) != 0)
                if (use_keys_have(keys, earlier))
                        return true;
        return false;
}

static int tell_unreadable(struct list *list, const char *file, int r, struct error *error)
{
        const struct use use = { .kind = USE_UNREADABLE, .target = "", .writes = true, .file = file };

        return r == -ENOENT ? 0 : list->function(&use, list->argument, error);
}

static int ask(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        struct list *list = argument;
        cleanup_holder struct holder holder;
        const char *boot_id;
        int r = read_holder(list, sort, file, &holder, error);

        if (r < 0)
                return tell_unreadable(list, file, r, error);
        boot_id = sort == USE_HOLDER_VOLUME ? holder.volume.boot_id : holder.mount.boot_id;
        if (strcmp(boot_id, list->boot_id) != 0)
                return 0;
        if (sort == USE_HOLDER_VOLUME && use_key_is_directory(key))
                return tell_volume_on(list, &holder.volume, key, file, error);
        if (!use_keys_have(holder.keys, key) || is_told(list->keys, key, holder.keys))
                return 0;
        return sort == USE_HOLDER_VOLUME ? tell_volume(list, &holder.volume, file, error)
                                         : tell_mount(list, &holder.mount, file, error);
}

/* ---- the index as a whole */

static bool wish_file_has_key(struct list *list, const char *key, const char *file)
{
        cleanup_wish struct wish_record wanted = {};
        struct error ignored;
        int r = record_read(&list->wishes, &wish_record_table, file, &wanted, &ignored);

        return r < 0 ? r != -ENOENT : wish_has_key(&wanted, key);
}

static bool holder_has_key(struct list *list, const char *key, char sort, const char *file)
{
        cleanup_holder struct holder holder;
        struct error ignored;
        int r = read_holder(list, sort, file, &holder, &ignored);

        if (r < 0)
                return r != -ENOENT;
        return sort == USE_HOLDER_VOLUME ? volume_record_has_key(&holder.volume, key) : use_keys_have(holder.keys, key);
}

static bool has_key(struct list *list, const char *key, char sort, const char *file)
{
        return sort == USE_HOLDER_WISH ? wish_file_has_key(list, key, file) : holder_has_key(list, key, sort, file);
}

/* An entry whose record does not name the key, and which no call is working on. */
static int repair(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        struct list *list = argument;
        struct state *state = state_of(list, sort);

        (void)error;
        if (sort == USE_HOLDER_PROVISIONED || state->dir_fd < 0 || has_key(list, key, sort, file) ||
            !state_try_lock(state, lock_of(sort, file)))
                return 0;
        if (!has_key(list, key, sort, file))
                use_index_drop(list->index.dir_fd, key, sort, file);
        state_unlock(state, lock_of(sort, file));
        return 0;
}

/* The record may have been removed meanwhile: then its entries go, too. */
static int add_entries(struct list *list, const char *keys, char sort, const char *file, struct error *error)
{
        char key[USE_KEY_SIZE];
        int r = use_index_add(&list->index, keys, sort, file, error);

        while (r == 0 && use_keys_next(&keys, key))
                r = repair(key, sort, file, list, error);
        return r;
}

static int add_volume(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        const struct mount_dir *place;
        char keys[USE_KEYS_SIZE];
        int r;

        if (record == NULL)
                return 0; /* nothing says what it uses */
        volume_record_keys(record, keys);
        r = add_entries(argument, keys, USE_HOLDER_VOLUME, file, error);
        for (size_t i = 0; r == 0 && (place = volume_record_dir(record, i)) != NULL; i++) {
                keys[0] = '\0';
                use_keys_add_directory(keys, place->dir);
                r = add_entries(argument, keys, USE_HOLDER_VOLUME, file, error);
        }
        return r;
}

static int add_mount(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        char file[NAME_MAX + 1];
        char keys[USE_KEYS_SIZE];

        if (record == NULL)
                return 0;
        mount_record_keys(record, keys);
        (void)snprintf(file, sizeof file, "%s" RECORD_SUFFIX, id);
        return add_entries(argument, keys, USE_HOLDER_MOUNT, file, error);
}

static int add_wishes(void *record, const char *file, void *argument, struct error *error)
{
        const struct wish_record *wanted = record;
        char keys[USE_KEYS_SIZE];
        const json_t *entry;
        size_t i;
        int r = 0;

        json_array_foreach (wanted == NULL ? NULL : wanted->mounts, i, entry)
                if (r == 0) {
                        wish_keys(wanted, entry, keys);
                        r = add_entries(argument, keys, USE_HOLDER_WISH, file, error);
                }
        return r;
}

/* Records from before there was an index have no entries. */
static int complete(struct list *list, const char *state_dir, struct error *error)
{
        int r = wish_open(state_dir, /* create= */ false, &list->wishes, error);

        if (r == -ENOENT) /* nothing was ever wanted */
                r = 0;
        if (r == 0 && list->wishes.dir_fd >= 0)
                r = wish_each(&list->wishes, add_wishes, list, error);
        if (r == 0 && list->volumes.dir_fd >= 0)
                r = volume_record_each(&list->volumes, /* set_aside= */ false, add_volume, list, error);
        if (r == 0 && list->mounts.dir_fd >= 0)
                r = mount_record_each(&list->mounts, add_mount, list, error);
        if (r != 0)
                return r;
        /* if it cannot be said, the next question enters them, too */
        (void)use_index_set_complete(list->index.dir_fd, USE_HOLDERS_OF_USES);
        return 0;
}

/* 1: open; 0: there never was a record. */
static int open_list(struct list *list, const char *state_dir, struct error *error)
{
        int r = proc_boot_id(list->boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if (((r = state_open(state_dir, "volumes", /* create= */ false, &list->volumes, error)) < 0 && r != -ENOENT) ||
            ((r = state_open(state_dir, "mounts", /* create= */ false, &list->mounts, error)) < 0 && r != -ENOENT))
                return r;
        if (list->volumes.dir_fd < 0 && list->mounts.dir_fd < 0)
                return 0;
        r = state_open(state_dir, "uses", /* create= */ true, &list->index, error);
        return r < 0 ? r : 1;
}

#define LIST_NONE                                                                                                      \
        {                                                                                                              \
                .volumes = STATE_NONE, .mounts = STATE_NONE, .wishes = STATE_NONE, .index = STATE_NONE                 \
        }

int uses_each(const char *state_dir, const char *keys, uses_function *function, void *argument, struct error *error)
{
        cleanup_list struct list list = LIST_NONE;
        char key[USE_KEY_SIZE];
        int r = use_keys_check(keys, state_dir, error);

        if (r < 0 || (r = open_list(&list, state_dir, error)) <= 0)
                return r;
        list.state_dir = state_dir;
        list.keys = keys;
        list.function = function;
        list.argument = argument;
        if (!use_index_is_complete(list.index.dir_fd, USE_HOLDERS_OF_USES) &&
            (r = complete(&list, state_dir, error)) < 0)
                return r;
        r = 0;
        while (r == 0 && use_keys_next(&keys, key))
                r = use_index_each(list.index.dir_fd, key, ask, &list, error);
        return r;
}

int uses_complete(const char *state_dir, const struct state *records, struct error *error)
{
        cleanup_list struct list list = LIST_NONE;
        int r;

        if (use_index_is_complete(records->dir_fd, USE_HOLDERS_OF_USES))
                return 0;
        r = open_list(&list, state_dir, error);
        return r <= 0 ? r : complete(&list, state_dir, error);
}

int uses_repair(const char *state_dir, struct error *error)
{
        cleanup_list struct list list = LIST_NONE;
        int r = open_list(&list, state_dir, error);

        if (r <= 0 || (r = complete(&list, state_dir, error)) < 0)
                return r;
        return use_index_each_key(list.index.dir_fd, repair, &list, error);
}
