/* SPDX-License-Identifier: MIT */
#include "base/bounds.h"
#include "kv/tail.h"

#include "base/mem.h"

enum { BLOCK = WHIT_KV_BLOCK_TOKENS };

static uint32_t blocks_of(uint32_t n_tokens)
{
    return n_tokens / BLOCK + (n_tokens % BLOCK != 0);
}

/* Returns the first block of a class of open blocks that the tail at n_tokens > 0 contains. */
static uint32_t first_of(const whit_kv_class *class, uint32_t n_tokens)
{
    return whit_kv_first_needed(class, n_tokens - 1);
}

/* Returns whether the tail contains the last block of this class: it does for a plain type in a model with recurrent
 * layers, if the block is partly filled. */
static bool has_last(const whit_kv *kv, const whit_kv_class *class, uint32_t n_tokens)
{
    return class->role == WHIT_KV_ROLE_LAYERS && kv->state.sequence_elems && !whit_kv_is_packed(kv->shape.type) &&
        n_tokens % BLOCK;
}

bool whit_kv_needs_tails(const whit_kv *kv)
{
    return whit_kv_is_packed(kv->shape.type) || kv->state.sequence_elems;
}

/* Sets [*begin, *end) to the blocks of a class that the tail at n_tokens > 0 contains. */
static void blocks_in_tail(const whit_kv *kv, const whit_kv_class *class, uint32_t n_tokens, uint32_t *begin,
                           uint32_t *end)
{
    *begin = *end = 0;
    if (class->role == WHIT_KV_ROLE_OPEN) {
        *begin = first_of(class, n_tokens);
        *end = blocks_of(n_tokens);
    } else if (class->role == WHIT_KV_ROLE_SINKS) {
        *end = n_tokens >= BLOCK;
    } else if (has_last(kv, class, n_tokens)) {
        *begin = n_tokens / BLOCK;
        *end = *begin + 1;
    }
}

uint64_t whit_kv_tail_bytes(const whit_kv *kv, uint32_t n_tokens)
{
    uint64_t bytes = whit_state_saved_bytes(&kv->state);
    if (!whit_kv_needs_tails(kv) || !n_tokens) return 0;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        uint32_t begin, end;
        blocks_in_tail(kv, &kv->classes[c], n_tokens, &begin, &end);
        bytes += (end - begin) * (uint64_t)kv->classes[c].pool.block_bytes;
    }
    return bytes;
}

uint64_t whit_kv_tail_bytes_max(const whit_kv *kv, uint32_t *n_tokens)
{
    const bool is_packed = whit_kv_is_packed(kv->shape.type);
    uint64_t bytes = whit_state_saved_bytes(&kv->state);
    *n_tokens = 0;
    if (!whit_kv_needs_tails(kv)) return 0;
    if (kv->state.sequence_elems) *n_tokens = BLOCK;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (is_packed && class->role == WHIT_KV_ROLE_LAYERS) continue;
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
    uint32_t first = n_tokens / BLOCK;
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
    return whit_state_reaches(&kv->state, sequence, n_tokens) && whit_state_is_even(&kv->state, sequence);
}

/* Returns the address of the recurrent state in a tail. */
static const uint8_t *state_in_tail(const whit_kv *kv, uint32_t n_tokens, const uint8_t *tail)
{
    return tail + whit_kv_tail_bytes(kv, n_tokens) - whit_state_saved_bytes(&kv->state);
}

bool whit_kv_tail_serves(const whit_kv *kv, uint32_t n_tokens, uint32_t position, const uint8_t *tail)
{
    /* whit_kv_tail_load restores one partly filled block of a class of full blocks, the last one */
    if (!position || position > n_tokens || position / BLOCK < whit_kv_tail_first(kv, n_tokens)) return false;
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (kv->classes[c].role == WHIT_KV_ROLE_OPEN &&
            whit_kv_first_needed(&kv->classes[c], position) < first_of(&kv->classes[c], n_tokens))
            return false;
    return !kv->state.sequence_elems || whit_state_serves(state_in_tail(kv, n_tokens, tail), position);
}

bool whit_kv_tail_fits(const whit_kv *kv, uint32_t n_tokens, const uint8_t *tail)
{
    return !kv->state.sequence_elems || whit_state_is_sound(&kv->state, n_tokens, state_in_tail(kv, n_tokens, tail));
}

uint32_t whit_kv_tail_commit(const whit_kv *kv, uint32_t n_tokens, const uint8_t *tail)
{
    return kv->state.sequence_elems ? whit_state_saved_commit(state_in_tail(kv, n_tokens, tail)) : 0;
}

