/* SPDX-License-Identifier: MIT
 * Defines the closed form of a block of the `bitmap` cache: ternary keys and values (trits), each as two bitmaps,
 * active and positive (a trit is 0 where active is 0, else 1 where positive is 1, else -1). Sums of codes u times trits
 * t are computed by counting bits, where bit i of all codes (WHIT_KV_BITMAP_PLANES bits each) forms the plane b_i:
 *
 *   sum u t = 255 popcount(positive) - sum over i of 2^i popcount(active & (b_i ^ positive))
 *
 *   keys         u32 (ceil(head_dim / 32), 2, 64): [w][0] active and [w][1] positive bits of each position; bit b
 *                of word w is dimension 32 w + b
 *   values       u32 (ceil(head_dim / 16), 2, 2, 16): [v][h][0] active and [v][h][1] positive bits; lane r is
 *                dimension 16 v + r, bit b is position 32 h + b
 *   units        f32 (4): unit of [0] key steps; [1] middles, a power of two; [2] value steps
 *   middles      s16 (head_dim): middle between the least and the largest key of each channel, in units[1], of
 *                magnitude up to 2,047
 *   key_steps    u8 (head_dim): step of each channel, in units[0]
 *   value_steps  u8 (groups of 64 dimensions, 64 positions): step of each group and position, in units[2]
 *
 *   key          middle + trit * step; keys are stored after RoPE
 *   value        trit * step
 *
 * The entries after the last channel and dimension are zero. */
#ifndef WHIT_KERNELS_KV_BITMAP_H
#define WHIT_KERNELS_KV_BITMAP_H

#include "kernels/kv_packed.h"

enum { WHIT_KV_BITMAP_KEY_STEP, WHIT_KV_BITMAP_MIDDLE, WHIT_KV_BITMAP_VALUE_STEP, WHIT_KV_BITMAP_UNITS = 4 };
enum { WHIT_KV_BITMAP_PLANES = 8, WHIT_KV_BITMAP_WORD = 32, WHIT_KV_BITMAP_LANES = 16 };

typedef struct whit_kv_bitmap {
    uint32_t *keys, *values;
    float *units;
    int16_t *middles;
    uint8_t *key_steps, *value_steps;
    size_t bytes; /* size of the block, a multiple of 64 */
} whit_kv_bitmap;

static inline uint32_t whit_kv_bitmap_words(uint32_t head_dim)
{
    return (head_dim + WHIT_KV_BITMAP_WORD - 1) / WHIT_KV_BITMAP_WORD;
}
static inline uint32_t whit_kv_bitmap_vectors(uint32_t head_dim)
{
    return (head_dim + WHIT_KV_BITMAP_LANES - 1) / WHIT_KV_BITMAP_LANES;
}

/* Returns pointers to the arrays of a block; block may be NULL if only `bytes` is needed. */
static inline whit_kv_bitmap whit_kv_bitmap_arrays(uint32_t head_dim, const void *block)
{
    const uintptr_t keys = (uintptr_t)block,
                    values = keys + (uintptr_t)whit_kv_bitmap_words(head_dim) * 2 * WHIT_KV_PACKED_TOKENS * 4,
                    units = values + (uintptr_t)whit_kv_bitmap_vectors(head_dim) * 4 * WHIT_KV_BITMAP_LANES * 4,
                    middles = units + WHIT_KV_BITMAP_UNITS * 4, value_steps = middles + (uintptr_t)2 * head_dim,
                    key_steps = value_steps + (uintptr_t)whit_kv_value_groups(head_dim) * WHIT_KV_PACKED_TOKENS;
    return (whit_kv_bitmap){.keys = (uint32_t *)keys,
                            .values = (uint32_t *)values,
                            .units = (float *)units,
                            .middles = (int16_t *)middles,
                            .key_steps = (uint8_t *)key_steps,
                            .value_steps = (uint8_t *)value_steps,
                            .bytes = whit_round_up(key_steps + head_dim - keys, 64)};
}

/* Distance in words from a word of active bits to its word of positive bits, for keys and for values. */
enum { WHIT_KV_BITMAP_KEY_STRIDE = WHIT_KV_PACKED_TOKENS, WHIT_KV_BITMAP_VALUE_STRIDE = WHIT_KV_BITMAP_LANES };
static inline size_t whit_kv_bitmap_key_word(uint32_t j, uint32_t d)
{
    return (size_t)d / WHIT_KV_BITMAP_WORD * 2 * WHIT_KV_PACKED_TOKENS + j;
}
static inline size_t whit_kv_bitmap_value_word(uint32_t j, uint32_t d)
{
    return ((size_t)d / WHIT_KV_BITMAP_LANES * 2 + j / WHIT_KV_BITMAP_WORD) * 2 * WHIT_KV_BITMAP_LANES +
        d % WHIT_KV_BITMAP_LANES;
}

#endif
