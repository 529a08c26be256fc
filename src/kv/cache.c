/* SPDX-License-Identifier: MIT */
#include "kv/cache.h"

#include "base/mem.h"

static bool sizes(const whit_kv_shape *shape, whit_kv *kv, uint64_t *bytes)
{
    *kv = (whit_kv){.shape = *shape};
    uint64_t per_sequence = ((uint64_t)shape->n_ctx_tokens + WHIT_KV_BLOCK_TOKENS - 1) / WHIT_KV_BLOCK_TOKENS;
    uint64_t n_blocks = per_sequence * shape->n_sequences;
    if (per_sequence > UINT32_MAX / 2 || n_blocks > UINT32_MAX / 2) return false;
    kv->blocks_per_sequence = (uint32_t)per_sequence;
    kv->n_blocks = (uint32_t)n_blocks;
    kv->head_bytes = whit_kv_block_bytes(shape->type, shape->head_dim);
    uint64_t chunks = (uint64_t)shape->n_layers * shape->n_kv_heads, block, data;
    if (__builtin_mul_overflow(chunks, (uint64_t)kv->head_bytes, &block) ||
        __builtin_mul_overflow(block, n_blocks, &data) || data > SIZE_MAX / 2)
        return false;
    kv->block_bytes = (size_t)block;
    kv->n_buckets = 16;
    while (kv->n_buckets < n_blocks) kv->n_buckets *= 2;
    *bytes =
        data + n_blocks * sizeof *kv->names + (3 * n_blocks + kv->n_buckets + shape->n_sequences) * sizeof(uint32_t);
    return true;
}

bool whit_kv_bytes(const whit_kv_shape *shape, uint64_t *bytes)
{
    whit_kv kv;
    return sizes(shape, &kv, bytes);
}

void whit_kv_init(whit_kv *kv, const whit_kv_shape *shape, void *memory)
{
    uint64_t bytes;
    (void)sizes(shape, kv, &bytes);
    kv->data = memory;
    kv->names = (whit_kv_name *)(void *)(kv->data + kv->block_bytes * kv->n_blocks);
    kv->table = (uint32_t *)(void *)(kv->names + kv->n_blocks);
    kv->references = kv->table + kv->n_blocks;
    kv->free_blocks = kv->references + kv->n_blocks;
    kv->n_tokens = kv->free_blocks + kv->n_blocks;
    kv->buckets = kv->n_tokens + shape->n_sequences;
    memset(kv->buckets, 0, kv->n_buckets * sizeof *kv->buckets);
    for (uint32_t i = 0; i < kv->n_blocks; i++) kv->names[i].is_named = kv->names[i].is_kept = false;
    memset(kv->references, 0, kv->n_blocks * sizeof *kv->references);
    memset(kv->n_tokens, 0, shape->n_sequences * sizeof *kv->n_tokens);
    /* Handed out from the end: block 0 first. */
    for (uint32_t i = 0; i < kv->n_blocks; i++) kv->free_blocks[i] = kv->n_blocks - 1 - i;
    kv->n_free = kv->n_blocks;
}

static uint32_t blocks_of(uint32_t n_tokens)
{
    return (n_tokens + WHIT_KV_BLOCK_TOKENS - 1) / WHIT_KV_BLOCK_TOKENS;
}

/* ---- names ---------------------------------------------------------------------------------- */

static uint32_t *bucket_of(const whit_kv *kv, const uint8_t key[WHIT_HASH_BYTES])
{
    return &kv->buckets[whit_load_u32(key) & (kv->n_buckets - 1)];
}

static void forget_name(whit_kv *kv, uint32_t block)
{
    whit_kv_name *name = &kv->names[block];
    if (!name->is_named) return;
    uint32_t *at = bucket_of(kv, name->key);
    while (*at != block + 1) at = &kv->names[*at - 1].next;
    *at = name->next;
    name->is_named = false;
}

static void keep(whit_kv *kv, uint32_t block)
{
    whit_kv_name *name = &kv->names[block];
    name->is_kept = true;
    name->older = kv->newest;
    name->newer = 0;
    if (kv->newest) kv->names[kv->newest - 1].newer = block + 1;
    kv->newest = block + 1;
    if (!kv->oldest) kv->oldest = block + 1;
}

static void keep_no_longer(whit_kv *kv, uint32_t block)
{
    whit_kv_name *name = &kv->names[block];
    *(name->older ? &kv->names[name->older - 1].newer : &kv->oldest) = name->newer;
    *(name->newer ? &kv->names[name->newer - 1].older : &kv->newest) = name->older;
    name->is_kept = false;
}

void whit_kv_name_block(whit_kv *kv, uint32_t sequence, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                        const int32_t ids[WHIT_KV_BLOCK_TOKENS])
{
    uint32_t number = kv->table[(size_t)sequence * kv->blocks_per_sequence + block], *bucket = bucket_of(kv, key);
    whit_kv_name *name = &kv->names[number];
    if (name->is_named || whit_kv_find(kv, key, ids) != UINT32_MAX) return;
    memcpy(name->key, key, sizeof name->key);
    memcpy(name->ids, ids, sizeof name->ids);
    name->next = *bucket;
    name->is_named = true;
    *bucket = number + 1;
}

