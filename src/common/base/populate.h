/* SPDX-License-Identifier: Apache-2.0 */
/*
 * populate.h - have memory that is about to be used, all at once: each page by itself would be a fault, which costs several
 * times what the page does.
 */
#ifndef FLEXGRAFT_BASE_POPULATE_H
#define FLEXGRAFT_BASE_POPULATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/*
 * populate() - the pages of size bytes at start, and of no others. Where the kernel cannot (before Linux 5.14), or has no
 * memory, nothing is lost: the pages come one by one.
 */
static inline void populate(void *start, size_t size)
{
        const uintptr_t page = 4096;
        const uintptr_t begin = (uintptr_t)start & ~(page - 1);
        const uintptr_t end = ((uintptr_t)start + size + page - 1) & ~(page - 1);

        (void)madvise((char *)start - ((uintptr_t)start - begin), end - begin, MADV_POPULATE_WRITE);
}

#endif
