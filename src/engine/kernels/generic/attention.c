/* SPDX-License-Identifier: MIT
 * Specifies attention over groups of 256 positions, which are four blocks. Letters: d dimension, j position; q, k and v
 * are elements of the query, the keys and the values. For each query and group:
 *
 *   scale     is first multiplied by log2 e, because weights are computed as powers of two
 *   score j   f32: s = fma(q_d, k_dj, s) over d ascending, then s * scale
 *             f16, i8: int32 sum over d of products of codes, as float times ((scale_q * scale) * scale_k of j)
 *   m         maximum of the scores in the span; -0 becomes +0
 *   p_j       2^(score j - m)
 *   sum       sum of p_j over the span in sixteen virtual lanes, j in lane j mod 16
 *   out_d     f32: fma(p_j, v_jd, out_d) over j ascending in the span
 *             f16, i8: w_j = p_j * scale_v of j; most = the largest w_j, for f16 at least 1/64 of the sum of w_j
 *             (computed like `sum`), which keeps the sums of products below 2^31; most below 2^-100 counts as 0;
 *             u_j = w_j * (16383 / most), rounded; out_d = int32 sum over j of u_j times the code of v_jd, as
 *             float times most / 16383. u_j has fourteen bits, so that small weights do not vanish beside a
 *             large one; kernels that multiply bytes split it into two digits of seven bits.
 *
 * Groups are merged in ascending order: m' = max(m_a, m_b), c_a = 2^(m_a - m'), c_b = 2^(m_b - m');
 * sum = fma(sum_a, c_a, sum_b * c_b), and out_d likewise. The result is out_d * (1 / sum). */
#include "kernels/generic/attention.h"

/* ---- append --------------------------------------------------------------------------------- */

void whit_kv_append_f32_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim, const float *keys,
                                const float *values, size_t stride)
{
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_F32, head_dim, block);
    float *to_keys = kv.keys, *to_values = kv.values;
    for (uint32_t i = 0; i < n; i++, slot++, keys += stride, values += stride)
        for (uint32_t d = 0; d < head_dim; d++) {
            to_keys[d * BLOCK + slot] = keys[d];
            to_values[slot * head_dim + d] = values[d];
        }
}

/* Returns the scale (kv_block.h) of n numbers after rounding to f16. */
static float f16_scale(const float *x, uint32_t n)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = whit_f32_bits(whit_f32_from_f16(whit_f16_from_f32(x[i]))) & 0x7FFFFFFF;
        if (bits > largest) largest = bits;
    }
    return whit_f32_from_bits(whit_kv_f16_scale_bits(largest));
}

void whit_kv_append_f16_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim, const float *keys,
                                const float *values, size_t stride)
{
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_F16, head_dim, block);
    uint16_t *to_keys = kv.keys, *to_values = kv.values;
    for (uint32_t i = 0; i < n; i++, slot++, keys += stride, values += stride) {
        kv.key_scales[slot] = f16_scale(keys, head_dim);
        kv.value_scales[slot] = f16_scale(values, head_dim);
        for (uint32_t d = 0; d < head_dim; d++) {
            to_keys[d * BLOCK + slot] = whit_f16_from_f32(keys[d]);
            to_values[slot * head_dim + d] = whit_f16_from_f32(values[d]);
        }
    }
}

/* Quantises a head of n elements to int8 as one group of activations; returns the scale. */
static float quantise_head(const float *x, uint32_t n, int8_t *codes)
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
    whit_quantise_generic(x, n, &acts, 0, 1);
    return scale;
}

void whit_kv_append_i8_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim, const float *keys,
                               const float *values, size_t stride)
{
    whit_kv_arrays kv = whit_kv_block_arrays(WHIT_KV_I8, head_dim, block);
    uint8_t *to_keys = kv.keys, *to_values = kv.values;
    int8_t codes[WHIT_KV_MAX_HEAD_DIM];
    for (uint32_t i = 0; i < n; i++, slot++, keys += stride, values += stride) {
        kv.key_scales[slot] = quantise_head(keys, head_dim, codes);
        for (uint32_t d = 0; d < whit_round_up(head_dim, 4); d++)
            to_keys[(d / 4 * BLOCK + slot) * 4 + d % 4] = (uint8_t)(d < head_dim ? codes[d] + 128 : 128);
        kv.value_scales[slot] = quantise_head(values, head_dim, codes);
        for (uint32_t d = 0; d < head_dim; d++)
            to_values[(slot / 4 * head_dim + d) * 4 + slot % 4] = (uint8_t)(codes[d] + 128);
    }
}

/* ---- queries -------------------------------------------------------------------------------- */

