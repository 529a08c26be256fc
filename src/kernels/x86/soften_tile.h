/* SPDX-License-Identifier: MIT
 * The softmax of sixteen queries over a block, all of them together: what one query would add up
 * over its lanes is added up for sixteen at once, in the same order (docs/numerics.md). Needs
 * wide/elementary.inc and wide/soften.inc.
 * compile with: -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vnni -mfma -mf16c
 */
#ifndef WHIT_KERNELS_X86_SOFTEN_TILE_H
#define WHIT_KERNELS_X86_SOFTEN_TILE_H

enum { TILE_QUERIES = 16 };

/* Scores (16, BLOCK) become weights, then integers of them; the rest per query. */
typedef struct softened {
    _Alignas(64) float scores[TILE_QUERIES][BLOCK];
    int8_t high[TILE_QUERIES][BLOCK], low[TILE_QUERIES][BLOCK]; /* digits of the integers */
    float max[TILE_QUERIES], sum[TILE_QUERIES];                 /* of the exponentials */
    float unit[TILE_QUERIES];                                   /* turns sums of products back */
    float factor[TILE_QUERIES];                                 /* turns weights into integers */
    int32_t total[TILE_QUERIES]; /* of the integers, where it is wanted */
} softened;

/* Lane i of the result is what `op` makes of the lanes of v[i]: of lanes 8 apart, then 4, 2, 1. */
#define REDUCE_TILE(name, type, op, to_ps, from_ps)                                                \
    INLINE type name(const type v[TILE_QUERIES])                                                   \
    {                                                                                              \
        __m512 four[4], two[2];                                                                    \
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                        \
        {                                                                                          \
            __m512 half[2];                                                                        \
            _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++)                                    \
            {                                                                                      \
                const __m512 a = to_ps(v[i + 8 * j]), b = to_ps(v[i + 8 * j + 4]);                 \
                half[j] = to_ps(op(from_ps(_mm512_shuffle_f32x4(a, b, 0x44)),                      \
                                   from_ps(_mm512_shuffle_f32x4(a, b, 0xEE))));                    \
            }                                                                                      \
            four[i] = to_ps(op(from_ps(_mm512_shuffle_f32x4(half[0], half[1], 0x88)),              \
                               from_ps(_mm512_shuffle_f32x4(half[0], half[1], 0xDD))));            \
        }                                                                                          \
        _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++)                                        \
        {                                                                                          \
            const __m512d a = _mm512_castps_pd(four[2 * i]),                                       \
                          b = _mm512_castps_pd(four[2 * i + 1]);                                   \
            two[i] = to_ps(op(from_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b))),                 \
                              from_ps(_mm512_castpd_ps(_mm512_unpackhi_pd(a, b)))));               \
        }                                                                                          \
        return op(from_ps(_mm512_shuffle_ps(two[0], two[1], 0x88)),                                \
                  from_ps(_mm512_shuffle_ps(two[0], two[1], 0xDD)));                               \
    }
#define SAME(v) (v)
REDUCE_TILE(tile_sums_of, __m512, _mm512_add_ps, SAME, SAME)
REDUCE_TILE(tile_largest_of, __m512, _mm512_max_ps, SAME, SAME)
REDUCE_TILE(tile_largest_bits_of, __m512i, _mm512_max_epi32, _mm512_castsi512_ps,
            _mm512_castps_si512)
REDUCE_TILE(tile_totals_of, __m512i, _mm512_add_epi32, _mm512_castsi512_ps, _mm512_castps_si512)

/* in_span for any row of the tile: those behind the last query see all. */
INLINE vf in_tile_span(const pass *t, uint32_t q, int v, vf inside, vf outside)
{
    return q < t->n ? in_span(t, q, v, inside, outside) : inside;
}

/* What whit_kv_code_scale gives, of sixteen. */
INLINE void code_scales(vi largest, float *units, float *factors)
{
    const vf amax = vf_from_bits(largest), max = vf_set(WHIT_KV_WEIGHT_MAX);
    const __mmask16 counts = _mm512_cmp_ps_mask(amax, vf_set(0x1p-100f), _CMP_NLT_UQ);
    const __mmask16 endless = _mm512_cmpge_epi32_mask(largest, vi_set(0x7F800000));
    vf unit = _mm512_maskz_mov_ps(counts, vf_div(amax, max));
    vf_store(units, _mm512_mask_mov_ps(unit, endless, vf_set(NAN)));
    vf_store(factors, _mm512_maskz_mov_ps(counts, vf_div(max, amax)));
}

/* wants_total: of each query's integers. */
INLINE void soften_tile(const pass *t, const bool whole, const bool wants_total, softened *s)
{
    vf rows[TILE_QUERIES];
    vi largest[TILE_QUERIES];
    for (int r = 0; r < TILE_QUERIES; r++) {
        vf best = vf_set(-INFINITY);
#pragma GCC unroll 4
        for (int v = 0; v < BLOCK / 16; v++) {
            vf score = vf_load(&s->scores[r][16 * v]);
            best = vf_max(whole ? score : in_tile_span(t, (uint32_t)r, v, score, vf_set(-INFINITY)),
                          best);
        }
        rows[r] = best;
    }
    vf_store(s->max, tile_largest_of(rows));
    for (int r = 0; r < TILE_QUERIES; r++) {
        const vf max = vf_set(s->max[r]);
        vf lanes = vf_zero();
        vi most = vi_zero();
#pragma GCC unroll 4
        for (int v = 0; v < BLOCK / 16; v++) {
            vf e = vf_exp(vf_sub(vf_load(&s->scores[r][16 * v]), max));
            if (!whole) e = in_tile_span(t, (uint32_t)r, v, e, vf_zero());
            lanes = vf_add(lanes, e);
            e = vf_mul(e, vf_load(t->kv.value_scales + 16 * v));
            if (!whole) e = in_tile_span(t, (uint32_t)r, v, e, vf_zero());
            most = vi_max(most, vi_from_bits(vf_abs(e)));
            vf_store(&s->scores[r][16 * v], e);
        }
        rows[r] = lanes;
        largest[r] = most;
    }
    vf_store(s->max, vf_add(vf_load(s->max), vf_zero())); /* -0 becomes +0 */
    vf_store(s->sum, tile_sums_of(rows));
    code_scales(tile_largest_bits_of(largest), s->unit, s->factor);
    for (int r = 0; r < TILE_QUERIES; r++) {
        const vf factor = vf_set(s->factor[r]);
        vi codes[BLOCK / 16];
#pragma GCC unroll 4
        for (int v = 0; v < BLOCK / 16; v++)
            codes[v] = vi_round_finite(vf_mul(vf_load(&s->scores[r][16 * v]), factor));
        vi_store_64_digits(s->high[r], s->low[r], codes);
        if (wants_total)
            largest[r] = vi_add(vi_add(codes[0], codes[1]), vi_add(codes[2], codes[3]));
    }
    if (wants_total) vi_store(s->total, tile_totals_of(largest));
}

#endif
