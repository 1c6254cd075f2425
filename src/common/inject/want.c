/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/steps.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "container/identity.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "process/proc.h"
#include "state/config.h"

/* The request as an entry of mount-batch, without what is of this call alone: a blank volume is not wanted, nor is what was mounted
 * meanwhile replaced. */
static json_t *entry_of(const struct request *request)
{
        json_t *entry = json_copy((json_t *)request->said);
        const char *key;
        json_t *value;
        void *next;

        json_object_foreach_safe (entry, next, key, value)
                if (request_key_has(request, key, REQUEST_ONCE))
                        (void)json_object_del(entry, key); /* it is there */
        if (entry != NULL && json_object_get(entry, "type") == NULL &&
            json_object_set_new(entry, "type", json_string(request->source_kind->word)) < 0) {
                json_decref(entry);
                return NULL;
        }
        return entry;
}

/* What is wanted, and of which source. */
static int make_wish(const struct injection *injection, json_t **ret_wish, struct error *error)
{
        const struct request *request = injection->request;
        cleanup_json json_t *entry = entry_of(request);
        char source[SOURCE_IDENTITY_SIZE] = "";
        char id[WISH_ID_SIZE];
        int r;

        if (injection->kind->identify != NULL && (r = injection->kind->identify(injection, source, error)) < 0)
                return r;
        wish_id(injection->container->identity, request->target, id);
        *ret_wish = entry == NULL ? NULL : wish_entry(id, injection->container->id, request->target, source, entry);
        return *ret_wish == NULL ? fail(error, ENOMEM, "write record", request->target) : 0;
}

static int open_wishes(struct state *wishes, const char *state_dir, bool create, struct error *error)
{
        return wishes->dir_fd >= 0 ? 0 : wish_open(state_dir, create, wishes, error);
}

/* Puts an entry down; "nothing" is not put where nothing was ever wanted. */
static int put(struct state *wishes, const char *state_dir, const char *identity, const char *target,
               const json_t *entry, struct wish_change *ret_change, struct error *error)
{
        int r = open_wishes(wishes, state_dir, /* create= */ entry != NULL, error);

        if (r < 0)
                return r == -ENOENT && entry == NULL ? 0 : r;
        return wish_put(wishes, identity, target, entry, ret_change, error);
}

/* What was wanted before is wanted again. */
static int put_back(struct state *wishes, const char *state_dir, const char *identity, const char *target,
                    const struct wish_change *change, struct error *error)
{
        struct wish_change again = {};
        int r = put(wishes, state_dir, identity, target, change->before, &again, error);

        json_decref(again.before);
        return r;
}

/* The record of a mount that an earlier call made, which may have known the container by another name. */
static int join(const struct injection *injection, struct error *error)
{
        struct mount_record *record = (struct mount_record *)&injection->record;
        char key[WISH_KEY_SIZE];

        wish_key(injection->container->identity, key);
        if (!injection->already || strcmp(record->wanted, key) == 0)
                return 0;
        (void)text_copy(record->wanted, sizeof record->wanted, key);
        return mount_record_write(&injection->session->state, record, error);
}

/* The mount that is replaced may have been wanted by another spelling of the target: both would come back. */
static int drop_replaced(struct injection *injection, struct error *error)
{
        const char *target = injection->replaced.target;

        if (!injection->replacing || strcmp(target, injection->request->target) == 0)
                return 0;
        return put(&injection->session->wishes, injection->session->state_dir, injection->container->identity, target,
                   /* entry= */ NULL, &injection->replaced_wish, error);
}

int want_set(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const char *identity = injection->container->identity;
        struct state *wishes = &injection->session->wishes;
        cleanup_json json_t *wish = NULL;
        int r;

        if (identity[0] == '\0')
                return 0; /* nothing is ever wanted in it */
        if (request->persist &&
            ((r = make_wish(injection, &wish, error)) < 0 ||
             (r = open_wishes(wishes, injection->session->state_dir, /* create= */ true, error)) < 0 ||
             (r = wish_hold(wishes, identity, request->target, error)) < 0))
                return r;
        r = put(wishes, injection->session->state_dir, identity, request->target, wish, &injection->wish, error);
        if (r == 0 && request->persist)
                r = drop_replaced(injection, error);
        return r < 0 ? r : join(injection, error);
}

static bool has_target(const struct wish_record *wanted, const char *target)
{
        const json_t *entry;
        size_t i;

        json_array_foreach (wanted->mounts, i, entry)
                if (strcmp(json_member_text(entry, "target"), target) == 0)
                        return true;
        return false;
}

