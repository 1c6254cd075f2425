/* SPDX-License-Identifier: Apache-2.0 */
#include "buckets.h"

#include <string.h>

#define BITS_MIN 10
#define BITS_STEP 2

static uint32_t count; /* nodes in the table */
static unsigned bits;  /* 2 to the power of it is how many buckets are in use */

static uint32_t *bucket_of(uint64_t device, uint64_t inode)
{
        uint64_t hash = (inode ^ device << 40) * 0x9e3779b97f4a7c15U;

        return &shared->buckets[hash >> (64 - bits)];
}

static void put(struct node *node)
{
        uint32_t *bucket = bucket_of(node->device, node->inode);

        node->next = *bucket;
        *bucket = (uint32_t)(node - shared->nodes);
        count++;
}

static void fill(void)
{
        count = 0;
        (void)memset(shared->buckets, 0, sizeof(uint32_t) << bits);
        for (uint32_t i = 1; i < shared->nodes_high; i++)
                if (shared->nodes[i].used)
                        put(&shared->nodes[i]);
}

static bool are_too_few(void)
{
        return bits < BUCKET_BITS_MAX && count >= (uint32_t)1 << bits;
}

void buckets_begin(void)
{
        bits = BITS_MIN;
        for (fill(); are_too_few(); fill())
                bits += BITS_STEP;
}

void buckets_put(struct node *node)
{
        if (are_too_few()) {
                bits += BITS_STEP;
                fill();
        }
        put(node);
}

void buckets_take(const struct node *node)
{
        uint32_t *link = bucket_of(node->device, node->inode);

        while (*link != 0 && &shared->nodes[*link] != node)
                link = &shared->nodes[*link].next;
        if (*link == 0)
                return;
        *link = node->next;
        count--;
}

uint32_t buckets_first(uint64_t device, uint64_t inode)
{
        return *bucket_of(device, inode);
}
