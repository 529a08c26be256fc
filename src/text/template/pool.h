/* SPDX-License-Identifier: MIT
 * Allocates the memory of template values: a bump allocator with a hard limit, which is released all at once.
 *
 * A render opens a pool of its own; callers open one for the values that they pass in. Threads must not share a pool
 * while it grows. */
#ifndef WHIT_TEMPLATE_POOL_H
#define WHIT_TEMPLATE_POOL_H

#include "base/mem.h"

typedef struct whit_datum_pool {
    const whit_allocator *allocator;
    struct whit_pool_chunk *chunks; /* newest first */
    uint8_t *top, *end;             /* free part of the newest chunk */
    size_t used_bytes;              /* bytes taken from the allocator, all chunks */
    size_t limit_bytes;             /* limit of used_bytes; 0: no limit */
} whit_datum_pool;

/* Allocates memory, 16-byte aligned, not zeroed; NULL when memory or the limit is exhausted. */
void *whit_datum_pool_alloc(whit_datum_pool *pool, size_t size_bytes);
/* Allocates n_elems * elem_bytes, 16-byte aligned and zeroed; NULL when memory or the limit is exhausted. */
void *whit_datum_pool_zalloc(whit_datum_pool *pool, size_t n_elems, size_t elem_bytes);
/* Returns a larger block with the old contents; the newest block grows in place. */
void *whit_datum_pool_grow(whit_datum_pool *pool, void *memory, size_t old_bytes, size_t new_bytes);
/* Frees everything; the pool is empty and usable again. */
void whit_datum_pool_clear(whit_datum_pool *pool);

#endif
