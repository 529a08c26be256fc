/* SPDX-License-Identifier: MIT
 * An allocator whose blocks are not zeroed: they contain the bytes of earlier users, or one byte repeated. So tests
 * find code that relies on zeroed memory. */
#ifndef WHIT_TESTS_DIRTY_MEMORY_H
#define WHIT_TESTS_DIRTY_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "whit/base.h"

/* State of the allocator: with `reuses` it returns freed blocks unchanged, otherwise new blocks filled with `fill`. */
static struct dirty {
    void *block[4];
    size_t bytes[4];
    uint8_t fill;
    bool reuses;
} dirty;

static void *dirty_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    (void)user;
    for (int i = 0; i < 4 && dirty.reuses; i++)
        if (dirty.block[i] && dirty.bytes[i] >= size_bytes && dirty.bytes[i] < 2 * size_bytes) {
            void *block = dirty.block[i];
            dirty.block[i] = NULL;
            return block;
        }
    size_t bytes = (size_bytes + align_bytes - 1) / align_bytes * align_bytes;
    void *block = aligned_alloc(align_bytes, bytes);
    if (block) memset(block, dirty.fill, bytes);
    return block;
}

static void dirty_free(void *user, void *memory, size_t size_bytes)
{
    (void)user;
    enum { LEAST_BYTES = 4096 }; /* only blocks of this size, such as arenas, are kept for reuse */
    int at = 0;
    for (int i = 0; i < 4; i++)
        if (!dirty.block[i]) at = i;
    if (!memory || size_bytes < LEAST_BYTES) {
        free(memory);
        return;
    }
    free(dirty.block[at]);
    dirty.block[at] = memory;
    dirty.bytes[at] = size_bytes;
}

static const whit_allocator dirty_allocator = {dirty_alloc, dirty_free, NULL};

#endif
