/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "process/log.h"
#include "state/use_index.h"
#include "state/volume_record.h"

#define DIRECTORY "provisioned" /* of the state */

static const char *const lifecycles[] = { "creating", "created", "deleting", NULL };

/* The order of the rows is that of the keys in the file; keep it, and records stay the same byte for byte. */
static const struct record_field fields[] = {
#define ROW(type, key, field, help, ...)                                                                               \
        RECORD_ROW(RECORD_##type, key, struct provision_record, field, help, __VA_ARGS__)
#define ALWAYS(type, key, field, help) ROW(type, key, field, help, .optional = false)
#define OPTIONAL(type, key, field, help) ROW(type, key, field, help, .optional = true)
        ROW(WORD, "stage", lifecycle, "whether the volume is there: not yet, yes, or not any more",
            .words = lifecycles),
        ALWAYS(NUMBER, "size", size_bytes, "size in bytes"),
        ALWAYS(NUMBER, "askedSize", asked_bytes, "size that was requested; 0: none was"),
        OPTIONAL(BOOLEAN, "adopted", adopted, "whether the disk was there before the volume"),
        OPTIONAL(NOT, "eraseAfter", keeps_content, "whether it is overwritten when it is deleted"),
        ALWAYS(OBJECT, "parameters", parameters, "parameters of its pool that it was made with"),
        ALWAYS(ARRAY, "mountFlags", mount_flags, "mount options of its profile"),
        ALWAYS(TEXT, "name", name, "name of the volume"),
        ALWAYS(TEXT, "pool", pool, "pool that it is in"),
        ALWAYS(TEXT, "type", pool_type, "type of that pool"),
        ALWAYS(TEXT, "profile", profile, "profile that it was made with; empty: none"),
        ALWAYS(TEXT, "id", id, "what it is called in its pool"),
        ALWAYS(TEXT, "targetType", target_type, "\"mount\" or \"block\""),
        ALWAYS(TEXT, "fsType", fs_type, "type of its filesystem; empty: not given"),
        ALWAYS(TEXT, "accessMode", access_mode, "CSI access mode of its profile; empty: not given"),
        ALWAYS(TEXT, "reclaimPolicy", reclaim_policy, "\"delete\", \"retain\" or \"recycle\""),
        /* absent from records of the first version of flexgraft */
        OPTIONAL(TEXT, "identity", identity, "what tells it from another of the same id; may be empty"),
        OPTIONAL(BOOLEAN, "formatted", formatted, "whether it has had a filesystem: then it is never formatted again"),
        OPTIONAL(BOOLEAN, "hasKataImage", has_kata_image,
                 "whether its filesystem has had an image for virtual machines"),
        OPTIONAL(BOOLEAN, "filesystemGrows", grows,
                 "whether its filesystem may be smaller than it: then that grows when it is mounted"),
        OPTIONAL(TEXT, "target", target,
                 "where a container gets it that asks for it as a device; empty: /volumes/NAME"),
        OPTIONAL(TEXT, "snapshotOf", snapshot_of, "volume that it is a snapshot of; empty: it is none"),
        OPTIONAL(NUMBER, "taken", taken, "when that was, in seconds since 1970"),
        OPTIONAL(NUMBER, "snapshotOfBorn", source_born, "\"born\" of the volume that it is a snapshot of"),
        OPTIONAL(TEXT, "copyOf", copy_of, "volume or snapshot that it was made as a copy of; empty: it was not"),
        OPTIONAL(TEXT, "restoring", restoring, "snapshot whose content is being put back; empty: none"),
        OPTIONAL(TEXT, "driver", driver, "driver that made it from its option \"size\"; empty: volume-create did"),
        OPTIONAL(NUMBER, "born", born, "when the volume was made or adopted, in nanoseconds since 1970"),
        OPTIONAL(TEXT, "place", location, "where its pool was, by the pool's file, when it was made; empty: not noted"),
        ROW(TEXT, "namespace", namespace,
            "Kubernetes namespace of the pods that may have it; \"-\": it is the CSI driver's", .optional = true,
            .with = "namespace"),
        {},
#undef ROW
#undef ALWAYS
#undef OPTIONAL
};

static bool is_sound(const void *read_record)
{
        const struct provision_record *record = read_record;

        return record->name[0] != '\0' && record->pool[0] != '\0' && record->id[0] != '\0';
}

const struct record_table provision_record_table = { .directory = DIRECTORY,
                                                     .version = 1,
                                                     .size = sizeof(struct provision_record),
                                                     .name_offset = offsetof(struct provision_record, name),
                                                     .fields = fields,
                                                     .is_sound = is_sound };

const char *provision_lifecycle_word(enum provision_lifecycle lifecycle)
{
        return lifecycles[lifecycle];
}

static void file_name(const char *name, char *ret_file)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        (void)snprintf(ret_file, NAME_MAX + 1, "%s" RECORD_SUFFIX, stem);
}

int provision_record_open(const char *state_dir, bool create, struct state *ret_state, struct error *error)
{
        return state_open(state_dir, DIRECTORY, create, ret_state, error);
}

/* name: what it should be of, or NULL. */
static void set_aside(const struct state *state, const char *file, const char *name)
{
        char aside[STATE_ASIDE_SIZE];

        if (record_set_aside(state, &provision_record_table, file, name, aside))
                log_failure("the record %s is damaged, or not this volume's; it was renamed to %s", file, aside);
}

