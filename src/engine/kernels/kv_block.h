/* SPDX-License-Identifier: MIT
 * Defines one block of a KV cache: keys and values of one KV head at 64 positions, by absolute index.
 *
 *   f32, f16   keys (head_dim, 64), transposed, so that lanes are positions; values (64, head_dim)
 *   i8         keys u8 = code + 128 as (ceil(head_dim / 4), 64, 4): four dimensions of a position
 *              are adjacent, as VPDPBUSD requires; values u8 = code + 128 as (16, head_dim, 4):
 *              four positions of a dimension are adjacent
 *   f16, i8    also f32 scales of the keys (64) and of the values (64), one per position. An f16 is
 *              read as an integer of magnitude up to 2047: it is divided by the scale, the power of
 *              two with which the largest element of the head fits, and rounded.
 *
 * Each of these arrays starts on a cache line. Kernels reach blocks only through pointers, so blocks may
 * be shared by sequences and reused in a ring buffer; kernels do not know the cache that owns them. */
#ifndef WHIT_KERNELS_KV_BLOCK_H
#define WHIT_KERNELS_KV_BLOCK_H

#include "base/half.h"
#include "base/mem.h"
#include "kernels/kv_bitmap.h"
#include "kernels/kv_packed.h"
#include "whit.h"

#include <math.h>

#define WHIT_KV_BLOCK_TOKENS 64
#define WHIT_KV_MAX_HEAD_DIM 1024

/* f16: largest integer of a quantised query with up to 512 dimensions (whit_kv_query_max), so that sums of 512 products
 * with keys (up to 2047) fit int32. */
#define WHIT_KV_QUERY_MAX 2047.0f
/* f16, i8: largest integer of a quantised probability. For f16 the sum of these integers is at most about 64 times this
 * bound (WHIT_KV_PROB_FRACTION), so that sums of products with values of up to 2047 fit int32. */
#define WHIT_KV_PROB_MAX 16383.0f
/* f16: the integer WHIT_KV_PROB_MAX represents the larger of a group's largest probability and this fraction of the
 * group's sum of probabilities. */
#define WHIT_KV_PROB_FRACTION (1 / 64.0f)

static inline size_t whit_kv_elem_bytes(whit_kv_type kv)
{
    if (kv == WHIT_KV_F32) return 4;
    if (kv == WHIT_KV_F16) return 2;
    return 1;
}
static inline size_t whit_kv_keys_bytes(whit_kv_type kv, uint32_t head_dim)
{
    size_t n_dims = kv == WHIT_KV_I8 ? whit_round_up(head_dim, 4) : head_dim;
    return n_dims * WHIT_KV_BLOCK_TOKENS * whit_kv_elem_bytes(kv);
}
static inline size_t whit_kv_values_bytes(whit_kv_type kv, uint32_t head_dim)
{
    return (size_t)head_dim * WHIT_KV_BLOCK_TOKENS * whit_kv_elem_bytes(kv);
}
/* Returns the number of bytes of a block (for packed types, of a closed block), a multiple of 64. */
static inline size_t whit_kv_block_bytes(whit_kv_type kv, uint32_t head_dim)
{
    if (kv == WHIT_KV_BITMAP) return whit_kv_bitmap_arrays(head_dim, NULL).bytes;
    if (whit_kv_is_packed(kv)) return whit_kv_packed_arrays(kv, head_dim, NULL).bytes;
    size_t scale_bytes = kv != WHIT_KV_F32 ? 2 * WHIT_KV_BLOCK_TOKENS * sizeof(float) : 0;
    return whit_kv_keys_bytes(kv, head_dim) + whit_kv_values_bytes(kv, head_dim) + scale_bytes;
}

/* Pointers to the arrays of a block; f32 has no scales (NULL). */
typedef struct whit_kv_arrays {
    void *keys, *values;
    float *key_scales, *value_scales;
} whit_kv_arrays;

static inline whit_kv_arrays whit_kv_block_arrays(whit_kv_type kv, uint32_t head_dim, const void *block)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)block;
    whit_kv_arrays arrays = {.keys = bytes, .values = bytes + whit_kv_keys_bytes(kv, head_dim)};
    if (kv != WHIT_KV_F32) {
        uint8_t *scales = (uint8_t *)arrays.values + whit_kv_values_bytes(kv, head_dim);
        arrays.key_scales = (float *)(void *)scales;
        arrays.value_scales = arrays.key_scales + WHIT_KV_BLOCK_TOKENS;
    }
    return arrays;
}

/* Return the offset of the scale in a converted query, and the size of the query. A query's form depends on the type of
 * cache; R is head_dim rounded up to 64:
 *
 *   f32   as it is
 *   i8    codes s8 (R), scale f32, sum of the codes i32
 *   f16   codes s16 (R), their high digits s8 (R), low digits s8 (R): code = 128 high + low, low in
 *         0..127; scale f32
 *
 * The entries after the last dimension are zero. */
