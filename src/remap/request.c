/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <string.h>

#define SMALL ((size_t)32 * 1024)
#define OPENED UINT64_MAX /* for a device: the inode is a descriptor */

/* At the end of the place for the answer, behind ANSWER_KEPT. */
struct note {
        uint64_t given_up; /* the last request of the slot that was */
        uint64_t unique;   /* of the request that the rest is of */
        uint64_t device;
        uint64_t inode;
};
_Static_assert(ANSWER_KEPT + sizeof(struct note) == ANSWER_SIZE, "one behind the other");

static int slots; /* those that were used */
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
        case NEWER_COPY:
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

static struct note *note_of(int slot)
{
        return (struct note *)(void *)(shared->answers[slot] + ANSWER_KEPT);
}

void request_note_file(const struct stat *st)
{
        struct note *note;

        if (own_slot < 0)
                return;
        note = note_of(own_slot);
        note->device = st->st_dev;
        note->inode = st->st_ino;
        __atomic_store_n(&note->unique, current->unique, __ATOMIC_RELEASE);
}

bool request_noted(void)
{
        return request_may_have_changed() && note_of(own_slot)->unique == current->unique;
}

bool request_noted_another(const struct stat *st)
{
        const struct note *note;

        if (!request_noted())
                return false;
        note = note_of(own_slot);
        return note->device != st->st_dev || note->inode != st->st_ino;
}

void request_note_opened(int fd)
{
        struct note *note;

        if (own_slot < 0)
                return;
        note = note_of(own_slot);
        note->device = OPENED;
        note->inode = (uint64_t)fd;
        __atomic_store_n(&note->unique, current->unique, __ATOMIC_RELEASE);
}

int request_take_untold(int slot)
{
        const struct fuse_in_header *header = request_buffer(slot);
        const struct fuse_out_header *answer = (const void *)shared->answers[slot];
        struct note *note = note_of(slot);

        if (header->len == 0 || note->unique != header->unique || note->device != OPENED ||
            (shared->answer_sizes[slot] > 0 && answer->unique == header->unique))
                return -1;
        note->unique = 0; /* the number is another file's soon */
        return (int)note->inode;
}

bool request_keep(uint8_t ret_copy[WAITER_SIZE])
{
        const uint32_t size = current->len;

        if (size > WAITER_SIZE)
                return false;
        (void)memcpy(ret_copy + sizeof size, (const uint8_t *)current + sizeof size, size - sizeof size);
        (void)memcpy(ret_copy, &size, sizeof size);           /* last: from here on it is one */
        __atomic_store_n(&current->len, 0, __ATOMIC_SEQ_CST); /* and it alone is repeated */
        return true;
}

bool request_give_up(int slot, uint64_t unique)
{
        __atomic_store_n(&note_of(slot)->given_up, unique, __ATOMIC_SEQ_CST);
        return __atomic_load_n(&request_buffer(slot)->len, __ATOMIC_SEQ_CST) > 0;
}

bool request_was_given_up(int slot)
{
        return __atomic_load_n(&note_of(slot)->given_up, __ATOMIC_SEQ_CST) == request_buffer(slot)->unique;
}

bool request_given_up(void)
{
        return own_slot >= 0 && current == request_buffer(own_slot) && request_was_given_up(own_slot);
}

int request_files(const struct fuse_in_header *header, int ret_fds[REQUEST_FILES_MAX])
{
        const struct fuse_setattr_in *set = (const void *)(header + 1);
        const struct fuse_copy_file_range_in *copy = (const void *)(header + 1);
        const uint64_t *first = (const void *)(header + 1);

        switch (header->opcode) {
        case FUSE_READ:
        case FUSE_WRITE:
        case FUSE_FLUSH:
        case FUSE_FSYNC:
        case FUSE_FSYNCDIR:
        case FUSE_FALLOCATE:
        case FUSE_LSEEK:
        case FUSE_IOCTL:
        case FUSE_GETLK:
        case FUSE_SETLK:
        case FUSE_SETLKW:
        case FUSE_READDIR:
        case FUSE_READDIRPLUS:
                ret_fds[0] = (int)*first;
                return 1;
        case FUSE_SETATTR:
                ret_fds[0] = (int)set->fh;
                return (set->valid & FATTR_FH) != 0;
        case FUSE_COPY_FILE_RANGE:
        case NEWER_COPY:
                ret_fds[0] = (int)copy->fh_in;
                ret_fds[1] = (int)copy->fh_out;
                return 2;
        default:
                return 0;
        }
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
