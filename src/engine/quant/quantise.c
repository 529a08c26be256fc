/* SPDX-License-Identifier: MIT */
#include "quant/quantise.h"

#include "base/half.h"
#include "kernels/levels.h"
#include "linalg/loops.h"

#include <math.h>

#define FIT_ROUNDS 12
/* the smallest positive f16; scale a is at least this (not in l2), because a scale of 0 would stay 0 */
#define TINIEST 6e-8f
/* number of weights that are summed in single precision before the sums are added in double; a group may be a whole
 * tensor */
#define PIECE 4096

bool whit_quantise_knows(const whit_tensor_type *type)
{
    bool coded = type->codec == WHIT_CODEC_I8 || type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5 ||
        type->codec == WHIT_CODEC_B1 || type->codec == WHIT_CODEC_Q2;
    return type->codec == WHIT_CODEC_L2 || (coded && !type->has_offset && !whit_scale_in_bytes(type->scale_type));
}

static bool has_four_levels(const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_Q2 || type->codec == WHIT_CODEC_L2;
}

uint32_t whit_quantise_fields(const whit_tensor_type *type)
{
    return has_four_levels(type) ? 2 : 1;
}

static float stored_scale(const whit_tensor_type *type, float scale)
{
    return type->scale_type == WHIT_SCALE_F16 ? whit_f32_from_f16(whit_f16_from_f32(scale)) : scale;
}

void whit_quantise_stored(const whit_tensor_type *type, const float *fields, float stored[2])
{
    if (type->codec == WHIT_CODEC_L2) {
        whit_level_pair(whit_level_of_pair(fields), stored);
        return;
    }
    stored[0] = stored_scale(type, fmaxf(fields[0], TINIEST));
    stored[1] = type->codec == WHIT_CODEC_Q2 ? stored_scale(type, fields[1]) : 0;
}

void whit_quantise_put(const whit_tensor_type *type, const float stored[2], size_t index, const whit_rows *rows)
{
    if (type->codec == WHIT_CODEC_L2) {
        unsigned u = whit_level_of_pair(stored);
        rows->fields_u8[2 * index] = (uint8_t)u;
        rows->fields_u8[2 * index + 1] = (uint8_t)(u >> 8);
        return;
    }
    uint32_t n = whit_quantise_fields(type);
    for (uint32_t f = 0; f < n; f++) rows->fields[index * n + f] = stored[f];
}

static size_t piece_at(size_t i, size_t n)
{
    return n - i < PIECE ? n - i : PIECE;
}

static void split_levels(const whit_loops *loops, const float *w, size_t n, float threshold, float *above, float *below,
                         float *count)
{
    double sums[3] = {0};
    for (size_t i = 0; i < n; i += PIECE) {
        loops->split(w + i, piece_at(i, n), threshold, above, below, count);
        sums[0] += (double)*above, sums[1] += (double)*below, sums[2] += (double)*count;
    }
    *above = (float)sums[0], *below = (float)sums[1], *count = (float)sums[2];
}

static void fit_i8(const float *w, size_t n, float *fields)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(w[i]));
    fields[0] = largest / 127.0f;
}

void whit_quantise_refit(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n, float *fields)
{
    float above, below, count;
    switch (type->codec) {
    case WHIT_CODEC_I8: fit_i8(w, n, fields); return;
    case WHIT_CODEC_B1:
        split_levels(loops, w, n, -1.0f, &above, &below, &count);
        fields[0] = above / (float)n;
        return;
    case WHIT_CODEC_L2:
    case WHIT_CODEC_Q2: /* the magnitudes of the levels are a - b and a + b; a is the border between them */
        split_levels(loops, w, n, fields[0], &above, &below, &count);
        float high = count > 0 ? above / count : fields[0];
        float low = count < (float)n ? below / ((float)n - count) : fields[0];
        fields[0] = 0.5f * (high + low);
        fields[1] = 0.5f * (high - low);
        return;
    default:
        split_levels(loops, w, n, 0.5f * fields[0], &above, &below, &count);
        if (count > 0) fields[0] = above / count;
    }
}

void whit_quantise_fit(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n, float *fields)
{
    float above, below, count;
    split_levels(loops, w, n, -1.0f, &above, &below, &count);
    fields[0] = above / (float)n * (has_four_levels(type) ? 1.2f : 1.5f);
    if (has_four_levels(type)) fields[1] = 0.5f * fields[0];
    for (int round = 0; round < FIT_ROUNDS; round++) whit_quantise_refit(loops, type, w, n, fields);
}

/* ---- values, codes, gradients --------------------------------------------------------------- */

void whit_quantise_values(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n,
                          const float stored[2], float share, float *out)
{
    switch (type->codec) {
    case WHIT_CODEC_I8: loops->round_i8(w, n, stored[0], share, out); break;
    case WHIT_CODEC_B1: loops->round_signs(w, n, stored[0], share, out); break;
    case WHIT_CODEC_L2:
    case WHIT_CODEC_Q2: loops->round_four(w, n, stored[0], stored[1], share, out); break;
    default: loops->round_ternary(w, n, stored[0], share, out);
    }
}

void whit_quantise_codes(const whit_tensor_type *type, const float *w, size_t n, const float stored[2], int8_t *codes)
{
    float a = stored[0];
    for (size_t i = 0; i < n; i++) {
        bool negative = w[i]<0, large = fabsf(w[i])> a;
        switch (type->codec) {
        case WHIT_CODEC_I8: codes[i] = (int8_t)whit_loop_i8_code(w[i], a); break;
        case WHIT_CODEC_B1: codes[i] = negative ? -1 : 1; break;
        case WHIT_CODEC_L2:
        case WHIT_CODEC_Q2: /* bit 0: the sign s; bit 1: the sign e, which equals s if the level is the larger one */
            codes[i] = (int8_t)((negative ? 0 : 1) | (negative != large ? 2 : 0));
            break;
        default: codes[i] = (int8_t)((w[i] > 0.5f * a) - (w[i] < -0.5f * a));
        }
    }
}

void whit_quantise_scale_gradient(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n,
                                  const float stored[2], const float *dvalues, float *dfields)
{
    bool ternary = type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5;
    float first, second;
    double sums[2] = {0};
    for (size_t i = 0; i < n; i += PIECE) {
        loops->scale_sums(w + i, dvalues + i, piece_at(i, n), ternary ? 0.5f * stored[0] : -1.0f, stored[0], &first,
                          &second);
        sums[0] += (double)first, sums[1] += (double)second;
    }
    dfields[0] += (float)sums[0];
    if (has_four_levels(type)) dfields[1] += (float)sums[1];
}
