/* SPDX-License-Identifier: MIT */
#include "kv/pool.h"

#include "base/mem.h"
#include "base/pages.h"

bool whit_kv_pool_size(whit_kv_pool *pool, uint32_t n_layers, uint32_t n_kv_heads, size_t head_bytes, uint64_t n_blocks,
                       uint64_t *bytes)
{
    *pool = (whit_kv_pool){.n_layers = n_layers, .n_kv_heads = n_kv_heads, .head_bytes = head_bytes, .n_buckets = 16};
    if (n_blocks > UINT32_MAX / 2) return false;
    pool->n_blocks = (uint32_t)n_blocks;
    uint64_t pieces = (uint64_t)n_layers * n_kv_heads, block, data;
    if (__builtin_mul_overflow(pieces, (uint64_t)head_bytes, &block) ||
        __builtin_mul_overflow(block, n_blocks, &data) || data > SIZE_MAX / 2)
        return false;
    pool->block_bytes = (size_t)block;
    while (pool->n_buckets < n_blocks) pool->n_buckets *= 2;
    *bytes = data + n_blocks * sizeof *pool->names + (2 * n_blocks + pool->n_buckets) * sizeof(uint32_t);
    return true;
}

uint8_t *whit_kv_pool_init(whit_kv_pool *pool, uint8_t *memory)
{
    pool->data = memory;
    pool->names = (whit_kv_name *)(void *)(memory + pool->block_bytes * pool->n_blocks);
    pool->references = (uint32_t *)(void *)(pool->names + pool->n_blocks);
    pool->free_blocks = pool->references + pool->n_blocks;
    pool->buckets = pool->free_blocks + pool->n_blocks;
    memset(pool->buckets, 0, pool->n_buckets * sizeof *pool->buckets);
    memset(pool->references, 0, pool->n_blocks * sizeof *pool->references);
    for (uint32_t i = 0; i < pool->n_blocks; i++) {
        pool->names[i].is_named = pool->names[i].is_kept = false;
        pool->free_blocks[i] = pool->n_blocks - 1 - i; /* blocks are taken from the end of this list, so block 0 is
                                                        * taken first */
    }
    pool->n_free = pool->n_blocks;
    pool->oldest = pool->newest = pool->n_named = pool->n_ever = 0;
    pool->populated_bytes = 0;
    return (uint8_t *)(pool->buckets + pool->n_buckets);
}

/* ---- names ---------------------------------------------------------------------------------- */

static uint32_t *bucket_of(const whit_kv_pool *pool, const uint8_t key[WHIT_HASH_BYTES])
{
    return &pool->buckets[whit_load_u32(key) & (pool->n_buckets - 1)];
}

void whit_kv_pool_forget(whit_kv_pool *pool, uint32_t block)
{
    whit_kv_name *name = &pool->names[block];
    if (!name->is_named) return;
    uint32_t *at = bucket_of(pool, name->key);
    if (pool->on_forget) pool->on_forget(pool->user, name);
    while (*at != block + 1) at = &pool->names[*at - 1].next;
    *at = name->next;
    name->is_named = false;
    pool->n_named--;
}

static void keep(whit_kv_pool *pool, uint32_t block)
{
    whit_kv_name *name = &pool->names[block];
    name->is_kept = true;
    name->older = pool->newest;
    name->newer = 0;
    if (pool->newest) pool->names[pool->newest - 1].newer = block + 1;
    pool->newest = block + 1;
    if (!pool->oldest) pool->oldest = block + 1;
}

static void keep_no_longer(whit_kv_pool *pool, uint32_t block)
{
    whit_kv_name *name = &pool->names[block];
    *(name->older ? &pool->names[name->older - 1].newer : &pool->oldest) = name->newer;
    *(name->newer ? &pool->names[name->newer - 1].older : &pool->newest) = name->older;
    name->is_kept = false;
}

bool whit_kv_pool_name(whit_kv_pool *pool, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                       const int32_t ids[WHIT_KV_BLOCK_TOKENS])
{
    whit_kv_name *name = &pool->names[block];
    uint32_t *bucket = bucket_of(pool, key);
    if (name->is_named || whit_kv_pool_find(pool, key, ids) != UINT32_MAX) return false;
    memcpy(name->key, key, sizeof name->key);
    memcpy(name->ids, ids, sizeof name->ids);
    name->next = *bucket;
    name->is_named = true;
    *bucket = block + 1;
    pool->n_named++;
    return true;
}

uint32_t whit_kv_pool_find(const whit_kv_pool *pool, const uint8_t key[WHIT_HASH_BYTES],
                           const int32_t ids[WHIT_KV_BLOCK_TOKENS])
{
    for (uint32_t at = *bucket_of(pool, key); at; at = pool->names[at - 1].next) {
        const whit_kv_name *name = &pool->names[at - 1];
        if (!memcmp(name->key, key, sizeof name->key) && !memcmp(name->ids, ids, sizeof name->ids)) return at - 1;
    }
    return UINT32_MAX;
}

bool whit_kv_pool_knows(const whit_kv_pool *pool, const uint8_t key[WHIT_HASH_BYTES])
{
    uint32_t at = *bucket_of(pool, key);
    while (at && memcmp(pool->names[at - 1].key, key, WHIT_HASH_BYTES)) at = pool->names[at - 1].next;
    return at != 0;
}

/* ---- blocks --------------------------------------------------------------------------------- */

uint32_t whit_kv_pool_take(whit_kv_pool *pool)
{
    uint32_t block;
    if (pool->n_free) {
        block = pool->free_blocks[--pool->n_free];
        if (block >= pool->n_ever) pool->n_ever = block + 1;
    } else {
        block = pool->oldest - 1;
        keep_no_longer(pool, block);
        whit_kv_pool_forget(pool, block);
    }
    pool->references[block] = 1;
    return block;
}

/* Returns the end of the groups that contain the first n_blocks blocks, in bytes from the beginning of `data`. */
static size_t end_of_groups(const whit_kv_pool *pool, uint64_t n_blocks)
{
    const uint64_t end = whit_round_up(n_blocks, WHIT_KV_GROUP_BLOCKS);
    return pool->block_bytes * (size_t)(end < pool->n_blocks ? end : pool->n_blocks);
}

void whit_kv_pool_populate(whit_kv_pool *pool, uint32_t n_ahead)
{
    const size_t used = end_of_groups(pool, pool->n_ever), end = end_of_groups(pool, (uint64_t)pool->n_ever + n_ahead);
    const size_t begin = pool->populated_bytes > used ? pool->populated_bytes : used;
    if (begin >= end) return;
    pool->populated_bytes = end - begin < WHIT_KV_POPULATE_BYTES ? end : begin + WHIT_KV_POPULATE_BYTES;
    whit_pages_populate(pool->data + begin, pool->populated_bytes - begin);
}

void whit_kv_pool_use(whit_kv_pool *pool, uint32_t block)
{
    if (pool->references[block]++ == 0) keep_no_longer(pool, block);
}

void whit_kv_pool_drop(whit_kv_pool *pool, uint32_t block)
{
    if (--pool->references[block]) return;
    if (pool->names[block].is_named)
        keep(pool, block);
    else
        pool->free_blocks[pool->n_free++] = block;
}

void whit_kv_pool_copy(whit_kv_pool *pool, uint32_t from, uint32_t to)
{
    for (uint32_t layer = 0; layer < pool->n_layers; layer++)
        for (uint32_t head = 0; head < pool->n_kv_heads; head++)
            memcpy(whit_kv_pool_piece(pool, layer, head, to), whit_kv_pool_piece(pool, layer, head, from),
                   pool->head_bytes);
}