void whit_kv_query_f32_generic(const float *q, size_t q_stride, uint32_t n, uint32_t head_dim, uint8_t *out)
{
    size_t bytes = whit_kv_query_bytes(WHIT_KV_F32, head_dim);
    for (uint32_t i = 0; i < n; i++, out += bytes) {
        memset(out, 0, bytes);
        memcpy(out, q + i * q_stride, head_dim * sizeof *q);
    }
}

void whit_kv_query_f16_generic(const float *q, size_t q_stride, uint32_t n, uint32_t head_dim, uint8_t *out)
{
    size_t bytes = whit_kv_query_bytes(WHIT_KV_F16, head_dim), elems = whit_round_up(head_dim, 64);
    for (uint32_t i = 0; i < n; i++, out += bytes, q += q_stride) {
        memset(out, 0, bytes);
        int16_t *codes = (int16_t *)(void *)out;
        int8_t *high = (int8_t *)out + 2 * elems, *low = high + elems;
        int32_t code[WHIT_KV_MAX_HEAD_DIM];
        float scale = codes_of(q, head_dim, whit_amax_bits(q, head_dim), whit_kv_query_max(head_dim), code);
        for (uint32_t d = 0; d < head_dim; d++) {
            codes[d] = (int16_t)code[d];
            low[d] = (int8_t)(code[d] & 127);
            high[d] = (int8_t)((code[d] - low[d]) / 128);
        }
        memcpy(out + whit_kv_query_scale_offset(WHIT_KV_F16, head_dim), &scale, 4);
    }
}

void whit_kv_query_i8_generic(const float *q, size_t q_stride, uint32_t n, uint32_t head_dim, uint8_t *out)
{
    size_t bytes = whit_kv_query_bytes(WHIT_KV_I8, head_dim);
    for (uint32_t i = 0; i < n; i++, out += bytes) {
        memset(out, 0, bytes);
        int8_t *codes = (int8_t *)out;
        float scale = quantise_head(q + i * q_stride, head_dim, codes);
        int32_t sum = 0;
        for (uint32_t d = 0; d < head_dim; d++) sum += codes[d];
        memcpy(out + whit_kv_query_scale_offset(WHIT_KV_I8, head_dim), &scale, 4);
        memcpy(out + whit_kv_query_scale_offset(WHIT_KV_I8, head_dim) + 4, &sum, 4);
    }
}

/* ---- scores and values ---------------------------------------------------------------------- */

static void attend_floats(const group_arrays *kv, const uint8_t *queries, const whit_kv_span *spans, uint32_t n,
                          uint32_t head_dim, float scale, float *partials)
{
    for (uint32_t i = 0; i < n; i++, partials += whit_kv_partial_elems(head_dim)) {
        const float *q = (const float *)(const void *)(queries + i * whit_kv_query_bytes(WHIT_KV_F32, head_dim));
        const whit_kv_span span = spans[i];
        float scores[GROUP] = {0};
        partials[head_dim + 1] = 0;
        if (span.begin >= span.end) continue;
        for (uint32_t j = span.begin; j < span.end; j++) {
            const float *keys = kv->of[j / BLOCK].keys;
            for (uint32_t d = 0; d < head_dim; d++) scores[j] = fmaf(q[d], keys[d * BLOCK + j % BLOCK], scores[j]);
            scores[j] *= scale;
        }
        softmax_queries(scores, span, head_dim, partials);
        memset(partials, 0, head_dim * sizeof *partials);
        for (uint32_t j = span.begin; j < span.end; j++) {
            const float *values = (const float *)kv->of[j / BLOCK].values + j % BLOCK * head_dim;
            for (uint32_t d = 0; d < head_dim; d++) partials[d] = fmaf(scores[j], values[d], partials[d]);
        }
    }
}

/* Returns the integer code of dimension d of the key at position j of a block. */
static int32_t key_code(whit_kv_type type, const whit_kv_arrays *kv, uint32_t d, uint32_t j)
{
    if (type == WHIT_KV_F16) return f16_code(((const uint16_t *)kv->keys)[d * BLOCK + j], kv->key_scales[j]);
    return ((const uint8_t *)kv->keys)[(d / 4 * BLOCK + j) * 4 + d % 4] - 128;
}

static int32_t value_code(whit_kv_type type, const whit_kv_arrays *kv, uint32_t head_dim, uint32_t j, uint32_t d)
{
    if (type == WHIT_KV_F16) return f16_code(((const uint16_t *)kv->values)[j * head_dim + d], kv->value_scales[j]);
    return ((const uint8_t *)kv->values)[(j / 4 * head_dim + d) * 4 + j % 4] - 128;
}

