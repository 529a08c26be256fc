/* SPDX-License-Identifier: MIT
 * Specifies attention over groups whose first blocks are closed blocks of a packed cache (kernels/kv_packed.h); a group
 * without closed blocks is computed as in attention.c for f16. For each query and group, with the arrays of the
 * position's block:
 *
 *   word dj   key d of position j as an integer: x_d = fma(code, step_d * units[1], least_d * units[1]), with
 *             step_d = key_steps d * units[0]. If keys are rotated (rope_pairs > 0), a pair a = x_i,
 *             b = x_(i + rope_pairs) becomes fma(a, cos, fma(-b, sin, M)) and fma(b, cos, fma(a, sin, M)); every
 *             other x becomes x + M. Adding M = 1.5 * 2^23 rounds; the word is the low sixteen bits of the result
 *   score j   closed: int32 sum over d of words times the query's codes, as float times
 *             ((scale_q * scale) * units[2]); open positions and sinks: as in attention.c for f16
 *             closed, k4v2 whose keys are not rotated: y_d = code d of the query * key_steps d; most = the largest
 *             |y_d|; c_d = y_d * (127 / most), rounded; scale_b = most / 127;
 *             fma(int32 (2 * (sum over d of c_d times the key's code) - 15 * (sum over d of c_d)),
 *             (scale_b * 0.5) * (units[0] * (scale_q * scale)), base), where base = int32 sum over d of the
 *             query's codes times the words of code 7.5, as float times (units[2] * (scale_q * scale))
 *   m, p, sum as in attention.c, over all positions
 *   out_d     first: int32 sum over the open positions, as float times its unit, as in attention.c for f16;
 *             then the closed positions: w_j = p_j * (value_steps of j and the group of d * units[3]); most = the
 *             largest w_j; u_j = w_j * (16383 / most), rounded; unit = most / 16383;
 *             fma(2 * (sum of u_j times the code of v_jd) - 3 * (sum of u_j), unit, out_d), with int32 sums;
 *             last the sinks in the span, j ascending: fma(p_j * scale_v of j, code of v_jd, out_d)
 *
 * Values are rotated (kernels/hadamard.h); kv_finish rotates the result back. */
#include "kernels/generic/attention_closed.h"
#include "kernels/hadamard.h"

#define PACK_HALVES(from, n, to)                                                                                       \
    for (uint32_t i_half = 0; i_half < (uint32_t)(n); i_half++) (to)[i_half] = whit_f32_from_f16((from)[i_half])
#include "kernels/kv_pack.inc"

void whit_kv_pack_k4v2_generic(const void *open, uint32_t head_dim, const whit_kv_packing *how, void *closed,
                               void *sinks)
{
    pack_block(WHIT_KV_K4V2, open, head_dim, how, closed, sinks);
}

void whit_kv_pack_k2v2_generic(const void *open, uint32_t head_dim, const whit_kv_packing *how, void *closed,
                               void *sinks)
{
    pack_block(WHIT_KV_K2V2, open, head_dim, how, closed, sinks);
}

void whit_kv_append_packed_generic(void *block, uint32_t slot, uint32_t n, uint32_t head_dim, const float *keys,
                                   const float *values, size_t stride)
{
    float rotated[WHIT_KV_MAX_HEAD_DIM];
    for (uint32_t i = 0; i < n; i++, keys += stride, values += stride) {
        memcpy(rotated, values, head_dim * sizeof *values);
        whit_hadamard(rotated, head_dim, false);
        whit_kv_append_f16_generic(block, slot + i, 1, head_dim, keys, rotated, head_dim);
    }
}

void whit_kv_finish_packed_generic(const float *partial, uint32_t head_dim, float *out)
{
    whit_kv_finish_generic(partial, head_dim, out);
    whit_hadamard(out, head_dim, true);
}

/* ---- scores --------------------------------------------------------------------------------- */

