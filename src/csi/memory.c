/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)4000) /* with malloc()'s own, less than a page */
#define LARGE_BYTES (BLOCK_BYTES / 4)

struct memory_block {
        struct memory_block *next;
        size_t size; /* of data */
        size_t used;
        alignas(max_align_t) char data[];
};

static size_t all_used;

static void *allocate(void *of_memory, size_t size)
{
        return memory_take(of_memory, size);
}

/* All is freed with the call. */
static void release(void *of_memory, void *piece)
{
        (void)of_memory;
        (void)piece;
}

void memory_init(struct memory *memory, size_t limit)
{
        *memory = (struct memory){ .limit = limit };
        memory->allocator = (ProtobufCAllocator){ .alloc = allocate, .free = release, .allocator_data = memory };
}

/* A large piece has a block of its own, behind the one that is being filled. */
static struct memory_block *add_block(struct memory *memory, size_t size)
{
        struct memory_block *block = calloc(1, sizeof *block + size);

        if (block == NULL)
                return NULL;
        block->size = size;
        if (size != BLOCK_BYTES && memory->blocks != NULL) {
                block->next = memory->blocks->next;
                memory->blocks->next = block;
        } else {
                block->next = memory->blocks;
                memory->blocks = block;
        }
        return block;
}

static void *take(struct memory *memory, size_t size)
{
        struct memory_block *block = memory->blocks;

        size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        if (size > LARGE_BYTES)
                block = add_block(memory, size);
        else if (block == NULL || block->size - block->used < size)
                block = add_block(memory, BLOCK_BYTES);
        if (block == NULL)
                return NULL;
        block->used += size;
        memory->used += size;
        all_used += size;
        return block->data + block->used - size;
}

void *memory_take(struct memory *memory, size_t size)
{
        if (memory->used >= memory->limit || size > memory->limit - memory->used) {
                memory->exhausted = true;
                return NULL;
        }
        if (all_used >= MEMORY_ALL_BYTES || size > MEMORY_ALL_BYTES - all_used) {
                memory->crowded = true;
                return NULL;
        }
        return take(memory, size);
}

void *memory_take_always(struct memory *memory, size_t size)
{
        void *piece = size <= SIZE_MAX / 2 ? take(memory, size) : NULL;

        if (piece == NULL)
                abort(); /* the service starts anew, and every call is repeated */
        return piece;
}

void memory_end(struct memory *memory)
{
        struct memory_block *next;

        for (struct memory_block *block = memory->blocks; block != NULL; block = next) {
                next = block->next;
                memory_forget(block, sizeof *block + block->used);
        }
        all_used -= memory->used;
        *memory = (struct memory){};
}

void memory_forget(void *bytes, size_t size)
{
        if (bytes == NULL)
                return;
        explicit_bzero(bytes, size);
        free(bytes);
}
