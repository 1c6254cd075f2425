/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/disk_uses.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/json.h"

static void add_stack(char *keys, const struct block_stack *stack)
{
        for (size_t i = 0; i < stack->count; i++)
                use_keys_add_device(keys, stack->numbers[i]);
}

int disk_uses_add_device(char *keys, uint64_t number, unsigned flags, struct error *error)
{
        struct block_stack stack;
        int r = block_stack_find(number, flags, &stack, error);

        if (r < 0)
                return r;
        add_stack(keys, &stack);
        return 0;
}

int disk_uses_add_image(char *keys, int fd, struct error *error)
{
        struct block_stack stack = {};
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", "image");
        if ((r = block_stack_add_loops(fd, &st, &stack, error)) < 0)
                return r;
        use_keys_add_file(keys, st.st_dev, st.st_ino);
        add_stack(keys, &stack);
        return 0;
}

/* ---- disks of deleted volumes (retained, or recycled) that volume-create may choose again, of pools */

#define FILE_NAME "released.set" /* beside the records, and no name of one */

/* Empty where there is none, or a damaged one. Owned by the caller. */
static int read_set(const struct state *state, json_t **ret_set, struct error *error)
{
        int r = state->dir_fd < 0 ? -ENOENT : json_file_load(state->dir_fd, FILE_NAME, JSON_OBJECT, ret_set, error);

        if (r != -ENOENT && r != -EBADMSG)
                return r;
        *ret_set = json_object();
        return 0;
}

bool released_disks_has(const struct state *state, const char *identity)
{
        cleanup_json json_t *set = NULL;
        struct error ignored; /* then the disk is not chosen */

        return read_set(state, &set, &ignored) == 0 && json_object_get(set, identity) != NULL;
}

static int change(struct state *state, const char *identity, bool released, struct error *error)
{
        const uint64_t key = hash_text(FILE_NAME "/"); /* no volume's (volume_record_key()) */
        cleanup_json json_t *set = NULL;
        int r;

        if (identity[0] == '\0')
                return 0;
        if ((r = state_lock(state, key, error)) < 0)
                return r;
        r = read_set(state, &set, error);
        if (r == 0 && (json_object_get(set, identity) != NULL) != released) {
                r = released ? json_object_set_new(set, identity, json_true()) : json_object_del(set, identity);
                r = r == 0 ? json_file_replace(state->dir_fd, FILE_NAME, set, FILE_DURABLE) : -ENOMEM;
                r = r < 0 ? fail(error, -r, "write", FILE_NAME) : 0;
        }
        state_unlock(state, key);
        return r;
}

int released_disks_add(struct state *state, const char *identity, struct error *error)
{
        return change(state, identity, /* released= */ true, error);
}

int released_disks_remove(struct state *state, const char *identity, struct error *error)
{
        return change(state, identity, /* released= */ false, error);
}
