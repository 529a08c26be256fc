/* SPDX-License-Identifier: MIT
 * One block of a KV cache: keys and values of one KV head at 64 positions, by absolute index.
 *
 *   f32, f16   keys (head_dim, 64), transposed, so that lanes are positions; values (64, head_dim)
 *   i8         keys u8 = code + 128 as (ceil(head_dim / 4), 64, 4), four dimensions of a position
 *              side by side as VPDPBUSD wants them; values u8 = code + 128 as (16, head_dim, 4),
 *              four positions of a dimension side by side; f32 scales of the keys (64), of the
 *              values (64): one per position and head
 *
 * Each of these arrays starts on a cache line. A block is reached by pointer alone, so blocks may
 * be shared by sequences and reused in a ring; the cache that owns them is not known here. */
#ifndef WHIT_KERNELS_KV_BLOCK_H
#define WHIT_KERNELS_KV_BLOCK_H

#include "base/mem.h"
#include "whit.h"

#define WHIT_KV_BLOCK_TOKENS 64
#define WHIT_KV_MAX_HEAD_DIM 1024

/* i8: weights of values become integers up to the one, 0 where their largest is below the other. */
#define WHIT_KV_WEIGHT_MAX 16383.0f
#define WHIT_KV_WEIGHT_MIN 0x1p-100f

static inline size_t whit_kv_elem_bytes(whit_kv_type kv)
{
    return kv == WHIT_KV_F32 ? 4 : kv == WHIT_KV_F16 ? 2 : 1;
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
/* A multiple of 64. */
static inline size_t whit_kv_block_bytes(whit_kv_type kv, uint32_t head_dim)
{
    size_t scale_bytes = kv == WHIT_KV_I8 ? 2 * WHIT_KV_BLOCK_TOKENS * sizeof(float) : 0;
    return whit_kv_keys_bytes(kv, head_dim) + whit_kv_values_bytes(kv, head_dim) + scale_bytes;
}

/* The arrays of a block; scales only for i8. */
typedef struct whit_kv_arrays {
    void *keys, *values;
    float *key_scales, *value_scales;
} whit_kv_arrays;

static inline whit_kv_arrays whit_kv_block_arrays(whit_kv_type kv, uint32_t head_dim,
                                                  const void *block)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)block;
    whit_kv_arrays arrays = {.keys = bytes, .values = bytes + whit_kv_keys_bytes(kv, head_dim)};
    if (kv == WHIT_KV_I8) {
        uint8_t *scales = (uint8_t *)arrays.values + whit_kv_values_bytes(kv, head_dim);
        arrays.key_scales = (float *)(void *)scales;
        arrays.value_scales = arrays.key_scales + WHIT_KV_BLOCK_TOKENS;
    }
    return arrays;
}

/* A query made ready for the scores of a cache type: f32 as it is; for i8 s8 (head_dim rounded up
 * to 64, zeros behind), then its scale (f32) and the sum of its codes (i32). */
static inline size_t whit_kv_query_bytes(whit_kv_type kv, uint32_t head_dim)
{
    size_t elems = whit_round_up(head_dim, 64);
    return kv == WHIT_KV_I8 ? elems + 64 : whit_round_up((size_t)head_dim * sizeof(float), 64);
}
static inline size_t whit_kv_query_scale_offset(uint32_t head_dim)
{
    return whit_round_up(head_dim, 64);
}

/* Positions of a block that one query sees: [begin, end), empty where begin >= end. */
typedef struct whit_kv_span {
    uint8_t begin, end;
} whit_kv_span;

/* Softmax over part of the positions, not yet divided: out (head_dim), then maximum and sum. A sum
 * of 0 means that no position was seen; `out` is then without meaning. */
static inline size_t whit_kv_partial_elems(uint32_t head_dim)
{
    return whit_round_up((size_t)head_dim + 2, 16);
}

#endif
