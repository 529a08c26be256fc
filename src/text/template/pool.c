/* SPDX-License-Identifier: MIT */
#include "template/pool.h"

enum { ALIGN_BYTES = 16, FIRST_CHUNK_BYTES = 16 * 1024, LARGEST_STEP_BYTES = 4 << 20 };

struct whit_pool_chunk {
    struct whit_pool_chunk *older;
    size_t size_bytes;
};

static bool add_chunk(whit_datum_pool *pool, size_t need_bytes)
{
    size_t header = whit_round_up(sizeof(struct whit_pool_chunk), ALIGN_BYTES), least;
    if (!whit_add_size(need_bytes, header, &least)) return false;
    size_t size = pool->used_bytes; /* as large as all earlier chunks together, within limits */
    if (size < FIRST_CHUNK_BYTES) size = FIRST_CHUNK_BYTES;
    if (size > LARGEST_STEP_BYTES) size = LARGEST_STEP_BYTES;
    if (size < least) size = least;
    if (pool->limit_bytes) {
        size_t left = pool->limit_bytes > pool->used_bytes ? pool->limit_bytes - pool->used_bytes : 0;
        if (least > left) return false;
        if (size > left) size = left;
    }
    struct whit_pool_chunk *chunk = whit_alloc(pool->allocator, size);
    if (!chunk) return false;
    chunk->older = pool->chunks;
    chunk->size_bytes = size;
    pool->chunks = chunk;
    pool->used_bytes += size;
    pool->top = (uint8_t *)chunk + header;
    pool->end = (uint8_t *)chunk + size;
    return true;
}

void *whit_datum_pool_alloc(whit_datum_pool *pool, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX / 2) return NULL;
    size_t size = whit_round_up(size_bytes ? size_bytes : 1, ALIGN_BYTES);
    if (!pool->top || size > (size_t)(pool->end - pool->top))
        if (!add_chunk(pool, size)) return NULL;
    void *memory = pool->top;
    pool->top += size;
    return memory;
}

void *whit_datum_pool_zalloc(whit_datum_pool *pool, size_t n_elems, size_t elem_bytes)
{
    size_t size;
    if (!whit_mul_size(n_elems, elem_bytes, &size)) return NULL;
    void *memory = whit_datum_pool_alloc(pool, size);
    if (memory && size) memset(memory, 0, size);
    return memory;
}

void *whit_datum_pool_grow(whit_datum_pool *pool, void *memory, size_t old_bytes, size_t new_bytes)
{
    if (new_bytes > SIZE_MAX / 2) return NULL;
    size_t old_size = whit_round_up(old_bytes ? old_bytes : 1, ALIGN_BYTES);
    size_t new_size = whit_round_up(new_bytes ? new_bytes : 1, ALIGN_BYTES);
    if (memory && (uint8_t *)memory + old_size == pool->top && new_size - old_size <= (size_t)(pool->end - pool->top)) {
        pool->top += new_size - old_size;
        return memory;
    }
    void *larger = whit_datum_pool_alloc(pool, new_bytes);
    if (larger && old_bytes) memcpy(larger, memory, old_bytes);
    return larger;
}

void whit_datum_pool_clear(whit_datum_pool *pool)
{
    while (pool->chunks) {
        struct whit_pool_chunk *chunk = pool->chunks;
        pool->chunks = chunk->older;
        whit_free(pool->allocator, chunk, chunk->size_bytes);
    }
    pool->top = pool->end = NULL;
    pool->used_bytes = 0;
}
