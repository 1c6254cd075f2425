/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/listing_collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "container/identity.h"
#include "state/record_flat.h"
#include "state/wish.h"

static void note(char (*list)[MOUNT_RECORD_ID_MAX], size_t *count, const char *id)
{
        for (size_t i = 0; i < *count; i++)
                if (strcmp(list[i], id) == 0)
                        return;
        if (*count < LISTING_NOTES_MAX)
                (void)text_copy(list[(*count)++], MOUNT_RECORD_ID_MAX, id);
}

#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC 12 loses sight of what is stored through the array */
#endif
/* Whether there is room for one entry more. */
static bool make_room(struct listing *listing)
{
        size_t room = listing->room == 0 ? 8 : 2 * listing->room;
        struct listing_entry *entries;

        if (listing->count < listing->room)
                return true;
        entries = reallocarray(listing->entries, room, sizeof *entries);
        if (entries == NULL)
                return false;
        listing->room = room;
        listing->entries = entries;
        return true;
}

static char *pack(const struct mount_record *record)
{
        static char packed[sizeof *record];
        size_t size = record_flat_pack(&mount_record_table, record, packed);
        char *copy = malloc(size);

        return copy != NULL ? memcpy(copy, packed, size) : NULL;
}

/* Each in one walk alone: before the index is complete both see all records. An identity of the name is its own key. */
static bool is_called(const struct listing_collection *collection, const struct mount_record *record)
{
        const bool named = strcmp(record->container_id, collection->called) == 0;
        char key[WISH_KEY_SIZE];

        if (collection->runtime != NULL && record->runtime[0] != '\0' &&
            strcmp(collection->runtime, record->runtime) != 0)
                return false;
        wish_key(collection->called, key);
        return collection->by_identity ? !named && strcmp(record->wanted, key) == 0 : named;
}

static int add_record(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct listing_collection *collection = argument;
        struct listing *listing = collection->listing;
        char *packed;

        if (record == NULL && error->errnum == EBADMSG)
                note(listing->set_aside, &listing->set_aside_count, id);
        else if (record == NULL)
                note(listing->unreadable, &listing->unreadable_count, id);
        if (record == NULL || (collection->called != NULL && !is_called(collection, record)) ||
            (collection->container != NULL && !mount_record_is_of(record, collection->container, collection->boot_id)))
                return 0;
        packed = make_room(listing) ? pack(record) : NULL;
        if (packed == NULL)
                return fail(error, ENOMEM, OPERATION_READ_RECORD, id);
        listing->entries[listing->count] = (struct listing_entry){
                .packed = packed,
                .container_id = record_flat_text(&mount_record_table, packed, "containerId"),
                .target = record_flat_text(&mount_record_table, packed, "target"),
                .wishes = record_flat_text(&mount_record_table, packed, "wanted"),
                .pid = record->pid,
                .placement = PLACEMENT_GONE,
                .device = record->disk != 0 ? block_device_state(record->disk, record->disk_sequence)
                                            : BLOCK_DEVICE_PRESENT,
                .remap_runs = record->remap_key != 0 && mount_record_remap_lives(collection->state, record->remap_key),
        };
        listing->count++;
        return 0;
}
#pragma GCC diagnostic pop

int listing_collect_records(struct listing_collection *collection, struct error *error)
{
        char wanted[MOUNT_RECORD_WANTED_NAME_SIZE];
        char key[WISH_KEY_SIZE];
        int r;

        if (collection->container != NULL)
                return mount_record_each_of(collection->state, &collection->container->mnt_ns, collection->boot_id,
                                            /* except= */ NULL, add_record, collection, error);
        if (collection->called == NULL) {
                r = mount_record_each(collection->state, add_record, collection, error);
                collection->listing->aside_count = state_count_aside(collection->state);
                return r;
        }
        wish_key(collection->called, key);
        mount_record_wanted_name(key, wanted);
        r = mount_record_each_called(collection->state, collection->called, add_record, collection, error);
        collection->by_identity = true;
        return r < 0 ? r : mount_record_each_called(collection->state, wanted, add_record, collection, error);
}

