/* SPDX-License-Identifier: MIT */
#include "kv/tail.h"

#include "base/mem.h"

enum { BLOCK = WHIT_KV_BLOCK_TOKENS };

static uint32_t blocks_of(uint32_t n_tokens)
{
    return n_tokens / BLOCK + (n_tokens % BLOCK != 0);
}

/* The first block that a class of open blocks has in the tail at n_tokens, which is not 0. */
static uint32_t first_of(const whit_kv_class *class, uint32_t n_tokens)
{
    return whit_kv_first_needed(class, n_tokens - 1);
}

uint64_t whit_kv_tail_bytes(const whit_kv *kv, uint32_t n_tokens)
{
    uint64_t bytes = 0;
    if (!whit_kv_is_packed(kv->shape.type) || !n_tokens) return 0;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (class->role == WHIT_KV_ROLE_OPEN)
            bytes += (blocks_of(n_tokens) - first_of(class, n_tokens)) * (uint64_t) class->pool.block_bytes;
        if (class->role == WHIT_KV_ROLE_SINKS && n_tokens >= BLOCK) bytes += class->pool.block_bytes;
    }
    return bytes;
}

uint64_t whit_kv_tail_bytes_max(const whit_kv *kv, uint32_t *n_tokens)
{
    uint64_t bytes = 0;
    *n_tokens = 0;
    if (!whit_kv_is_packed(kv->shape.type)) return 0;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (class->role == WHIT_KV_ROLE_LAYERS) continue;
        uint64_t n_blocks = 1;
        if (class->role == WHIT_KV_ROLE_OPEN) {
            const uint64_t whole = blocks_of(kv->shape.n_ctx_tokens),
                           most = ((uint64_t) class->window + 2 * BLOCK - 2) / BLOCK;
            n_blocks = most < whole ? most : whole;
            if (*n_tokens < n_blocks * BLOCK) *n_tokens = (uint32_t)n_blocks * BLOCK;
        }
        bytes += n_blocks * class->pool.block_bytes;
    }
    return bytes;
}

uint32_t whit_kv_tail_first(const whit_kv *kv, uint32_t n_tokens)
{
    uint32_t first = blocks_of(n_tokens);
    for (uint32_t c = 0; c < kv->n_classes && n_tokens; c++)
        if (kv->classes[c].role == WHIT_KV_ROLE_OPEN && first_of(&kv->classes[c], n_tokens) < first)
            first = first_of(&kv->classes[c], n_tokens);
    return first;
}

bool whit_kv_has_tail(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens)
{
    if (!whit_kv_tail_bytes(kv, n_tokens) || n_tokens > kv->n_tokens[sequence]) return false;
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (kv->classes[c].role == WHIT_KV_ROLE_OPEN &&
            first_of(&kv->classes[c], n_tokens) < kv->classes[c].first[sequence])
            return false;
    return true;
}

bool whit_kv_tail_serves(const whit_kv *kv, uint32_t n_tokens, uint32_t position)
{
    if (!position || position > n_tokens) return false;
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (kv->classes[c].role == WHIT_KV_ROLE_OPEN &&
            whit_kv_first_needed(&kv->classes[c], position) < first_of(&kv->classes[c], n_tokens))
            return false;
    return true;
}

/* Clears what an f16 block of a head has at positions from n on. */
static void clear_behind(uint8_t *block, uint32_t head_dim, uint32_t n)
{
    whit_kv_arrays at = whit_kv_block_arrays(WHIT_KV_F16, head_dim, block);
    uint16_t *keys = at.keys, *values = at.values;
    for (uint32_t d = 0; d < head_dim; d++) memset(keys + d * BLOCK + n, 0, (BLOCK - n) * sizeof *keys);
    memset(values + (size_t)n * head_dim, 0, (size_t)(BLOCK - n) * head_dim * sizeof *values);
    memset(at.key_scales + n, 0, (BLOCK - n) * sizeof(float));
    memset(at.value_scales + n, 0, (BLOCK - n) * sizeof(float));
}