const whit_kv_name *whit_kv_name_of(const whit_kv *kv, uint32_t sequence, uint32_t block)
{
    const whit_kv_name *name = &kv->names[kv->table[(size_t)sequence * kv->blocks_per_sequence + block]];
    return name->is_named ? name : NULL;
}

uint32_t whit_kv_find(const whit_kv *kv, const uint8_t key[WHIT_HASH_BYTES], const int32_t ids[WHIT_KV_BLOCK_TOKENS])
{
    for (uint32_t at = *bucket_of(kv, key); at; at = kv->names[at - 1].next) {
        const whit_kv_name *name = &kv->names[at - 1];
        if (!memcmp(name->key, key, sizeof name->key) && !memcmp(name->ids, ids, sizeof name->ids)) return at - 1;
    }
    return UINT32_MAX;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* A sequence never holds more blocks than its share of the pool, so one is always free or kept. */
static uint32_t take_block(whit_kv *kv)
{
    uint32_t block;
    if (kv->n_free) {
        block = kv->free_blocks[--kv->n_free];
    } else {
        block = kv->oldest - 1;
        keep_no_longer(kv, block);
        forget_name(kv, block);
    }
    kv->references[block] = 1;
    return block;
}

static void drop_block(whit_kv *kv, uint32_t block)
{
    if (--kv->references[block]) return;
    if (kv->names[block].is_named)
        keep(kv, block);
    else
        kv->free_blocks[kv->n_free++] = block;
}

void whit_kv_adopt(whit_kv *kv, uint32_t sequence, uint32_t number)
{
    uint32_t block = kv->n_tokens[sequence] / WHIT_KV_BLOCK_TOKENS;
    if (kv->references[number]++ == 0) keep_no_longer(kv, number);
    kv->table[(size_t)sequence * kv->blocks_per_sequence + block] = number;
    kv->n_tokens[sequence] += WHIT_KV_BLOCK_TOKENS;
}

static void copy_block(whit_kv *kv, uint32_t from, uint32_t to)
{
    for (uint32_t layer = 0; layer < kv->shape.n_layers; layer++)
        for (uint32_t head = 0; head < kv->shape.n_kv_heads; head++)
            memcpy(whit_kv_piece(kv, layer, head, to), whit_kv_piece(kv, layer, head, from), kv->head_bytes);
}

whit_status whit_kv_extend(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, whit_error *error)
{
    if (n_tokens > kv->shape.n_ctx_tokens)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the context of %u tokens is full: choose a larger one",
                         kv->shape.n_ctx_tokens);
    uint32_t *table = kv->table + (size_t)sequence * kv->blocks_per_sequence, had = kv->n_tokens[sequence];
    if (n_tokens <= had) return WHIT_OK;
    if (had % WHIT_KV_BLOCK_TOKENS) {
        uint32_t *last = &table[had / WHIT_KV_BLOCK_TOKENS], shared = *last;
        if (kv->references[shared] > 1) {
            *last = take_block(kv);
            copy_block(kv, shared, *last);
            drop_block(kv, shared);
        } else {
            forget_name(kv, shared); /* it is written over from here on */
        }
    }
    for (uint32_t b = blocks_of(had); b < blocks_of(n_tokens); b++) table[b] = take_block(kv);
    kv->n_tokens[sequence] = n_tokens;
    return WHIT_OK;
}

void whit_kv_truncate(whit_kv *kv, uint32_t sequence, uint32_t n_tokens)
{
    uint32_t *table = kv->table + (size_t)sequence * kv->blocks_per_sequence;
    if (n_tokens >= kv->n_tokens[sequence]) return;
    /* The last first: of what is kept, beginnings go last. */
    for (uint32_t b = blocks_of(kv->n_tokens[sequence]); b-- > blocks_of(n_tokens);) drop_block(kv, table[b]);
    kv->n_tokens[sequence] = n_tokens;
}

whit_status whit_kv_share(whit_kv *kv, uint32_t from, uint32_t to, uint32_t n_tokens, whit_error *error)
{
    if (n_tokens > kv->n_tokens[from])
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "sequence %u has %u tokens, not %u", from, kv->n_tokens[from],
                         n_tokens);
    whit_kv_truncate(kv, to, from == to ? n_tokens : 0);
    if (from == to) return WHIT_OK;
    const uint32_t *source = kv->table + (size_t)from * kv->blocks_per_sequence;
    uint32_t *target = kv->table + (size_t)to * kv->blocks_per_sequence;
    for (uint32_t b = 0; b < blocks_of(n_tokens); b++) {
        target[b] = source[b];
        kv->references[source[b]]++;
    }
    kv->n_tokens[to] = n_tokens;
    return WHIT_OK;
}
