/* SPDX-License-Identifier: Apache-2.0 */
/* volume_record_dirs.c - the directories that a volume is mounted on, and their entries in the index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "mount/on_node.h"
#include "state/volume_record.h"

#define PODS "/pods/"
#define VOLUMES "/volumes/"

/* The directory of kubelet, or a volume, may be called "pods", too: below that one are the files of a server, say. */
size_t volume_record_pod_length(const char *dir)
{
        for (const char *pod = dir; (pod = strstr(pod, PODS)) != NULL;) {
                const char *end = strchr(pod + strlen(PODS), '/');

                if (end != NULL && text_starts(end, VOLUMES))
                        return (size_t)(end - dir);
                pod += strlen(PODS) - 1; /* the last slash may begin the next */
        }
        return 0;
}

struct mount_dir *volume_record_mount_dir(struct volume_record *record, const char *dir)
{
        if (record->staged.dir != NULL && strcmp(record->staged.dir, dir) == 0)
                return &record->staged;
        for (size_t i = 0; i < record->published_count; i++)
                if (strcmp(record->published[i].dir, dir) == 0)
                        return &record->published[i];
        return NULL;
}

static struct mount_identity replaced(const struct mount_dir *place)
{
        return (struct mount_identity){ .unique = true, .id = place->replaces };
}

bool volume_record_dir_shows(const struct mount_dir *place, const struct mount_seen *seen)
{
        const struct mount_identity former = replaced(place);

        return mount_seen_is(seen, &place->identity) || (place->replaces != 0 && mount_seen_is(seen, &former));
}

int volume_record_dir_has(const struct mount_dir *place)
{
        const struct mount_identity former = replaced(place);
        int r = on_node_has(&place->identity, place->dir);

        return r != 0 || place->replaces == 0 ? r : on_node_has(&former, place->dir);
}

bool volume_record_dir_still(const struct mount_dir *place)
{
        return volume_record_pod_length(place->dir) == 0 && volume_record_dir_has(place) > 0;
}

uint64_t volume_record_dir_device(const struct mount_dir *place)
{
        return place->source_device != 0 ? place->source_device : place->identity.device;
}

bool volume_record_dir_now(const char *state_dir, const char *name, const char *driver, const char *dir,
                           struct mount_dir *place)
{
        cleanup_volume_record struct volume_record record = {};
        struct error ignored;
        const struct mount_dir *now = NULL;
        char *own;

        if (volume_record_peek(state_dir, name, driver, &record, &ignored) == 0)
                now = volume_record_mount_dir(&record, dir);
        if (now == NULL || (mount_identity_same(&now->identity, &place->identity) && now->replaces == place->replaces))
                return false;
        own = place->dir;
        *place = *now;
        place->dir = own;
        return true;
}

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC 12 does not see what is stored in the array */
#endif
int volume_record_remember(struct volume_record *record, const char *dir, bool staged, unsigned made,
                           const struct mount_identity *identity, struct error *error)
{
        struct mount_dir place = { .dir = strdup(dir), .made = made, .identity = *identity, .since = clock_seconds() };
        struct mount_dir *grown;

        if (place.dir == NULL)
                return fail(error, ENOMEM, "write record", record->name);
        if (staged) {
                free(record->staged.dir);
                record->staged = place;
                return 0;
        }
        volume_record_forget(record, dir);
        grown = reallocarray(record->published, record->published_count + 1, sizeof *grown);
        if (grown == NULL) {
                free(place.dir);
                return fail(error, ENOMEM, "write record", record->name);
        }
        record->published = grown;
        record->published[record->published_count++] = place;
        return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

void volume_record_forget(struct volume_record *record, const char *dir)
{
        if (record->staged.dir != NULL && strcmp(record->staged.dir, dir) == 0) {
                free(record->staged.dir);
                record->staged = (struct mount_dir){};
                return;
        }
        for (size_t i = 0; i < record->published_count; i++)
                if (strcmp(record->published[i].dir, dir) == 0) {
                        free(record->published[i].dir);
                        record->published[i] = record->published[--record->published_count];
                        return;
                }
}

const struct mount_dir *volume_record_dir(const struct volume_record *record, size_t number)
{
        if (record->staged.dir != NULL && number-- == 0)
                return &record->staged;
        return number < record->published_count ? &record->published[number] : NULL;
}

void volume_record_put_ephemeral(const char *dir, char *ret_name)
{
        (void)snprintf(ret_name, VOLUME_EPHEMERAL_NAME_SIZE, VOLUME_INNER_EPHEMERAL "%016llx",
                       (unsigned long long)use_keys_directory_hash(dir));
}

void volume_record_add_ephemeral_dir(char *keys, const char *name)
{
        char *end;
        unsigned long long hash;

        if (!text_starts(name, VOLUME_INNER_EPHEMERAL))
                return;
        hash = strtoull(name + strlen(VOLUME_INNER_EPHEMERAL), &end, 16);
        if (*end == '\0')
                use_keys_add_directory_hash(keys, hash);
}

bool volume_record_has_key(const struct volume_record *record, const char *key)
{
        const struct mount_dir *place;
        char keys[USE_KEYS_SIZE];

        volume_record_keys(record, keys);
        if (use_keys_have(keys, key))
                return true;
        for (size_t i = 0; (place = volume_record_dir(record, i)) != NULL; i++) {
                keys[0] = '\0';
                use_keys_add_directory(keys, place->dir);
                if (strcmp(keys, key) == 0)
                        return true;
        }
        return false;
}

bool volume_record_dir_keys(const struct volume_record *record, char *ret_keys)
{
        const struct mount_dir *place;
        struct error ignored;

        ret_keys[0] = '\0';
        for (size_t i = 0; (place = volume_record_dir(record, i)) != NULL; i++)
                use_keys_add_directory(ret_keys, place->dir);
        return use_keys_check(ret_keys, record->name, &ignored) == 0;
}

int volume_record_index_dirs(const struct state *records, const struct volume_record *record, const char *file,
                             struct error *error)
{
        const struct mount_dir *place;
        int r = 0;

        for (size_t i = 0; r == 0 && (place = volume_record_dir(record, i)) != NULL; i++) {
                char key[USE_KEYS_SIZE] = "";

                use_keys_add_directory(key, place->dir);
                r = use_index_add(records, key, USE_HOLDER_VOLUME, file, error);
        }
        return r;
}

void volume_record_drop_dirs(const struct state *records, const struct volume_record *record,
                             const struct volume_record *except, const char *file)
{
        const struct mount_dir *place;

        for (size_t i = 0; (place = volume_record_dir(record, i)) != NULL; i++) {
                char key[USE_KEYS_SIZE] = "";

                use_keys_add_directory(key, place->dir);
                if (except == NULL || volume_record_mount_dir((struct volume_record *)except, place->dir) == NULL)
                        use_index_drop(records->dir_fd, key, USE_HOLDER_VOLUME, file);
        }
}