/* Computes the words (64, head_dim) of the keys of a closed block, as defined at the beginning of this file. */
static void words_of(whit_kv_type type, const void *block, uint32_t head_dim, const whit_kv_group *group,
                     int16_t *words)
{
    const whit_kv_packed from = whit_kv_packed_arrays(type, head_dim, block);
    const uint32_t bits = whit_kv_key_bits(type), n_channels = 32 / bits, n_pairs = group->rope_pairs;
    for (uint32_t j = 0; j < BLOCK; j++, words += head_dim) {
        float x[WHIT_KV_MAX_HEAD_DIM];
        for (uint32_t d = 0; d < head_dim; d++) {
            const uint32_t code = from.keys[d / n_channels * BLOCK + j] >> d % n_channels * bits & ((1u << bits) - 1);
            const float step = (float)from.key_steps[d] * from.units[WHIT_KV_UNIT_KEY_STEP];
            x[d] = fmaf((float)code, step * from.units[WHIT_KV_UNIT_TO_WORD],
                        whit_f32_from_f16(from.key_least[d]) * from.units[WHIT_KV_UNIT_TO_WORD]);
        }
        for (uint32_t i = 0; i < n_pairs; i++) {
            const float a = x[i], b = x[i + n_pairs];
            const float cosine = group->rope[i * BLOCK + j], sine = group->rope[(n_pairs + i) * BLOCK + j];
            x[i] = fmaf(a, cosine, fmaf(-b, sine, WHIT_ROUND_MAGIC));
            x[i + n_pairs] = fmaf(b, cosine, fmaf(a, sine, WHIT_ROUND_MAGIC));
        }
        for (uint32_t d = 2 * n_pairs; d < head_dim; d++) x[d] += WHIT_ROUND_MAGIC;
        for (uint32_t d = 0; d < head_dim; d++) words[d] = (int16_t)(uint16_t)whit_f32_bits(x[d]);
    }
}

/* Keys of a group's closed blocks, as words. */
typedef struct packed_group {
    whit_kv_type type;
    int16_t words[GROUP * WHIT_KV_MAX_HEAD_DIM]; /* (positions, head_dim) */
} packed_group;

/* Computes the scores at positions [begin, end) of the group, which are all in `block`, by multiplying the codes of the
 * keys directly (k4v2 without rotation). */
static void coded_scores(const void *block, uint32_t begin, uint32_t end, const uint8_t *query, uint32_t head_dim,
                         float factor, float *scores)
{
    const whit_kv_packed from = whit_kv_packed_arrays(WHIT_KV_K4V2, head_dim, block);
    const int16_t *codes = (const int16_t *)(const void *)query;
    float stepped[WHIT_KV_MAX_HEAD_DIM];
    int32_t own[WHIT_KV_MAX_HEAD_DIM], middle = 0, total = 0;
    for (uint32_t d = 0; d < head_dim; d++) {
        const float step = (float)from.key_steps[d] * from.units[WHIT_KV_UNIT_KEY_STEP];
        const float least = whit_f32_from_f16(from.key_least[d]) * from.units[WHIT_KV_UNIT_TO_WORD];
        const float word = fmaf(7.5f, step * from.units[WHIT_KV_UNIT_TO_WORD], least) + WHIT_ROUND_MAGIC;
        middle += codes[d] * (int16_t)(uint16_t)whit_f32_bits(word);
        stepped[d] = (float)codes[d] * (float)from.key_steps[d];
    }
    const float scale = codes_of(stepped, head_dim, whit_amax_bits(stepped, head_dim), WHIT_KV_STEPPED_QUERY_MAX, own);
    const float worth = scale * 0.5f * (from.units[WHIT_KV_UNIT_KEY_STEP] * factor),
                base = (float)middle * (from.units[WHIT_KV_UNIT_WORD] * factor);
    for (uint32_t d = 0; d < head_dim; d++) total += own[d];
    for (uint32_t j = begin; j < end; j++) {
        int32_t sum = 0;
        for (uint32_t d = 0; d < head_dim; d++)
            sum += own[d] * (int32_t)(from.keys[d / 8 * BLOCK + j % BLOCK] >> d % 8 * 4 & 15);
        scores[j] = fmaf((float)(2 * sum - 15 * total), worth, base);
    }
}

