/* SPDX-License-Identifier: MIT
 * Attention over blocks of 64 positions, as specified. For each query and block:
 *
 *   score j   f32, f16: s = fma(q_d, k_dj, s) over d ascending, then s * scale
 *             i8: int32 sum over d, as float times ((scale_q * scale) * scale_k of j)
 *   m         maximum of the scores in the span; -0 becomes +0
 *   p_j       exp(score j - m)
 *   sum       of p_j in sixteen virtual lanes, j in lane j mod 16, positions outside the span
 *             left out
 *   out_d     f32, f16: fma(p_j, v_jd, out) over j ascending in the span
 *             i8: int32 sum over j of u_j v_jd, as float times largest w / 16383, where w_j is
 *             p_j * scale_v of j and u_j is w_j * (16383 / largest w), rounded. A largest w below
 *             2^-100 counts as 0. Fourteen bits, so that small weights of a block do not vanish
 *             beside a large one, in two parts of seven that bytes' products take.
 *
 * Joining blocks, ascending: m' = max(m_a, m_b), c_a = exp(m_a - m'), c_b = exp(m_b - m');
 * sum = fma(sum_a, c_a, sum_b * c_b), out the same. At last out * (1 / sum). */
#include "kernels/generic/lanes.h"
#include "kernels/kernels.h"
#include "kernels/math.h"

#define BLOCK WHIT_KV_BLOCK_TOKENS

/* ---- append --------------------------------------------------------------------------------- */

void whit_kv_append_f32_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim,
                                const float *keys, const float *values, size_t stride)
{
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_F32, head_dim, block);
    float *to_keys = kv.keys, *to_values = kv.values;
    for (uint32_t i = 0; i < n; i++, slot++, keys += stride, values += stride)
        for (uint32_t d = 0; d < head_dim; d++) {
            to_keys[d * BLOCK + slot] = keys[d];
            to_values[slot * head_dim + d] = values[d];
        }
}

void whit_kv_append_f16_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim,
                                const float *keys, const float *values, size_t stride)
{
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_F16, head_dim, block);
    uint16_t *to_keys = kv.keys, *to_values = kv.values;
    for (uint32_t i = 0; i < n; i++, slot++, keys += stride, values += stride)
        for (uint32_t d = 0; d < head_dim; d++) {
            to_keys[d * BLOCK + slot] = whit_f16_from_f32(keys[d]);
            to_values[slot * head_dim + d] = whit_f16_from_f32(values[d]);
        }
}

/* As activations are quantised in groups: the group is a head. */
static float quantize_head(const float *x, uint32_t n, int8_t *codes)
{
    whit_acts acts = {.spec = {.kind = WHIT_ACTS_I8, .group = n, .step = n},
                      .n_tokens = 1,
                      .n_cols = n,
                      .n_steps = 1,
                      .stride = n,
                      .i8 = codes};
    float scale;
    int32_t sum;
    acts.scales = &scale;
    acts.sums = &sum;
    whit_quantize_generic(x, n, &acts, 0, 1);
    return scale;
}

void whit_kv_append_i8_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim,
                               const float *keys, const float *values, size_t stride)
{
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_I8, head_dim, block);
    uint8_t *to_keys = kv.keys, *to_values = kv.values;
    int8_t codes[WHIT_KV_MAX_HEAD_DIM];
    for (uint32_t i = 0; i < n; i++, slot++, keys += stride, values += stride) {
        kv.key_scales[slot] = quantize_head(keys, head_dim, codes);
        for (uint32_t d = 0; d < whit_round_up(head_dim, 4); d++)
            to_keys[(d / 4 * BLOCK + slot) * 4 + d % 4] =
                (uint8_t)(d < head_dim ? codes[d] + 128 : 128);
        kv.value_scales[slot] = quantize_head(values, head_dim, codes);
        for (uint32_t d = 0; d < head_dim; d++)
            to_values[(slot / 4 * head_dim + d) * 4 + slot % 4] = (uint8_t)(codes[d] + 128);
    }
}

/* ---- queries -------------------------------------------------------------------------------- */