/* A mount that is wanted and of which there is no record: what its request says of it. */
static int add_wish(struct listing_collection *collection, const struct wish_record *wished, const json_t *wish,
                    const char *key, struct error *error)
{
        static struct mount_record record;
        const json_t *request = json_object_get(wish, "request");
        const char *source = json_string_value(json_object_get(request, "volume"))
                                     ?: json_string_value(json_object_get(request, "source"))
                                     ?: json_member_text(request, "type");
        const char *called = json_member_text(wish, "called");
        int r;

        record = (struct mount_record){};
        (void)text_copy(record.id, sizeof record.id, json_member_text(wish, "id"));
        (void)text_copy(record.type, sizeof record.type, json_member_text(request, "type"));
        (void)text_copy(record.source, sizeof record.source, source);
        (void)text_copy(record.target, sizeof record.target, json_member_text(wish, "target"));
        (void)text_copy(record.container_id, sizeof record.container_id,
                        called[0] != '\0' ? called : wished->container);
        (void)text_copy(record.wanted, sizeof record.wanted, key);
        r = add_record(&record, record.id, &(struct listing_collection){ .listing = collection->listing }, error);
        if (r == 0)
                collection->listing->entries[collection->listing->count - 1].wanted = true;
        return r;
}

/* The mount on its target that is there; else one whose record is left; NULL: none. */
static struct listing_entry *find_mount(const struct listing *listing, const char *key, const char *target)
{
        struct listing_entry *found = NULL;

        for (size_t i = 0; i < listing->count; i++) {
                struct listing_entry *entry = &listing->entries[i];

                if (!entry->wanted && strcmp(entry->wishes, key) == 0 && strcmp(entry->target, target) == 0 &&
                    (found == NULL || found->placement == PLACEMENT_GONE))
                        found = entry;
        }
        return found;
}

static int add_wishes(void *read, const char *file, void *argument, struct error *error)
{
        struct listing_collection *collection = argument;
        const struct wish_record *wished = read;
        char key[WISH_KEY_SIZE];
        const json_t *wish;
        int r = 0;
        size_t i;

        if (wished == NULL) {
                note(collection->listing->unreadable, &collection->listing->unreadable_count, file);
                return 0;
        }
        wish_key(wished->container, key);
        json_array_foreach (wished->mounts, i, wish) {
                struct listing_entry *entry = find_mount(collection->listing, key, json_member_text(wish, "target"));

                if (entry != NULL)
                        entry->wanted = true;
                else if (r == 0)
                        r = add_wish(collection, wished, wish, key, error);
        }
        return r;
}

/* A process or a pod says nothing of which container it is: its mounts do. */
static int compare_by_mounts(struct listing_collection *collection, const struct state *state, struct error *error)
{
        const struct listing *listing = collection->listing;
        const size_t count = listing->count; /* what is wanted besides comes after them */
        int r = 0;

        for (size_t i = 0; r == 0 && i < count; i++) {
                const char *key = listing->entries[i].wishes;
                cleanup_wish struct wish_record wished = {};
                bool told = key[0] == '\0';

                for (size_t j = 0; !told && j < i; j++)
                        told = strcmp(listing->entries[j].wishes, key) == 0;
                if (!told && (r = wish_read_key(state, key, &wished, error)) == 0)
                        r = add_wishes(&wished, "", collection, error);
                r = r == -ENOENT ? 0 : r;
        }
        return r;
}

static int add_wishes_called(void *read, const char *file, void *argument, struct error *error)
{
        const struct listing_collection *collection = argument;
        const struct wish_record *wished = read;
        bool called = wished == NULL || container_identity_called(wished->container, collection->called);
        const json_t *wish;
        size_t i;

        json_array_foreach (wished == NULL ? NULL : wished->mounts, i, wish)
                called = called || strcmp(json_member_text(wish, "called"), collection->called) == 0;
        return called ? add_wishes(read, file, argument, error) : 0;
}

int listing_collect_wishes(struct listing_collection *collection, const char *state_dir, struct error *error)
{
        const char *identity = collection->container != NULL ? collection->container->identity : NULL;
        cleanup_wish struct wish_record wished = {};
        cleanup_state struct state state = STATE_NONE;
        int r = wish_open(state_dir, /* create= */ false, &state, error);

        if (r == 0 && collection->called != NULL)
                return wish_each_called(&state, collection->called, add_wishes_called, collection, error);
        if (r == 0 && identity == NULL)
                return wish_each(&state, add_wishes, collection, error);
        if (r == 0 && identity[0] == '\0')
                return compare_by_mounts(collection, &state, error);
        if (r == 0 && (r = wish_read(&state, identity, &wished, error)) == 0)
                return add_wishes(&wished, "", collection, error);
        return r == -ENOENT ? 0 : r;
}
