/* SPDX-License-Identifier: MIT
 * Allocates the memory of template values: a bump allocator with a hard limit, whose memory is released all at once.
 *
 * A rendering opens a pool; callers open another one for the values that they pass to it. Threads must not share a pool
 * while one of them allocates from it. */
#ifndef WHIT_TEMPLATE_POOL_H
#define WHIT_TEMPLATE_POOL_H

#include "base/mem.h"

typedef struct whit_datum_pool {
    const whit_allocator *allocator;
    struct whit_pool_chunk *chunks; /* linked list, newest chunk first */
    uint8_t *top, *end;             /* free part of the newest chunk */
    size_t used_bytes;              /* memory taken from `allocator` for all chunks */
    size_t limit_bytes;             /* limit of used_bytes; 0: unlimited */
} whit_datum_pool;

/* Allocates memory, 16-byte aligned and not zeroed. Returns NULL if memory or the limit is exhausted. */
void *whit_datum_pool_alloc(whit_datum_pool *pool, size_t size_bytes);
/* Allocates n_elems * elem_bytes, 16-byte aligned and zeroed. Returns NULL if memory or the limit is exhausted. */
void *whit_datum_pool_zalloc(whit_datum_pool *pool, size_t n_elems, size_t elem_bytes);
/* Returns a larger block that begins with the old block's contents. The newest block of the pool grows in place if its
 * chunk has room. NULL if memory or the limit is exhausted. */
void *whit_datum_pool_grow(whit_datum_pool *pool, void *memory, size_t old_bytes, size_t new_bytes);
/* Frees all memory. The pool is then empty and can be used again. */
void whit_datum_pool_clear(whit_datum_pool *pool);

#endif
