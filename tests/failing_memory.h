/* SPDX-License-Identifier: MIT
 * An allocator of which one allocation fails, the one after the first n, and which counts blocks that are not freed. It
 * fills new blocks with NaNs and -1s, so that a read before the first write gives a wrong result:
 *     struct failing failing = {.n_left = n};
 *     whit_allocator allocator = {failing_alloc, failing_free, &failing}; */
#ifndef WHIT_TESTS_FAILING_MEMORY_H
#define WHIT_TESTS_FAILING_MEMORY_H

#include "base/mem.h"
#include "base/system.h"

#include <limits.h>
#include <string.h>

struct failing {
    long n_left, n_live;
    size_t live_bytes;
};

static inline void *failing_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    struct failing *failing = user;
    if (failing->n_left-- == 0) return NULL;
    failing->n_live++;
    failing->live_bytes += size_bytes;
    size_t bytes = (size_bytes + WHIT_ALIGN_BYTES - 1) / WHIT_ALIGN_BYTES * WHIT_ALIGN_BYTES;
    void *memory = align_bytes <= WHIT_ALIGN_BYTES ? whit_system_alloc(bytes, WHIT_ALIGN_BYTES) : NULL;
    if (memory) memset(memory, 0xFF, bytes);
    return memory;
}

static inline void failing_free(void *user, void *memory, size_t size_bytes)
{
    struct failing *failing = user;
    failing->n_live--;
    failing->live_bytes -= size_bytes;
    whit_system_free(memory);
}

#endif
