/* SPDX-License-Identifier: Apache-2.0 */
#include "state/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "container/container.h"
#include "state/uses.h"

#define SINGLE "SINGLE_NODE_SINGLE_WRITER"

const char *const access_modes[] = { "SINGLE_NODE_WRITER",       "SINGLE_NODE_READER_ONLY",
                                     "MULTI_NODE_READER_ONLY",   "MULTI_NODE_SINGLE_WRITER",
                                     "MULTI_NODE_MULTI_WRITER",  SINGLE,
                                     "SINGLE_NODE_MULTI_WRITER", NULL };

enum { TARGET_MOUNT, TARGET_BLOCK };
const char *const access_target_types[] = { [TARGET_MOUNT] = "mount", [TARGET_BLOCK] = "block", NULL };

bool access_is_block(const char *target_type)
{
        return text_same(target_type, access_target_types[TARGET_BLOCK]);
}

const char *access_target_type(bool block)
{
        return access_target_types[block ? TARGET_BLOCK : TARGET_MOUNT];
}

bool access_reads_only(const char *mode)
{
        return text_ends(mode, "_READER_ONLY");
}

bool access_is_single(const char *mode)
{
        return strcmp(mode, SINGLE) == 0;
}

bool access_is_of_nodes(const char *mode)
{
        return text_starts(mode, "MULTI_NODE_") && !access_reads_only(mode);
}

static bool is_of_container(const struct mount_record *mount, const struct mount_record *record)
{
        return container_same_namespace(&mount->mnt_ns, &record->mnt_ns) &&
               strcmp(mount->boot_id, record->boot_id) == 0;
}

/* The only one that may use a volume. */
struct sole {
        const char *dir;                   /* of a pod; NULL */
        const char *volume_file;           /* of the record of the volume whose lock the caller holds; NULL */
        const struct mount_record *record; /* of a mount in a container, whose other mounts are its own too; NULL */
        char text[USES_TEXT_SIZE];
};

static int find_other(const struct use *use, void *argument, struct error *error)
{
        struct sole *sole = argument;

        (void)error;
        if (use->kind == USE_ATTACHED || use->kind == USE_STAGED ||
            (use->kind == USE_PUBLISHED && text_same(use->target, sole->dir)) ||
            (use->volume != NULL && use->pending && text_same(use->file, sole->volume_file)) ||
            (use->mount != NULL && sole->record != NULL && is_of_container(use->mount, sole->record)))
                return 0;
        uses_describe(use, sole->text);
        return 1;
}

static int check_sole(const char *state_dir, const char *keys, struct sole *sole, const char *subject,
                      struct error *error)
{
        int r = uses_each(state_dir, keys, find_other, sole, error);

        return r <= 0 ? r
                      : fail_because(error, EBUSY, "check access mode", subject,
                                     "the volume is for one pod or container (" SINGLE "), and %s has it", sole->text);
}

int access_check_pod(const char *state_dir, const char *mode, const char *keys, const char *file, const char *dir,
                     struct error *error)
{
        struct sole sole = { .dir = dir, .volume_file = file };

        return access_is_single(mode) ? check_sole(state_dir, keys, &sole, dir, error) : 0;
}

/* What volumes ask of those who use their devices. */
struct demand {
        char name[VOLUME_NAME_MAX];
        bool reads_only;
        bool single;
        char keys[USE_KEYS_SIZE]; /* of the volume that is for one alone */
};

static int add_demand(const struct use *use, void *argument, struct error *error)
{
        struct demand *demand = argument;
        const struct volume_record *volume = use->volume;

        (void)error;
        if (volume == NULL || use->kind != USE_ATTACHED)
                return 0;
        if (access_reads_only(volume->access_mode) || access_is_single(volume->access_mode))
                (void)text_copy(demand->name, sizeof demand->name, volume->name);
        demand->reads_only = demand->reads_only || access_reads_only(volume->access_mode);
        if (access_is_single(volume->access_mode)) {
                demand->single = true;
                use_keys_add_device(demand->keys, volume->device_number);
                use_keys_add_device(demand->keys, volume->filesystem);
        }
        return 0;
}

/*
 * The devices that are volumes, or were, among what the record uses, but for what it takes the place of. Other devices
 * may have any number of users, which are not read.
 */
static void pick_volumes(const struct state *mounts, const struct mount_record *record, char *ret_keys)
{
        char uses[USE_KEYS_SIZE];
        const char *position = uses;
        char key[USE_KEY_SIZE];

        mount_record_uses_alone(record, uses);
        ret_keys[0] = '\0';
        while (use_keys_next(&position, key))
                if (use_key_to_volume(key) && use_index_knows(mounts->dir_fd, key))
                        use_keys_add(ret_keys, key);
}

int access_check_container(const struct state *mounts, const char *state_dir, const struct mount_record *record,
                           const char *file, bool writes, struct error *error)
{
        static struct demand demand;
        static struct sole sole;
        char keys[USE_KEYS_SIZE];
        int r;

        pick_volumes(mounts, record, keys);
        if (keys[0] == '\0')
                return 0; /* as most, which touch none of these */
        demand = (struct demand){};
        sole = (struct sole){ .record = record, .volume_file = file };
        if ((r = uses_each(state_dir, keys, add_demand, &demand, error)) < 0)
                return r;
        if (writes && demand.reads_only)
                return fail_because(error, EROFS, "check access mode", record->source,
                                    "volume \"%.200s\" is for reading alone; set \"readOnly\": true", demand.name);
        return demand.single ? check_sole(state_dir, demand.keys, &sole, record->source, error) : 0;
}

int access_check_alone(const char *state_dir, const struct mount_record *record, const char *file, struct error *error)
{
        struct sole sole = { .record = record, .volume_file = file };
        const char *position = record->uses;
        char keys[USE_KEYS_SIZE] = "";
        char key[USE_KEY_SIZE];

        while (use_keys_next(&position, key))
                if (use_key_is_file(key)) /* not the filesystem that the directory is on */
                        use_keys_add(keys, key);
        return check_sole(state_dir, keys, &sole, record->source, error);
}
