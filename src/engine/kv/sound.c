/* SPDX-License-Identifier: MIT */
#include "kv/sound.h"

enum { BLOCK = WHIT_KV_BLOCK_TOKENS };

/* Returns whether x can be a scale or a step: finite and not negative, or NaN, which packing writes for blocks with a
 * number that is not finite. */
static bool is_scale(float x)
{
    return (x >= 0 && x < INFINITY) || x != x;
}

static bool is_scales(const float *x, uint32_t n)
{
    bool all = true;
    for (uint32_t i = 0; i < n; i++) all &= is_scale(x[i]);
    return all;
}

/* Returns whether `scale` is the scale that belongs to f16 numbers whose largest magnitude has the bits `most`; NaN is
 * valid, too, if that magnitude is infinite or NaN. */
static bool is_f16_scale(float scale, int16_t most)
{
    const float largest = whit_f32_from_f16((uint16_t)most);
    const uint32_t bits = whit_kv_f16_scale_bits(whit_f32_bits(largest) & 0x7FFFFFFF);
    return whit_f32_bits(scale) == bits || (scale != scale && bits >= 0x7F800000);
}

/* Checks a block of type f16. The loops must be vectorisable: a file of saved prefixes has a hundred million of these
 * numbers. */
static bool is_sound_f16(uint32_t head_dim, const void *block)
{
    const whit_kv_arrays at = whit_kv_block_arrays(WHIT_KV_F16, head_dim, block);
    const uint16_t *keys = at.keys, *values = at.values;
    int16_t most[BLOCK] = {0};
    for (uint32_t d = 0; d < head_dim; d++)
        for (uint32_t j = 0; j < BLOCK; j++) {
            const int16_t size = (int16_t)(keys[(size_t)d * BLOCK + j] & 0x7FFF);
            most[j] = size > most[j] ? size : most[j];
        }
    bool is_sound = true;
    for (uint32_t j = 0; j < BLOCK; j++) is_sound &= is_f16_scale(at.key_scales[j], most[j]);
    for (uint32_t j = 0; j < BLOCK && is_sound; j++) {
        int16_t largest = 0;
        for (uint32_t d = 0; d < head_dim; d++) {
            const int16_t size = (int16_t)(values[(size_t)j * head_dim + d] & 0x7FFF);
            largest = size > largest ? size : largest;
        }
        is_sound = is_f16_scale(at.value_scales[j], largest);
    }
    return is_sound;
}

/* Checks a closed block of a packed type. Key words may be at most 2,047 plus rounding, and TO_WORD must be the factor
 * that belongs to WORD. */
static bool is_sound_packed(whit_kv_type type, uint32_t head_dim, uint32_t rope_pairs, const void *block)
{
    const whit_kv_packed at = whit_kv_packed_arrays(type, head_dim, block);
    const float unit = at.units[WHIT_KV_UNIT_KEY_STEP], word = at.units[WHIT_KV_UNIT_WORD],
                to_word = at.units[WHIT_KV_UNIT_TO_WORD];
    const float n_levels = (float)((1u << whit_kv_key_bits(type)) - 1);
    if (!(unit >= 0 && unit < INFINITY) || !is_scale(word) || !is_scale(at.units[WHIT_KV_UNIT_VALUE_STEP]))
        return false;
    const float expected = word > 0 ? whit_f32_from_bits(whit_kv_f16_factor_bits(whit_f32_bits(word))) : 0;
    if (whit_f32_bits(to_word) != whit_f32_bits(expected) || !(to_word < INFINITY)) return false;
    float reach[WHIT_KV_MAX_HEAD_DIM], largest = 0;
    for (uint32_t d = 0; d < head_dim; d++) {
        const float least = whit_f32_from_f16(at.key_least[d]);
        const float most = fabsf(least + n_levels * ((float)at.key_steps[d] * unit));
        reach[d] = most > fabsf(least) ? most : fabsf(least);
        if (!(reach[d] < INFINITY)) return false;
    }
    for (uint32_t d = 0; d < head_dim; d++) {
        const float sum = d < rope_pairs ? reach[d] + reach[d + rope_pairs] : reach[d];
        largest = sum > largest ? sum : largest;
    }
    return largest * to_word <= WHIT_KV_QUERY_MAX + 1;
}

static bool is_sound_bitmap(uint32_t head_dim, const void *block)
{
    const whit_kv_bitmap at = whit_kv_bitmap_arrays(head_dim, block);
    bool is_sound = at.units[WHIT_KV_BITMAP_KEY_STEP] >= 0 && at.units[WHIT_KV_BITMAP_KEY_STEP] < INFINITY &&
        is_scale(at.units[WHIT_KV_BITMAP_MIDDLE]) && is_scale(at.units[WHIT_KV_BITMAP_VALUE_STEP]);
    const int16_t most = (int16_t)WHIT_KV_QUERY_MAX + 1;
    for (uint32_t d = 0; d < head_dim; d++) is_sound &= at.middles[d] >= -most && at.middles[d] <= most;
    return is_sound;
}

bool whit_kv_block_is_sound(whit_kv_type type, uint32_t head_dim, uint32_t rope_pairs, const void *block)
{
    if (type == WHIT_KV_F32) return true;
    if (type == WHIT_KV_F16) return is_sound_f16(head_dim, block);
    if (type == WHIT_KV_BITMAP) return is_sound_bitmap(head_dim, block);
    if (whit_kv_is_packed(type)) return is_sound_packed(type, head_dim, rope_pairs, block);
    return is_scales(whit_kv_block_arrays(type, head_dim, block).key_scales, 2 * BLOCK);
}

/* Returns whether the blocks that a tail restored in a class of open blocks, or in a class of sinks, are valid. */
static bool is_sound_class(const whit_kv_class *class, uint32_t sequence, uint32_t n_tokens)
{
    const bool is_open = class->role == WHIT_KV_ROLE_OPEN;
    const uint32_t begin = is_open ? class->first[sequence] : 0;
    const uint32_t end = is_open ? (n_tokens + BLOCK - 1) / BLOCK : n_tokens >= BLOCK;
    for (uint32_t b = begin; b < end; b++)
        for (uint32_t layer = 0; layer < class->pool.n_layers; layer++)
            for (uint32_t head = 0; head < class->pool.n_kv_heads; head++) {
                const void *block = whit_kv_class_block(class, layer, head, sequence, b);
                if (is_open ? !is_sound_f16(class->head_dim, block)
                            : !is_scales(whit_kv_sinks_arrays(class->head_dim, block).key_scales, 2 * WHIT_KV_SINKS))
                    return false;
            }
    return true;
}

bool whit_kv_tail_is_sound(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (class->role != WHIT_KV_ROLE_LAYERS && !is_sound_class(class, sequence, n_tokens)) return false;
        if (class->role != WHIT_KV_ROLE_LAYERS || whit_kv_is_packed(class->type) || n_tokens % BLOCK == 0) continue;
        /* Check the last block of a plain type, which is not full. */
        for (uint32_t layer = 0; layer < class->pool.n_layers; layer++)
            for (uint32_t head = 0; head < class->pool.n_kv_heads; head++)
                if (!whit_kv_block_is_sound(class->type, class->head_dim, class->rope_pairs,
                                            whit_kv_class_block(class, layer, head, sequence, n_tokens / BLOCK)))
                    return false;
    }
    return true;
}