void whit_kv_query_float_generic(const float *q, size_t q_stride, uint32_t n, uint32_t head_dim,
                                 uint8_t *out)
{
    size_t bytes = whit_kv_query_bytes(WHIT_KV_F32, head_dim);
    for (uint32_t i = 0; i < n; i++)
        memcpy(out + i * bytes, q + i * q_stride, head_dim * sizeof *q);
}

void whit_kv_query_i8_generic(const float *q, size_t q_stride, uint32_t n, uint32_t head_dim,
                              uint8_t *out)
{
    size_t bytes = whit_kv_query_bytes(WHIT_KV_I8, head_dim);
    for (uint32_t i = 0; i < n; i++, out += bytes) {
        memset(out, 0, bytes);
        int8_t *codes = (int8_t *)out;
        float scale = quantize_head(q + i * q_stride, head_dim, codes);
        int32_t sum = 0;
        for (uint32_t d = 0; d < head_dim; d++) sum += codes[d];
        memcpy(out + whit_kv_query_scale_offset(head_dim), &scale, 4);
        memcpy(out + whit_kv_query_scale_offset(head_dim) + 4, &sum, 4);
    }
}

/* ---- attend --------------------------------------------------------------------------------- */

/* Turns scores of a span into the weights of its values; maximum and sum go into the partial. */
static void soften(float scores[BLOCK], whit_kv_span span, uint32_t head_dim, float *partial)
{
    float max = scores[span.begin], lanes[WHIT_LANES] = {0};
    for (uint32_t j = span.begin; j < span.end; j++) max = scores[j] > max ? scores[j] : max;
    for (uint32_t j = span.begin; j < span.end; j++) {
        scores[j] = whit_exp_f32(scores[j] - max);
        lanes[j % WHIT_LANES] += scores[j];
    }
    partial[head_dim] = max + 0.0f; /* -0 becomes +0, whichever zero was found first */
    partial[head_dim + 1] = whit_lanes_sum(lanes);
}

static float float_elem(const void *elems, bool is_f16, size_t i)
{
    return is_f16 ? whit_f32_from_f16(((const uint16_t *)elems)[i]) : ((const float *)elems)[i];
}

static void attend_float(whit_kv_type type, const void *block, const uint8_t *queries,
                         const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,
                         float *partials)
{
    bool is_f16 = type == WHIT_KV_F16;
    whit_kv_arrays kv = whit_kv_block_arrays(type, head_dim, block);
    for (uint32_t i = 0; i < n; i++, partials += whit_kv_partial_elems(head_dim)) {
        const float *q =
            (const float *)(const void *)(queries + i * whit_kv_query_bytes(type, head_dim));
        float scores[BLOCK] = {0};
        partials[head_dim + 1] = 0;
        if (spans[i].begin >= spans[i].end) continue;
        for (uint32_t d = 0; d < head_dim; d++)
            for (uint32_t j = spans[i].begin; j < spans[i].end; j++)
                scores[j] = fmaf(q[d], float_elem(kv.keys, is_f16, d * BLOCK + j), scores[j]);
        for (uint32_t j = spans[i].begin; j < spans[i].end; j++) scores[j] *= scale;
        soften(scores, spans[i], head_dim, partials);
        memset(partials, 0, head_dim * sizeof *partials);
        for (uint32_t j = spans[i].begin; j < spans[i].end; j++)
            for (uint32_t d = 0; d < head_dim; d++)
                partials[d] =
                    fmaf(scores[j], float_elem(kv.values, is_f16, j * head_dim + d), partials[d]);
    }
}

void whit_kv_attend_f32_generic(const void *block, const void *next, const uint8_t *queries,
                                const whit_kv_span *spans, uint32_t n, uint32_t head_dim,
                                float scale, float *partials)
{
    (void)next;
    attend_float(WHIT_KV_F32, block, queries, spans, n, head_dim, scale, partials);
}

void whit_kv_attend_f16_generic(const void *block, const void *next, const uint8_t *queries,
                                const whit_kv_span *spans, uint32_t n, uint32_t head_dim,
                                float scale, float *partials)
{
    (void)next;
    attend_float(WHIT_KV_F16, block, queries, spans, n, head_dim, scale, partials);
}

