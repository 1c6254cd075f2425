/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - what one call allocates: many pieces with a limit, freed and overwritten at once, since secrets are among
 * them.
 */
#ifndef FLEXGRAFT_CSI_MEMORY_H
#define FLEXGRAFT_CSI_MEMORY_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct memory {
        struct memory_block *blocks;
        size_t used;
        size_t limit;
        bool exhausted; /* a piece was refused because of the limit */
        ProtobufCAllocator allocator;
};

/* memory_init() - an empty one, whose pieces may have limit bytes together. */
void memory_init(struct memory *memory, size_t limit);

/* memory_take() - so many zero bytes, aligned for any type. NULL: beyond the limit, or the system has no memory. */
void *memory_take(struct memory *memory, size_t size);

/* memory_take_always() - the same without the limit; the process ends if the system has no memory. */
void *memory_take_always(struct memory *memory, size_t size);

/* memory_end() - free all pieces. */
void memory_end(struct memory *memory);

/* memory_forget() - overwrite and free what malloc() gave; NULL: nothing. */
void memory_forget(void *bytes, size_t size);

#endif