static inline size_t whit_kv_query_scale_offset(whit_kv_type kv, uint32_t head_dim)
{
    size_t elems = whit_round_up(head_dim, 64);
    return kv == WHIT_KV_I8 ? elems : 4 * elems; /* queries for packed types have the same form as for f16 */
}
static inline size_t whit_kv_query_bytes(whit_kv_type kv, uint32_t head_dim)
{
    return whit_kv_query_scale_offset(kv, head_dim) + (kv == WHIT_KV_F32 ? 0 : 64);
}

/* Returns the largest code of an f16 query, so that sums of head_dim products with keys fit int32. */
static inline float whit_kv_query_max(uint32_t head_dim)
{
    return head_dim <= 512 ? WHIT_KV_QUERY_MAX : 1023.0f;
}

/* Returns the scale of numbers that are quantised to integers of magnitude up to `max`; `largest` is the bits of their
 * largest magnitude. A number times *factor, rounded, is its integer. If the largest magnitude is below 2^-100, scale
 * and factor are 0; if a number is not finite, the scale is NaN. */
static inline float whit_kv_code_scale(uint32_t largest, float max, float *factor)
{
    float amax = whit_f32_from_bits(largest);
    bool is_zero = amax < 0x1p-100f;
    *factor = is_zero ? 0 : max / amax;
    if (is_zero) return 0;
    if (largest >= 0x7F800000) return NAN;
    return amax / max;
}

/* Returns the scale (as f32 bits) of f16 numbers whose largest magnitude has the f32 bits `largest`: 0 for 0, NaN if it
 * is not finite, else a power of two whose inverse (whit_kv_f16_factor_bits) converts the numbers to integers of up to
 * 2047. */
static inline uint32_t whit_kv_f16_scale_bits(uint32_t largest)
{
    if (largest == 0) return 0;
    if (largest >= 0x7F800000) return 0x7FC00000;
    return (largest & 0x7F800000) - (10u << 23);
}
static inline uint32_t whit_kv_f16_factor_bits(uint32_t scale)
{
    return 0x7F000000 - scale;
}

/* Group of blocks of one KV head over which a partial softmax is computed: 256 consecutive positions. A block that no
 * query attends to may be NULL. */
#define WHIT_KV_GROUP_BLOCKS 4
#define WHIT_KV_GROUP_TOKENS (WHIT_KV_GROUP_BLOCKS * WHIT_KV_BLOCK_TOKENS)
typedef struct whit_kv_group {
    const void *blocks[WHIT_KV_GROUP_BLOCKS];
    /* Packed types use the next four members. */
    uint32_t closed; /* bit b is 1 if blocks[b] is closed; a group's closed blocks precede its open ones */
    /* If the sequence's block 0 is in the group and closed: its sinks (whit_kv_sinks), which are read instead of the
     * block's first positions; else NULL. */
    const void *sinks;
    const float *rope;   /* (2 * rope_pairs, 64): table of whit_kv_packing */
    uint32_t rope_pairs; /* number of channel pairs of closed keys that are rotated on reading, from the block's first
                          * position to the key's own; 0: keys are read as they were packed */
    void *converted;     /* f16: memory for blocks converted to integers (whit_kv_converted_bytes, 64-byte aligned),
                          * or NULL */
    uint32_t valid;      /* bit b is 1 if `converted` contains block b; kernels set it, and the caller clears it when
                          * `converted` is used for another group or the block may have changed */
} whit_kv_group;

/* Returns the size of whit_kv_group.converted: a group's keys and values as integers of two bytes each. */
static inline size_t whit_kv_converted_bytes(uint32_t head_dim)
{
    return (size_t)4 * WHIT_KV_GROUP_TOKENS * head_dim;
}

/* Rotation of a packed type's keys by RoPE within a block. For each pair of a head, `rope` has a row with the cosines
 * of the angles from the block's first position to its 64 positions; the rows of sines follow
 * (whit_kv_offset_table). */
typedef struct whit_kv_packing {
    const float *rope;   /* (2 * rope_pairs, 64): cosines, then sines */
    uint32_t rope_pairs; /* pair i is channels i and i + rope_pairs; 0: keys are read as they were packed, and rope
                          * may be NULL */
} whit_kv_packing;

/* Positions [begin, end) of a group that a query attends to, counted from the group's first position; empty if begin >=
 * end. */
typedef struct whit_kv_span {
    uint16_t begin, end;
} whit_kv_span;

/* Returns the number of floats of a partial, which is attention over part of the positions before the division by the
 * softmax's sum: out (head_dim), then maximum of the scores and sum, padded to a multiple of 16. A sum of 0 means that
 * it covers no position and `out` is undefined. */
static inline size_t whit_kv_partial_elems(uint32_t head_dim)
{
    return whit_round_up((size_t)head_dim + 2, 16);
}

#endif