/* What lies behind the sinks, up to a whole line. */
static void clear_sinks(uint8_t *sinks, uint32_t head_dim, size_t n_bytes)
{
    const size_t used = 2 * WHIT_KV_SINKS * (sizeof(float) + (size_t)head_dim * sizeof(int16_t));
    memset(sinks + used, 0, n_bytes - used);
}

void whit_kv_tail_save(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint8_t *tail)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        const whit_kv_pool *pool = &class->pool;
        if (class->role == WHIT_KV_ROLE_LAYERS || (class->role == WHIT_KV_ROLE_SINKS && n_tokens < BLOCK)) continue;
        const bool is_open = class->role == WHIT_KV_ROLE_OPEN;
        const uint32_t begin = is_open ? first_of(class, n_tokens) : 0, end = is_open ? blocks_of(n_tokens) : 1;
        for (uint32_t b = begin; b < end; b++)
            for (uint32_t layer = 0; layer < pool->n_layers; layer++)
                for (uint32_t head = 0; head < pool->n_kv_heads; head++, tail += pool->head_bytes) {
                    memcpy(tail, whit_kv_class_block(class, layer, head, sequence, b), pool->head_bytes);
                    if (!is_open)
                        clear_sinks(tail, class->head_dim, pool->head_bytes);
                    else if (n_tokens - b * BLOCK < BLOCK)
                        clear_behind(tail, class->head_dim, n_tokens - b * BLOCK);
                }
    }
}

/* Copies a block of all layers and heads into one that the sequence takes; gives its end. */
static const uint8_t *load_block(whit_kv_class *class, uint32_t sequence, uint32_t block, const uint8_t *from)
{
    const whit_kv_pool *pool = &class->pool;
    *whit_kv_entry(class, sequence, block) = whit_kv_pool_take(&class->pool);
    for (uint32_t layer = 0; layer < pool->n_layers; layer++)
        for (uint32_t head = 0; head < pool->n_kv_heads; head++, from += pool->head_bytes)
            memcpy(whit_kv_class_block(class, layer, head, sequence, block), from, pool->head_bytes);
    return from;
}

/* A file may hold any words: attention takes those of f16's codes. */
static void bound_sinks(const whit_kv_class *class, uint32_t sequence)
{
    for (uint32_t layer = 0; layer < class->pool.n_layers; layer++)
        for (uint32_t head = 0; head < class->pool.n_kv_heads; head++) {
            whit_kv_sinks at =
                whit_kv_sinks_arrays(class->head_dim, whit_kv_class_block(class, layer, head, sequence, 0));
            const int16_t most = (int16_t)WHIT_KV_QUERY_MAX;
            for (uint32_t i = 0; i < 2 * WHIT_KV_SINKS * class->head_dim; i++)
                at.keys[i] = at.keys[i] > most ? most : at.keys[i] < -most ? (int16_t)-most : at.keys[i];
        }
}

void whit_kv_tail_load(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t position, const uint8_t *tail)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (class->role == WHIT_KV_ROLE_LAYERS) { /* the block that is being filled is closed later */
            if (position % BLOCK) *whit_kv_entry(class, sequence, position / BLOCK) = whit_kv_pool_take(&class->pool);
        } else if (class->role == WHIT_KV_ROLE_OPEN) {
            const uint32_t end = blocks_of(n_tokens);
            uint32_t b = class->first[sequence] = first_of(class, n_tokens);
            for (; b < blocks_of(position); b++) tail = load_block(class, sequence, b, tail);
            tail += (end - b) * class->pool.block_bytes;
        } else if (n_tokens < BLOCK) { /* no sinks yet */
            *whit_kv_entry(class, sequence, 0) = whit_kv_pool_take(&class->pool);
        } else {
            tail = load_block(class, sequence, 0, tail);
            bound_sinks(class, sequence);
        }
    }
    kv->n_tokens[sequence] = position;
}