/*
 * The record that was read last, and of which file: a call asks for its volume's record at each of its steps. A file
 * that was replaced is another.
 */
static struct {
        struct provision_record record;
        struct stat st;
} last;

static void copy(const struct provision_record *record, struct provision_record *ret_copy)
{
        *ret_copy = *record;
        ret_copy->parameters = json_incref(record->parameters);
        ret_copy->mount_flags = json_incref(record->mount_flags);
}

void provision_record_forget_read(void)
{
        provision_record_release(&last.record);
        last.st.st_ino = 0;
}

int provision_record_lock(struct state *state, const char *name, struct error *error)
{
        int r = state_lock(state, volume_record_key(name), error);

        provision_record_forget_read();
        return r;
}

static bool is_last(const struct stat *st, const char *name)
{
        return last.st.st_ino == st->st_ino && last.st.st_dev == st->st_dev && last.st.st_size == st->st_size &&
               last.st.st_ctim.tv_sec == st->st_ctim.tv_sec && last.st.st_ctim.tv_nsec == st->st_ctim.tv_nsec &&
               strcmp(last.record.name, name) == 0;
}

int provision_record_read(const struct state *state, const char *name, struct provision_record *ret_record,
                          struct error *error)
{
        char file[NAME_MAX + 1];
        struct stat st;
        bool there;
        int r;

        file_name(name, file);
        there = fstatat(state->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (there && is_last(&st, name)) {
                copy(&last.record, ret_record);
                return 0;
        }
        r = record_read(state, &provision_record_table, file, ret_record, error);
        if (r == 0 && there && strcmp(ret_record->name, name) == 0) {
                provision_record_forget_read();
                copy(ret_record, &last.record);
                last.st = st;
        }
        if (r != -EBADMSG && (r < 0 || strcmp(ret_record->name, name) == 0))
                return r;
        provision_record_release(ret_record);
        set_aside(state, file, name);
        return -ENOENT;
}

bool provision_record_path(const char *state_dir, const char *name, char *ret_path)
{
        char file[NAME_MAX + 1];

        file_name(name, file);
        return snprintf(ret_path, PATH_MAX, "%s/" DIRECTORY "/%s", state_dir, file) < PATH_MAX;
}

bool provision_record_exists(const char *state_dir, const char *name)
{
        char path[PATH_MAX];

        return provision_record_path(state_dir, name, path) && faccessat(AT_FDCWD, path, F_OK, 0) == 0;
}

int provision_record_find(const char *state_dir, const char *name, struct provision_record *ret_record,
                          struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = provision_record_open(state_dir, /* create= */ false, &state, error);

        *ret_record = (struct provision_record){};
        return r < 0 ? r : provision_record_read(&state, name, ret_record, error);
}

int provision_record_write(const struct state *state, const struct provision_record *record,
                           enum file_durability durability, struct error *error)
{
        char file[NAME_MAX + 1];
        int r;

        provision_record_forget_read();
        file_name(record->name, file);
        r = record_index_add(state, record->id, file, error);
        return r < 0 ? r : record_write(state, &provision_record_table, file, record->name, record, durability, error);
}

int provision_record_remove(const struct state *state, const char *name, const char *id, struct error *error)
{
        char file[NAME_MAX + 1];
        int r;

        provision_record_forget_read();
        file_name(name, file);
        r = id != NULL ? record_index_remove(state, id, file) : state_remove(state, file);
        return r < 0 ? fail(error, -r, "remove record", name) : 0;
}

struct walk {
        const struct state *state;
        bool set_aside;
        provision_record_function *function;
        void *argument;
};

static int pass_on(void *record, const char *file, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        char stem[NAME_MAX + 1];

        if (record == NULL && error->errnum == EBADMSG) {
                if (walk->set_aside)
                        set_aside(walk->state, file, /* name= */ NULL);
                return 0;
        }
        if (record == NULL && error->errnum != EPROTONOSUPPORT)
                return error_negative(error->errnum);
        (void)text_copy(stem, strlen(file) - strlen(RECORD_SUFFIX) + 1, file);
        return walk->function(record, stem, walk->argument, error);
}

int provision_record_each(const struct state *state, bool set_aside, provision_record_function *function,
                          void *argument, struct error *error)
{
        struct walk walk = { .state = state, .set_aside = set_aside, .function = function, .argument = argument };
        struct provision_record record;

        return record_each(state, &provision_record_table, &record, pass_on, &walk, error);
}

void provision_record_release(struct provision_record *record)
{
        record_release(&provision_record_table, record);
}

void provision_record_tidy(struct state *state)
{
        record_tidy(state, &provision_record_table);
}

/* ---- the records of volumes by what they are called in their pools: entries in the index (state/use_index.h), */

int record_index_add(const struct state *records, const char *id, const char *file, struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";

        use_keys_add_disk(keys, id);
        return use_index_add(records, keys, USE_HOLDER_PROVISIONED, file, error);
}

int record_index_remove(const struct state *records, const char *id, const char *file)
{
        char keys[USE_KEYS_SIZE] = "";

        use_keys_add_disk(keys, id);
        return use_index_remove(records, keys, USE_HOLDER_PROVISIONED, file);
}
