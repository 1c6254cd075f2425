/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - what one call allocates: many pieces with a limit, freed and overwritten at once, since secrets are among
 * them. All calls together have a limit, too, MEMORY_ALL_BYTES.
 */
#ifndef FLEXGRAFT_CSI_MEMORY_H
#define FLEXGRAFT_CSI_MEMORY_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#define MEMORY_ALL_BYTES ((size_t)192 * 1024 * 1024)

struct memory {
        struct memory_block *blocks;
        size_t used;
        size_t limit;
        bool exhausted; /* a piece was refused because of the limit */
        bool crowded;   /* one was refused because of what all calls have together */
        ProtobufCAllocator allocator;
};

/* memory_init() - an empty one, whose pieces may have limit bytes together. */
void memory_init(struct memory *memory, size_t limit);

/* memory_take() - so many zero bytes, aligned for any type. NULL: beyond a limit, or the system has no memory. */
void *memory_take(struct memory *memory, size_t size);

/* memory_take_always() - the same without the limits; the process ends if the system has no memory. */
void *memory_take_always(struct memory *memory, size_t size);

/* memory_end() - free all pieces. */
void memory_end(struct memory *memory);

/* memory_forget() - overwrite and free what malloc() gave; NULL: nothing. */
void memory_forget(void *bytes, size_t size);

#endif