int want_check(struct injection *injection, struct error *error)
{
        const char *identity = injection->container->identity;
        const char *target = injection->request->target;
        struct state *wishes = &injection->session->wishes;
        cleanup_wish struct wish_record wanted = {};
        int r = open_wishes(wishes, injection->session->state_dir, /* create= */ false, error);

        if ((r < 0 && r != -ENOENT) || (r == 0 && (r = wish_hold(wishes, identity, target, error)) < 0) ||
            (r == 0 && (r = wish_read(wishes, identity, &wanted, error)) < 0 && r != -ENOENT))
                return r;
        return r == 0 && has_target(&wanted, target)
                       ? 0
                       : fail_because(error, EAGAIN, OPERATION_FIND_RECORD, target,
                                      "mount-remove took the wish back meanwhile; repeat the call");
}

static int put_back_at(struct injection *injection, const char *target, const struct wish_change *change,
                       struct error *error)
{
        return change->begun ? put_back(&injection->session->wishes, injection->session->state_dir,
                                        injection->container->identity, target, change, error)
                             : 0;
}

bool want_changed(const struct injection *injection)
{
        return injection->wish.begun || injection->replaced_wish.begun;
}

int want_undo(struct injection *injection, struct error *error)
{
        int other = put_back_at(injection, injection->replaced.target, &injection->replaced_wish, error);
        int r = put_back_at(injection, injection->request->target, &injection->wish, error);

        return r < 0 ? r : other;
}

/* ---- removal */

struct search {
        struct removal *removal;
        const char *name;
        size_t count;
};

static void take_note(struct removal *removal, const char *identity, const json_t *entry)
{
        (void)text_copy(removal->wanted_in, sizeof removal->wanted_in, identity);
        (void)text_copy(removal->wanted_at, sizeof removal->wanted_at, json_member_text(entry, "target"));
        (void)text_copy(removal->wanted_id, sizeof removal->wanted_id, json_member_text(entry, "id"));
}

/* By id, or by target in a container that is called so. */
static bool is_meant(const struct search *search, const struct wish_record *wanted, const json_t *entry)
{
        const struct request *request = search->removal->request;

        if (request->id != NULL)
                return strcmp(json_member_text(entry, "id"), request->id) == 0;
        return strcmp(json_member_text(entry, "target"), request->target) == 0 &&
               (container_identity_called(wanted->container, search->name) ||
                strcmp(json_member_text(entry, "called"), search->name) == 0);
}

static int look_in(void *record, const char *file, void *argument, struct error *error)
{
        const struct wish_record *wanted = record;
        struct search *search = argument;
        const json_t *entry;
        size_t i;

        (void)file;
        (void)error; /* a file that cannot be read says nothing */
        json_array_foreach (wanted == NULL ? NULL : wanted->mounts, i, entry)
                if (is_meant(search, wanted, entry)) {
                        search->count++;
                        take_note(search->removal, wanted->container, entry);
                }
        return 0;
}

/* Of a mount on the target of the wish that was found, in a container that runs. */
static int match_running(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        const struct removal *removal = argument;
        cleanup_container struct container running = CONTAINER_NONE;
        char boot_id[PROC_BOOT_ID_SIZE];
        char key[WISH_KEY_SIZE];
        struct error ignored;

        wish_key(removal->wanted_in, key);
        if (record == NULL || strcmp(record->wanted, key) != 0 || strcmp(record->target, removal->wanted_at) != 0 ||
            proc_boot_id(boot_id) < 0 || mount_record_reach(record, boot_id, &running, &ignored) < 0)
                return 0;
        return fail_because(error, EBUSY, OPERATION_FIND_RECORD, removal->wanted_id,
                            "the container runs again, and it is mounted there with the id %s", id);
}

/* With the lock of the wish: a call that makes its mount has recorded that, or has not begun. */
static int find_running(struct removal *removal, struct state *wishes, struct error *error)
{
        char name[MOUNT_RECORD_WANTED_NAME_SIZE];
        char key[WISH_KEY_SIZE];
        int r = wish_hold(wishes, removal->wanted_in, removal->wanted_at, error);

        if (r < 0 || removal->state.dir_fd < 0)
                return r;
        wish_key(removal->wanted_in, key);
        mount_record_wanted_name(key, name);
        r = mount_record_each_called(&removal->state, name, match_running, removal, error);
        /* of one that was named by what it is known by */
        return r < 0 ? r : mount_record_each_called(&removal->state, removal->wanted_in, match_running, removal, error);
}

