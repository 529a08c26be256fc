/* SPDX-License-Identifier: MIT
 * An allocator whose N-th allocation fails, and which counts what was not freed:
 *     struct failing failing = {.n_left = n};
 *     whit_allocator allocator = {failing_alloc, failing_free, &failing}; */
#ifndef WHIT_TESTS_FAILING_MEMORY_H
#define WHIT_TESTS_FAILING_MEMORY_H

#include <stdlib.h>

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
    return aligned_alloc(align_bytes, (size_bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static inline void failing_free(void *user, void *memory, size_t size_bytes)
{
    struct failing *failing = user;
    failing->n_live--;
    failing->live_bytes -= size_bytes;
    free(memory);
}

#endif
