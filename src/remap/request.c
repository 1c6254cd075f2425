/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <string.h>

#define SMALL ((size_t)32 * 1024)

/* At the end of the place for the answer, which that of such a request does not reach. */
struct note {
        uint64_t unique; /* of the request that it is of */
        uint64_t device;
        uint64_t inode;
};

static uint64_t given_up[THREADS_MAX]; /* the last such request of each slot */
static int slots;                      /* those that were used */
static __thread int own_slot = -1;
static __thread struct fuse_in_header *current; /* NULL: none */
static __thread bool replaying;
static __thread bool changed_before; /* by an earlier daemon */
static __thread int backing_id;
static __thread const struct caller_ids *asker; /* NULL: nothing is known of it */

struct fuse_in_header *request_buffer(int slot)
{
        return (struct fuse_in_header *)(void *)shared->requests[slot];
}

void request_use_slot(int slot)
{
        own_slot = slot;
        if (slot >= __atomic_load_n(&slots, __ATOMIC_RELAXED))
                __atomic_store_n(&slots, slot + 1, __ATOMIC_RELAXED);
}

int request_slots(void)
{
        return __atomic_load_n(&slots, __ATOMIC_RELAXED);
}

int request_slot(void)
{
        return own_slot;
}

size_t request_length(const struct fuse_in_header *header)
{
        const struct fuse_read_in *reading = (const void *)(header + 1);

        return header->opcode == FUSE_READ ? reading->size : header->len;
}

bool request_takes_long(const struct fuse_in_header *header)
{
        switch (header->opcode) {
        case FUSE_READ:
        case FUSE_WRITE:
                return shared->network || request_length(header) > SMALL;
        case FUSE_FSYNC:
        case FUSE_FSYNCDIR:
        case FUSE_FALLOCATE:
        case FUSE_COPY_FILE_RANGE:
        case FUSE_LSEEK:
                return true;
        default:
                return shared->network;
        }
}

void request_start(struct fuse_in_header *header)
{
        current = header;
        changed_before = replaying && own_slot >= 0 && shared->changing[own_slot];
}

void request_finish(void)
{
        backing_id = 0;
        current = NULL;
        asker = NULL;
}

void request_note_asker(const struct caller_ids *ids)
{
        asker = ids;
}

const struct caller_ids *request_asker(void)
{
        return asker;
}

const struct fuse_in_header *request_current(void)
{
        return current;
}

void request_replay(bool replayed)
{
        replaying = replayed;
}

bool request_replayed(void)
{
        return replaying;
}

void request_changes(void)
{
        if (own_slot >= 0)
                shared->changing[own_slot] = true;
}

bool request_may_have_changed(void)
{
        return changed_before;
}

static uint8_t *note_of(int slot)
{
        return shared->answers[slot] + ANSWER_SIZE - sizeof(struct note);
}

void request_note_file(const struct stat *st)
{
        const struct note note = { .unique = current->unique, .device = st->st_dev, .inode = st->st_ino };

        if (own_slot >= 0)
                (void)memcpy(note_of(own_slot), &note, sizeof note);
}

bool request_noted_another(const struct stat *st)
{
        struct note note;

        if (!request_may_have_changed())
                return false;
        (void)memcpy(&note, note_of(own_slot), sizeof note);
        return note.unique == current->unique && (note.device != st->st_dev || note.inode != st->st_ino);
}

bool request_keep(uint8_t ret_copy[WAITER_SIZE])
{
        const uint32_t size = current->len;

        if (size > WAITER_SIZE)
                return false;
        (void)memcpy(ret_copy + sizeof size, (const uint8_t *)current + sizeof size, size - sizeof size);
        (void)memcpy(ret_copy, &size, sizeof size);           /* last: from here on it is one */
        __atomic_store_n(&current->len, 0, __ATOMIC_RELEASE); /* and it alone is repeated */
        return true;
}

void request_give_up(int slot, uint64_t unique)
{
        __atomic_store_n(&given_up[slot], unique, __ATOMIC_SEQ_CST);
}

bool request_given_up(void)
{
        return own_slot >= 0 && current != NULL &&
               __atomic_load_n(&given_up[own_slot], __ATOMIC_SEQ_CST) == current->unique;
}

void request_pass_through(int backing)
{
        backing_id = backing;
}

int request_take_backing(void)
{
        int taken = backing_id;

        backing_id = 0;
        return taken;
}