/* Clears the keys, values and scales of one head's block at positions n and later. */
static void clear_after(whit_kv_type type, uint8_t *block, uint32_t head_dim, uint32_t n)
{
    const whit_kv_arrays at = whit_kv_block_arrays(type, head_dim, block);
    const size_t n_together = type == WHIT_KV_I8 ? 4 : 1, elem_bytes = whit_kv_elem_bytes(type) * n_together;
    uint8_t *keys = at.keys, *values = at.values;
    const size_t value_bytes = whit_kv_values_bytes(type, head_dim) / BLOCK;
    for (size_t row = 0; row < whit_kv_keys_bytes(type, head_dim); row += BLOCK * elem_bytes)
        memset(keys + row + n * elem_bytes, 0, (BLOCK - n) * elem_bytes);
    /* i8: values of 4 neighbouring positions share a word */
    const size_t n_whole = (n + n_together - 1) / n_together * n_together;
    for (size_t i = n; i < n_whole; i++)
        for (size_t d = 0; d < head_dim; d++) values[(i / n_together * head_dim + d) * n_together + i % n_together] = 0;
    memset(values + n_whole * value_bytes, 0, (BLOCK - n_whole) * value_bytes);
    if (!at.key_scales) return;
    memset(at.key_scales + n, 0, (BLOCK - n) * sizeof(float));
    memset(at.value_scales + n, 0, (BLOCK - n) * sizeof(float));
}

/* Clears the padding that follows the sinks. */
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
        uint32_t begin, end;
        blocks_in_tail(kv, class, n_tokens, &begin, &end);
        for (uint32_t b = begin; b < end; b++)
            for (uint32_t layer = 0; layer < pool->n_layers; layer++)
                for (uint32_t head = 0; head < pool->n_kv_heads; head++, tail += pool->head_bytes) {
                    memcpy(tail, whit_kv_class_block(class, layer, head, sequence, b), pool->head_bytes);
                    if (class->role == WHIT_KV_ROLE_SINKS)
                        clear_sinks(tail, class->head_dim, pool->head_bytes);
                    else if (n_tokens - b * BLOCK < BLOCK)
                        clear_after(class->type, tail, class->head_dim, n_tokens - b * BLOCK);
                }
    }
    whit_state_save(&kv->state, sequence, n_tokens, tail);
}

/* Copies a saved block of all layers and heads into a new block of the sequence; returns the end of the saved block. */
static const uint8_t *load_block(whit_kv_class *class, uint32_t sequence, uint32_t block, const uint8_t *from)
{
    const whit_kv_pool *pool = &class->pool;
    *whit_kv_entry(class, sequence, block) = whit_kv_pool_take(&class->pool);
    for (uint32_t layer = 0; layer < pool->n_layers; layer++)
        for (uint32_t head = 0; head < pool->n_kv_heads; head++, from += pool->head_bytes)
            memcpy(whit_kv_class_block(class, layer, head, sequence, block), from, pool->head_bytes);
    return from;
}

/* Clamps the words of sinks to the range of codes that f16 keys can have: a file may contain any words, but attention
 * relies on this range. */
static void bound_sinks(const whit_kv_class *class, uint32_t sequence)
{
    for (uint32_t layer = 0; layer < class->pool.n_layers; layer++)
        for (uint32_t head = 0; head < class->pool.n_kv_heads; head++) {
            whit_kv_sinks at =
                whit_kv_sinks_arrays(class->head_dim, whit_kv_class_block(class, layer, head, sequence, 0));
            const int16_t most = (int16_t)WHIT_KV_QUERY_MAX;
            for (uint32_t i = 0; i < 2 * WHIT_KV_SINKS * class->head_dim; i++)
                at.keys[i] = (int16_t)whit_within(at.keys[i], -most, most);
        }
}

/* Allocates the block of `position` of a class of role LAYERS if it is partly filled. Loads it from the tail if the
 * tail contains it (has_last); for a packed type, the open block is packed into it when it is full. Returns the end of
 * the class's part of the tail. */
static const uint8_t *load_last(const whit_kv *kv, whit_kv_class *class, uint32_t sequence, uint32_t n_tokens,
                                uint32_t position, const uint8_t *tail)
{
    const bool is_there = has_last(kv, class, n_tokens);
    const uint8_t *end = tail + (is_there ? class->pool.block_bytes : 0);
    if (position % BLOCK && is_there)
        (void)load_block(class, sequence, position / BLOCK, tail);
    else if (position % BLOCK)
        *whit_kv_entry(class, sequence, position / BLOCK) = whit_kv_pool_take(&class->pool);
    return end;
}

void whit_kv_tail_load(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t position, const uint8_t *tail)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (class->role == WHIT_KV_ROLE_LAYERS) {
            tail = load_last(kv, class, sequence, n_tokens, position, tail);
        } else if (class->role == WHIT_KV_ROLE_OPEN) {
            const uint32_t end = blocks_of(n_tokens);
            uint32_t b = class->first[sequence] = first_of(class, n_tokens);
            for (; b < blocks_of(position); b++) tail = load_block(class, sequence, b, tail);
            tail += (end - b) * class->pool.block_bytes;
        } else if (n_tokens < BLOCK) { /* the first block is not full, so its sinks are not stored yet */
            *whit_kv_entry(class, sequence, 0) = whit_kv_pool_take(&class->pool);
        } else {
            tail = load_block(class, sequence, 0, tail);
            bound_sinks(class, sequence);
        }
    }
    whit_state_load(&kv->state, sequence, tail);
    kv->n_tokens[sequence] = position;
}