/* In a container that does not run, or is gone. ret_count: how many are meant; one is noted. */
static int count_called(struct removal *removal, size_t *ret_count, struct error *error)
{
        struct search search = { .removal = removal };
        char name[CONTAINER_NAME_MAX];
        int r = 0;

        container_reference_name(&removal->request->container, name, sizeof name);
        search.name = name;
        if (removal->request->id != NULL)
                r = wish_each_of_id(&removal->wishes, removal->request->id, look_in, &search, error);
        else if (name[0] != '\0')
                r = wish_each_called(&removal->wishes, name, look_in, &search, error);
        *ret_count = search.count;
        return r;
}

static int find_by_name(struct removal *removal, struct error *error)
{
        size_t count;
        int r = count_called(removal, &count, error);

        if (r == 0 && count > 1)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_RECORD,
                                    removal->request->id != NULL ? removal->request->id : removal->request->target,
                                    "it is wanted in several containers that are called so; mount-list has their ids");
        return r == 0 && count == 1 ? find_running(removal, &removal->wishes, error) : r;
}

/* By the container that runs, or by what the record of the mount says. */
static int find_in_container(struct removal *removal, struct state *state, struct error *error)
{
        const struct mount_record *record = &removal->record;
        const char *target = record->id[0] != '\0' ? record->target : removal->request->target;
        cleanup_wish struct wish_record wanted = {};
        char key[WISH_KEY_SIZE];
        const json_t *entry;
        size_t i;
        int r;

        if (removal->container.identity[0] != '\0')
                wish_key(removal->container.identity, key);
        else
                (void)text_copy(key, sizeof key, record->wanted);
        if (key[0] != '\0')
                wish_tidy(state, key);
        if (key[0] == '\0' || (r = wish_read_key(state, key, &wanted, error)) == -ENOENT)
                return 0;
        if (r == 0 && json_array_size(wanted.mounts) == 0) { /* of a removal that was killed */
                struct wish_change change = {};

                r = wish_put(state, wanted.container, target, /* entry= */ NULL, &change, error);
        }
        if (r == 0 &&
            (removal->container.identity[0] == '\0' || strcmp(wanted.container, removal->container.identity) == 0))
                json_array_foreach (wanted.mounts, i, entry)
                        if (strcmp(json_member_text(entry, "target"), target) == 0)
                                take_note(removal, wanted.container, entry);
        if (removal->reachable || removal->wanted_in[0] == '\0')
                return r;
        r = find_running(removal, state, error);
        if (r == -EBUSY) /* what is left of an earlier run: the wish has its mount in this one */
                removal->wanted_in[0] = '\0';
        return r == -EBUSY ? 0 : r;
}

/* 1 they are open; 0 nothing was ever wanted on this node; or negative errno. */
static int open_for_removal(struct removal *removal, struct error *error)
{
        int r = config_state_dir(removal->state_dir, error);

        if (r == 0)
                r = open_wishes(&removal->wishes, removal->state_dir, /* create= */ false, error);
        return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

static int find_wish(struct removal *removal, struct error *error)
{
        bool known = removal->container.identity[0] != '\0' || removal->record.wanted[0] != '\0';
        int r = open_for_removal(removal, error);

        if (r <= 0)
                return r;
        if (known)
                return find_in_container(removal, &removal->wishes, error);
        /* a container that runs and has no identity has no wishes: one that does not run may be called as it is */
        return removal->reachable ? 0 : find_by_name(removal, error);
}

int want_has_called(struct removal *removal, struct error *error)
{
        size_t count = 0;
        int r = open_for_removal(removal, error);

        if (r > 0)
                r = count_called(removal, &count, error);
        removal->wanted_in[0] = '\0'; /* find_wish() says which it is */
        return r < 0 ? r : count > 0;
}

int want_take(struct removal *removal, struct error *error)
{
        int r = find_wish(removal, error);

        if (r < 0 || removal->wanted_in[0] == '\0')
                return r;
        return put(&removal->wishes, removal->state_dir, removal->wanted_in, removal->wanted_at, NULL, &removal->wish,
                   error);
}

int want_give_back(struct removal *removal, struct error *error)
{
        return put_back(&removal->wishes, removal->state_dir, removal->wanted_in, removal->wanted_at, &removal->wish,
                        error);
}
