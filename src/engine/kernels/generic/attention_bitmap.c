/* SPDX-License-Identifier: MIT
 * Specifies attention over groups whose first blocks are bitmaps (kernels/kv_bitmap.h); a group without closed blocks
 * is computed as in attention.c for f16. Sinks and open positions are as in attention_packed.c. For each query and
 * group, with the arrays of the position's block:
 *
 *   c_d       y_d = code d of the query * key_steps d; most = the largest |y_d|; c_d = y_d * (127 / most), rounded;
 *             scale_b = most / 127
 *   score j   closed: fma(int32 sum over d of c_d * trit_dj, scale_b * (units[0] * (scale_q * scale)), base), where
 *             base = (int32 sum over d of code d of the query * middles d) * (units[1] * (scale_q * scale))
 *   out_d     w_j = p_j * (value_steps of j and the group of d * units[2]); most = the largest w_j over the closed
 *             positions; u_j = w_j * (255 / most), rounded; unit = most / 255;
 *             fma(int32 sum over the closed positions of u_j * trit_jd, unit, out_d) */
#include "kernels/generic/attention_closed.h"
#include "kernels/kv_bitmap.h"

#define PACK_HALVES(from, n, to)                                                                                       \
    for (uint32_t i_half = 0; i_half < (uint32_t)(n); i_half++) (to)[i_half] = whit_f32_from_f16((from)[i_half])
#include "kernels/kv_pack_bitmap.inc"

void whit_kv_pack_bitmap_generic(const void *open, uint32_t head_dim, const whit_kv_packing *how, void *closed,
                                 void *sinks)
{
    (void)how;
    pack_bitmap(open, head_dim, closed, sinks);
}

/* Returns the trit (-1, 0 or 1) of bit `bit`: word[0] has the active bits, word[stride] the positive bits. */
static int32_t trit_of(const uint32_t *word, uint32_t stride, uint32_t bit)
{
    const int32_t is_active = word[0] >> bit & 1, is_positive = word[stride] >> bit & 1;
    return is_active * (2 * is_positive - 1);
}

static void bitmap_scores(const void *context, const whit_kv_group *group, seen s, const uint8_t *query,
                          uint32_t head_dim, float factor, float *scores)
{
    (void)context;
    const int16_t *codes = (const int16_t *)(const void *)query;
    for (uint32_t j = s.begin, end; j < s.closed; j = end) {
        const whit_kv_bitmap from = whit_kv_bitmap_arrays(head_dim, group->blocks[j / BLOCK]);
        float stepped[WHIT_KV_MAX_HEAD_DIM];
        int32_t own[WHIT_KV_MAX_HEAD_DIM], middle = 0;
        for (uint32_t d = 0; d < head_dim; d++) {
            stepped[d] = (float)(codes[d] * (int32_t)from.key_steps[d]);
            middle += codes[d] * from.middles[d];
        }
        const float scale = codes_of(stepped, head_dim, whit_amax_bits(stepped, head_dim), 127, own);
        const float worth = scale * (from.units[WHIT_KV_BITMAP_KEY_STEP] * factor),
                    base = (float)middle * (from.units[WHIT_KV_BITMAP_MIDDLE] * factor);
        end = (j / BLOCK + 1) * BLOCK < s.closed ? (j / BLOCK + 1) * BLOCK : s.closed;
        for (; j < end; j++) {
            int32_t sum = 0;
            for (uint32_t d = 0; d < head_dim; d++)
                sum += own[d] *
                    trit_of(from.keys + whit_kv_bitmap_key_word(j % BLOCK, d), WHIT_KV_BITMAP_KEY_STRIDE,
                            d % WHIT_KV_BITMAP_WORD);
            scores[j] = fmaf((float)sum, worth, base);
        }
    }
}

static void bitmap_values(const void *context, const whit_kv_group *group, seen s, uint32_t head_dim,
                          const float *weights, float *out)
{
    (void)context;
    for (uint32_t g = 0; g < whit_kv_value_groups(head_dim); g++) {
        float scaled[GROUP];
        int32_t codes[GROUP];
        for (uint32_t j = s.begin; j < s.closed; j++) {
            const whit_kv_bitmap from = whit_kv_bitmap_arrays(head_dim, group->blocks[j / BLOCK]);
            scaled[j] =
                weights[j] * ((float)from.value_steps[g * BLOCK + j % BLOCK] * from.units[WHIT_KV_BITMAP_VALUE_STEP]);
        }
        const uint32_t n = s.closed - s.begin, first = g * WHIT_KV_PACKED_GROUP;
        const float unit = codes_of(scaled + s.begin, n, whit_amax_bits(scaled + s.begin, n), 255, codes + s.begin);
        for (uint32_t d = first; d < head_dim && d < first + WHIT_KV_PACKED_GROUP; d++) {
            int32_t sum = 0;
            for (uint32_t j = s.begin; j < s.closed; j++) {
                const whit_kv_bitmap from = whit_kv_bitmap_arrays(head_dim, group->blocks[j / BLOCK]);
                sum += codes[j] *
                    trit_of(from.values + whit_kv_bitmap_value_word(j % BLOCK, d), WHIT_KV_BITMAP_VALUE_STRIDE,
                            j % WHIT_KV_BITMAP_WORD);
            }
            out[d] = fmaf((float)sum, unit, out[d]);
        }
    }
}

void whit_kv_attend_bitmap_generic(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,
                                   const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,
                                   float *partials, float *into)
{
    static const closed_form form = {bitmap_scores, bitmap_values, NULL};
    if (group->closed)
        attend_closed_group(&form, group, queries, spans, n, head_dim, scale, partials, into);
    else
        whit_kv_attend_f16_generic(group, next, queries, spans, n, head_dim, scale, partials, into);
}
