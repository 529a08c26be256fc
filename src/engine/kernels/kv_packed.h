/* SPDX-License-Identifier: MIT
 * Defines the closed form of a block of the caches k4v2 and k2v2: keys and values of one KV head at 64 positions, in
 * few bits. In these and in bitmap caches (kv_bitmap.h), a block is an f16 block (kv_block.h) while it is open, and
 * some time after. Values are rotated by a Hadamard matrix (kernels/hadamard.h): all sums are in the rotated space, and
 * one inverse transform per head follows.
 *
 *   keys         u32 (ceil(head_dim / c), 4, 16), c = 32 / bits channels per dword (k4v2 4 bits, k2v2 2): lane l
 *                of vector v is position 16 v + l; the code of channel i of a dword is at bit bits * i
 *   values       codes of 2 bits in cells. The cell of positions [4 q, 4 q + 4) and dimensions
 *                [16 v, 16 v + 16) is number q * ceil(head_dim / 16) + v. A line of 64 bytes has four cells:
 *                bits 2 f and 2 f + 1 of byte 4 r + i are of cell 4 line + f, dimension 16 v + r, position 4 q + i
 *   units        f32 (4): [0] unit of key steps; [1] factor that converts keys to words; [2] value of a word's
 *                unit, a power of two; [3] unit of value steps
 *   key_least    f16 (head_dim): least key of each channel
 *   key_steps    u8 (head_dim): step of each channel, in units[0]
 *   value_steps  u8 (groups of 64 dimensions, 64 positions): step of each group and position, in units[3]
 *
 *   key          least + code * step; if rope_pairs (kv_block.h) is not 0, this is then rotated by RoPE from the
 *                block's first position to the key's own. Such keys, and keys of two bits, are read as words:
 *                key * units[1], rounded to an integer of magnitude up to 2,047; a word w has the value w * units[2]
 *   value        (2 code - 3) * step
 *
 * The entries after the last channel and dimension are zero. */
#ifndef WHIT_KERNELS_KV_PACKED_H
#define WHIT_KERNELS_KV_PACKED_H

#include "base/half.h"
#include "base/mem.h"
#include "whit.h"

/* Number of sinks of packed types: the first positions of a sequence, which keep the precision of f16. An endless cache
 * has other sinks (whit_kv_shape.n_sinks). */
#define WHIT_KV_SINKS 4

static inline bool whit_kv_is_packed(whit_kv_type kv)
{
    return kv >= WHIT_KV_K4V2;
}
/* Returns the type of open blocks, to which tokens are written. */
static inline whit_kv_type whit_kv_open_type(whit_kv_type kv)
{
    return whit_kv_is_packed(kv) ? WHIT_KV_F16 : kv;
}
static inline uint32_t whit_kv_key_bits(whit_kv_type kv)
{
    return kv == WHIT_KV_K4V2 ? 4 : 2;
}
/* Returns whether keys are rotated back to the first position of their block before packing: keys of two bits always,
 * keys of bitmap caches never. Keys of four bits are as accurate without rotation, unless the model has a key bias,
 * which RoPE spreads over the channels. */
static inline bool whit_kv_turns_keys(whit_kv_type kv, bool has_key_bias)
{
    return kv == WHIT_KV_K2V2 || (kv == WHIT_KV_K4V2 && has_key_bias);
}

/* Returns whether kernels multiply the codes of keys directly, by queries that were first multiplied by the channels'
 * steps. */
static inline bool whit_kv_multiplies_codes(whit_kv_type kv, uint32_t rope_pairs)
{
    return kv == WHIT_KV_K4V2 && !rope_pairs;
}
/* Largest integer code of a query that was multiplied by the channels' steps. */
#define WHIT_KV_STEPPED_QUERY_MAX 127.0f

enum { WHIT_KV_UNIT_KEY_STEP, WHIT_KV_UNIT_TO_WORD, WHIT_KV_UNIT_WORD, WHIT_KV_UNIT_VALUE_STEP, WHIT_KV_UNITS };
enum { WHIT_KV_PACKED_TOKENS = 64, WHIT_KV_PACKED_GROUP = 64 /* number of dimensions of a value that share a step */ };

typedef struct whit_kv_packed {
    uint32_t *keys;
    uint8_t *values;
    float *units;
    uint16_t *key_least;
    uint8_t *key_steps, *value_steps;
    size_t bytes; /* bytes of the block, a multiple of 64 */
} whit_kv_packed;

static inline uint32_t whit_kv_value_groups(uint32_t head_dim)
{
    return (head_dim + WHIT_KV_PACKED_GROUP - 1) / WHIT_KV_PACKED_GROUP;
}

/* Returns the arrays of a block. block may be NULL if only `bytes` is needed. */
static inline whit_kv_packed whit_kv_packed_arrays(whit_kv_type kv, uint32_t head_dim, const void *block)
{
    const uint32_t n_channels = 32 / whit_kv_key_bits(kv);
    const uintptr_t keys = (uintptr_t)block,
                    values = keys + (uintptr_t)(head_dim + n_channels - 1) / n_channels * WHIT_KV_PACKED_TOKENS * 4,
                    units = values + (uintptr_t)(head_dim + 15) / 16 * 256, least = units + WHIT_KV_UNITS * 4,
                    value_steps = least + (uintptr_t)2 * head_dim,
                    key_steps = value_steps + (uintptr_t)whit_kv_value_groups(head_dim) * WHIT_KV_PACKED_TOKENS;
    return (whit_kv_packed){.keys = (uint32_t *)keys,
                            .values = (uint8_t *)values,
                            .units = (float *)units,
                            .key_least = (uint16_t *)least,
                            .key_steps = (uint8_t *)key_steps,
                            .value_steps = (uint8_t *)value_steps,
                            .bytes = whit_round_up(key_steps + head_dim - keys, 64)};
}

/* Returns the two-bit code of dimension d of the value at position j of a block. */
static inline uint32_t whit_kv_value_code(const uint8_t *values, uint32_t head_dim, uint32_t j, uint32_t d)
{
    const uint32_t cell = j / 4 * ((head_dim + 15) / 16) + d / 16;
    return values[(size_t)cell / 4 * 64 + d % 16 * 4 + j % 4] >> cell % 4 * 2 & 3;
}

/* Sinks of a sequence for one layer and KV head, with the integers and scales of an f16 block. Their bytes
 * (whit_kv_sinks_bytes) are fewer than those of a closed block. */
typedef struct whit_kv_sinks {
    int16_t *keys, *values;           /* (WHIT_KV_SINKS, head_dim): integers of up to 2047 */
    float *key_scales, *value_scales; /* (WHIT_KV_SINKS): scale of each position */
} whit_kv_sinks;

/* Returns the size of a sequence's sinks for one layer and KV head, a multiple of 64. */
static inline size_t whit_kv_sinks_bytes(uint32_t head_dim)
{
    return whit_round_up(2 * WHIT_KV_SINKS * (sizeof(float) + (size_t)head_dim * sizeof(int16_t)), 64);
}
static inline whit_kv_sinks whit_kv_sinks_arrays(uint32_t head_dim, const void *sinks)
{
    const uintptr_t scales = (uintptr_t)sinks, codes = scales + 2 * WHIT_KV_SINKS * sizeof(float);
    return (whit_kv_sinks){.keys = (int16_t *)codes,
                           .values = (int16_t *)(codes + 2 * WHIT_KV_SINKS * (uintptr_t)head_dim),
                           .key_scales = (float *)scales,
                           .value_scales = (float *)(scales + WHIT_KV_SINKS * sizeof(float))};
}

#endif