/* Weights of values as integers; returns what turns sums of their products back. */
static float weight_codes(const float *weights, whit_kv_span span, int32_t codes[BLOCK])
{
    uint32_t largest = 0;
    for (uint32_t j = span.begin; j < span.end; j++) {
        uint32_t bits = whit_f32_bits(weights[j]) & 0x7FFFFFFF; /* NaN and infinity win */
        if (bits > largest) largest = bits;
    }
    bool is_zero = largest < whit_f32_bits(WHIT_KV_WEIGHT_MIN);
    float factor = is_zero ? 0 : WHIT_KV_WEIGHT_MAX / whit_f32_from_bits(largest);
    for (uint32_t j = span.begin; j < span.end; j++) {
        float product = weights[j] * factor;
        codes[j] = product != product ? 0 : whit_round_i32(product);
    }
    return is_zero ? 0 : whit_f32_from_bits(largest) / WHIT_KV_WEIGHT_MAX;
}

void whit_kv_attend_i8_generic(const void *block, const void *next, const uint8_t *queries,
                               const whit_kv_span *spans, uint32_t n, uint32_t head_dim,
                               float scale, float *partials)
{
    (void)next;
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_I8, head_dim, block);
    const uint8_t *keys = kv.keys, *values = kv.values;
    for (uint32_t i = 0; i < n; i++, partials += whit_kv_partial_elems(head_dim)) {
        const uint8_t *query = queries + i * whit_kv_query_bytes(WHIT_KV_I8, head_dim);
        const int8_t *q = (const int8_t *)query;
        float scores[BLOCK],
            factor = whit_load_f32(query + whit_kv_query_scale_offset(head_dim)) * scale;
        partials[head_dim + 1] = 0;
        if (spans[i].begin >= spans[i].end) continue;
        for (uint32_t j = spans[i].begin; j < spans[i].end; j++) {
            int32_t sum = 0;
            for (uint32_t d = 0; d < head_dim; d++)
                sum += (keys[(d / 4 * BLOCK + j) * 4 + d % 4] - 128) * q[d];
            scores[j] = (float)sum * (factor * kv.key_scales[j]);
        }
        soften(scores, spans[i], head_dim, partials);
        for (uint32_t j = spans[i].begin; j < spans[i].end; j++) scores[j] *= kv.value_scales[j];
        int32_t codes[BLOCK];
        float unit = weight_codes(scores, spans[i], codes);
        for (uint32_t d = 0; d < head_dim; d++) {
            int32_t sum = 0;
            for (uint32_t j = spans[i].begin; j < spans[i].end; j++)
                sum += codes[j] * (values[(j / 4 * head_dim + d) * 4 + j % 4] - 128);
            partials[d] = (float)sum * unit;
        }
    }
}

/* ---- join ----------------------------------------------------------------------------------- */

void whit_kv_join_generic(float *into, const float *from, uint32_t n, uint32_t head_dim)
{
    size_t elems = whit_kv_partial_elems(head_dim);
    for (uint32_t i = 0; i < n; i++, into += elems, from += elems) {
        if (from[head_dim + 1] == 0) continue;
        if (into[head_dim + 1] == 0) {
            memcpy(into, from, (head_dim + 2) * sizeof *into);
            continue;
        }
        float a = into[head_dim], b = from[head_dim], max = b > a ? b : a;
        float scale_a = whit_exp_f32(a - max), scale_b = whit_exp_f32(b - max);
        for (uint32_t d = 0; d < head_dim; d++) into[d] = fmaf(into[d], scale_a, from[d] * scale_b);
        into[head_dim] = max;
        into[head_dim + 1] = fmaf(into[head_dim + 1], scale_a, from[head_dim + 1] * scale_b);
    }
}

void whit_kv_finish_generic(const float *partial, uint32_t head_dim, float *out)
{
    float inverse = 1.0f / partial[head_dim + 1];
    for (uint32_t d = 0; d < head_dim; d++) out[d] = partial[d] * inverse;
}
