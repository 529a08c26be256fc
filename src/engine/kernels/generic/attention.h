/* SPDX-License-Identifier: MIT
 * Functions that the generic attention kernels share: softmax over a span of a group, quantisation to integers. */
#ifndef WHIT_KERNELS_GENERIC_ATTENTION_H
#define WHIT_KERNELS_GENERIC_ATTENTION_H

#include "kernels/generic/lanes.h"
#include "kernels/kernels.h"
#include "kernels/math.h"

#define BLOCK WHIT_KV_BLOCK_TOKENS
#define GROUP WHIT_KV_GROUP_TOKENS

/* Arrays of a group's blocks, one entry per block; undefined for blocks that no query attends to. */
typedef struct group_arrays {
    whit_kv_arrays of[WHIT_KV_GROUP_BLOCKS];
} group_arrays;

static inline group_arrays arrays_of(whit_kv_type type, uint32_t head_dim, const whit_kv_group *group)
{
    group_arrays arrays = {0};
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++)
        if (group->blocks[b]) arrays.of[b] = whit_kv_block_arrays(type, head_dim, group->blocks[b]);
    return arrays;
}

/* Returns the sum of x over a span, in the order of sixteen virtual lanes (lanes.h). */
static inline float sum_of_span(const float x[GROUP], whit_kv_span span)
{
    float lanes[WHIT_LANES] = {0};
    for (uint32_t j = span.begin; j < span.end; j++) lanes[j % WHIT_LANES] += x[j];
    return whit_lanes_sum(lanes);
}

/* Replaces the scores of a span by weights 2^(score - maximum); stores the maximum of the scores and the sum of the
 * weights in the partial. */
static inline void softmax_queries(float scores[GROUP], whit_kv_span span, uint32_t head_dim, float *partial)
{
    float max = scores[span.begin];
    for (uint32_t j = span.begin; j < span.end; j++) max = scores[j] > max ? scores[j] : max;
    for (uint32_t j = span.begin; j < span.end; j++) scores[j] = whit_exp2_below_0_f32(scores[j] - max);
    partial[head_dim] = max + 0.0f; /* + 0.0f turns -0 into +0, so that the order of zeros has no influence */
    partial[head_dim + 1] = sum_of_span(scores, span);
}

/* Quantises n numbers, whose largest magnitude has the bits `largest`, to codes of magnitude up to `max`; returns the
 * scale. */
static inline float codes_of(const float *x, uint32_t n, uint32_t largest, float max, int32_t *codes)
{
    float factor, scale = whit_kv_code_scale(largest, max, &factor);
    for (uint32_t i = 0; i < n; i++) {
        float product = x[i] * factor;
        codes[i] = product != product ? 0 : whit_round_i32(product);
    }
    return scale;
}

/* Returns the integer code of an f16: the number divided by the scale and rounded; 0 if the scale is 0 or NaN. */
static inline int32_t f16_code(uint16_t half, float scale)
{
    float factor = whit_f32_from_bits(whit_kv_f16_factor_bits(whit_f32_bits(scale)));
    return scale > 0 ? whit_round_i32(whit_f32_from_f16(half) * factor) : 0;
}

/* Quantises the weights of a span to integers; returns their scale. */
static inline float quantise_probs(whit_kv_type type, const float weights[GROUP], whit_kv_span span,
                                   int32_t codes[GROUP])
{
    const uint32_t n = (uint32_t)(span.end - span.begin);
    uint32_t most = whit_amax_bits(weights + span.begin, n);
    uint32_t share = whit_f32_bits(sum_of_span(weights, span) * WHIT_KV_PROB_FRACTION);
    if (type == WHIT_KV_F16 && share > most) most = share;
    return codes_of(weights + span.begin, n, most, WHIT_KV_PROB_MAX, codes + span.begin);
}

#endif