static void packed_scores(const void *context, const whit_kv_group *group, seen s, const uint8_t *query,
                          uint32_t head_dim, float factor, float *scores)
{
    const packed_group *own = context;
    if (whit_kv_multiplies_codes(own->type, group->rope_pairs)) {
        for (uint32_t j = s.begin, end; j < s.closed; j = end) {
            end = (j / BLOCK + 1) * BLOCK < s.closed ? (j / BLOCK + 1) * BLOCK : s.closed;
            coded_scores(group->blocks[j / BLOCK], j, end, query, head_dim, factor, scores);
        }
        return;
    }
    for (uint32_t j = s.begin; j < s.closed; j++) {
        const whit_kv_packed from = whit_kv_packed_arrays(own->type, head_dim, group->blocks[j / BLOCK]);
        scores[j] = dot_words(own->words + j * head_dim, query, head_dim) * (factor * from.units[WHIT_KV_UNIT_WORD]);
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static void packed_values(const void *context, const whit_kv_group *group, seen s, uint32_t head_dim,
                          const float *weights, float *out)
{
    const whit_kv_type type = ((const packed_group *)context)->type;
    for (uint32_t g = 0; g < whit_kv_value_groups(head_dim); g++) {
        float scaled[GROUP];
        int32_t codes[GROUP], total = 0;
        for (uint32_t j = s.begin; j < s.closed; j++) {
            const whit_kv_packed from = whit_kv_packed_arrays(type, head_dim, group->blocks[j / BLOCK]);
            scaled[j] =
                weights[j] * ((float)from.value_steps[g * BLOCK + j % BLOCK] * from.units[WHIT_KV_UNIT_VALUE_STEP]);
        }
        const uint32_t n = s.closed - s.begin;
        const float unit =
            codes_of(scaled + s.begin, n, whit_amax_bits(scaled + s.begin, n), WHIT_KV_PROB_MAX, codes + s.begin);
        for (uint32_t j = s.begin; j < s.closed; j++) total += codes[j];
        const uint32_t first = g * WHIT_KV_PACKED_GROUP;
        for (uint32_t d = first; d < head_dim && d < first + WHIT_KV_PACKED_GROUP; d++) {
            int32_t sum = 0;
            for (uint32_t j = s.begin; j < s.closed; j++) {
                const whit_kv_packed from = whit_kv_packed_arrays(type, head_dim, group->blocks[j / BLOCK]);
                sum += codes[j] * (int32_t)whit_kv_value_code(from.values, head_dim, j % BLOCK, d);
            }
            out[d] = fmaf((float)(2 * sum - 3 * total), unit, out[d]);
        }
    }
}

/* ---- attend --------------------------------------------------------------------------------- */

static void attend_packed(whit_kv_type type, whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,
                          const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale, float *partials,
                          float *into)
{
    if (!group->closed) {
        whit_kv_attend_f16_generic(group, next, queries, spans, n, head_dim, scale, partials, into);
        return;
    }
    packed_group own;
    own.type = type;
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++)
        if (group->closed >> b & 1 && group->blocks[b] && !whit_kv_multiplies_codes(type, group->rope_pairs))
            words_of(type, group->blocks[b], head_dim, group, own.words + (size_t)b * BLOCK * head_dim);
    const closed_form form = {packed_scores, packed_values, &own};
    attend_closed_group(&form, group, queries, spans, n, head_dim, scale, partials, into);
}

#define ATTEND(lower, upper)                                                                                           \
    void whit_kv_attend_##lower##_generic(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,     \
                                          const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,       \
                                          float *partials, float *into)                                                \
    {                                                                                                                  \
        attend_packed(WHIT_KV_##upper, group, next, queries, spans, n, head_dim, scale, partials, into);               \
    }
ATTEND(k4v2, K4V2)
ATTEND(k2v2, K2V2)