static int32_t query_code(whit_kv_type type, const uint8_t *query, uint32_t d)
{
    if (type == WHIT_KV_F16) return ((const int16_t *)(const void *)query)[d];
    return ((const int8_t *)query)[d];
}

static void attend_codes(whit_kv_type type, const group_arrays *kv, const uint8_t *queries, const whit_kv_span *spans,
                         uint32_t n, uint32_t head_dim, float scale, float *partials)
{
    for (uint32_t i = 0; i < n; i++, partials += whit_kv_partial_elems(head_dim)) {
        const whit_kv_span span = spans[i];
        const uint8_t *query = queries + i * whit_kv_query_bytes(type, head_dim);
        float scores[GROUP];
        float factor = whit_load_f32(query + whit_kv_query_scale_offset(type, head_dim)) * scale;
        partials[head_dim + 1] = 0;
        if (span.begin >= span.end) continue;
        for (uint32_t j = span.begin; j < span.end; j++) {
            const whit_kv_arrays *block = &kv->of[j / BLOCK];
            int32_t sum = 0;
            for (uint32_t d = 0; d < head_dim; d++)
                sum += key_code(type, block, d, j % BLOCK) * query_code(type, query, d);
            scores[j] = (float)sum * (factor * block->key_scales[j % BLOCK]);
        }
        softmax_queries(scores, span, head_dim, partials);
        for (uint32_t j = span.begin; j < span.end; j++) scores[j] *= kv->of[j / BLOCK].value_scales[j % BLOCK];
        int32_t codes[GROUP];
        float unit = quantise_probs(type, scores, span, codes);
        for (uint32_t d = 0; d < head_dim; d++) {
            int32_t sum = 0;
            for (uint32_t j = span.begin; j < span.end; j++)
                sum += codes[j] * value_code(type, &kv->of[j / BLOCK], head_dim, j % BLOCK, d);
            partials[d] = (float)sum * unit;
        }
    }
}

/* ---- merge ----------------------------------------------------------------------------------- */

void whit_kv_merge_generic(float *into, const float *from, uint32_t n, uint32_t head_dim)
{
    size_t elems = whit_kv_partial_elems(head_dim);
    for (uint32_t i = 0; i < n; i++, into += elems, from += elems) {
        if (from[head_dim + 1] == 0) continue;
        if (into[head_dim + 1] == 0) {
            memcpy(into, from, (head_dim + 2) * sizeof *into);
            continue;
        }
        float a = into[head_dim], b = from[head_dim], max = b > a ? b : a;
        float scale_a = whit_exp2_below_0_f32(a - max), scale_b = whit_exp2_below_0_f32(b - max);
        for (uint32_t d = 0; d < head_dim; d++) into[d] = fmaf(into[d], scale_a, from[d] * scale_b);
        into[head_dim] = max;
        into[head_dim + 1] = fmaf(into[head_dim + 1], scale_a, from[head_dim + 1] * scale_b);
    }
}

/* ---- attend and merge ------------------------------------------------------------------------ */

static void attend(whit_kv_type type, const whit_kv_group *group, const uint8_t *queries, const whit_kv_span *spans,
                   uint32_t n, uint32_t head_dim, float scale, float *partials, float *into)
{
    const group_arrays kv = arrays_of(type, head_dim, group);
    scale *= WHIT_EXP_LOG2E;
    const uint32_t most = into ? WHIT_KV_PASS_QUERIES : n;
    for (uint32_t count; n > 0; n -= count) {
        count = n < most ? n : most;
        if (type == WHIT_KV_F32)
            attend_floats(&kv, queries, spans, count, head_dim, scale, partials);
        else
            attend_codes(type, &kv, queries, spans, count, head_dim, scale, partials);
        if (!into) return;
        whit_kv_merge_generic(into, partials, count, head_dim);
        into += count * whit_kv_partial_elems(head_dim);
        queries += count * whit_kv_query_bytes(type, head_dim);
        spans += count;
    }
}

#define ATTEND(lower, upper)                                                                                           \
    void whit_kv_attend_##lower##_generic(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,     \
                                          const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,       \
                                          float *partials, float *into)                                                \
    {                                                                                                                  \
        (void)next;                                                                                                    \
        attend(WHIT_KV_##upper, group, queries, spans, n, head_dim, scale, partials, into);                            \
    }
ATTEND(f32, F32)
ATTEND(f16, F16)
ATTEND(i8, I8)

void whit_kv_finish_generic(const float *partial, uint32_t head_dim, float *out)
{
    float inverse = 1.0f / partial[head_dim + 1];
    for (uint32_t d = 0; d < head_dim; d++) out[d] = partial[d] * inverse;
}
