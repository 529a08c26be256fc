/* SPDX-License-Identifier: MIT
 * Quantises activations to integers. The largest magnitude is found by bit patterns, where infinity is above every
 * number and NaN above infinity. Either of them therefore makes the scale and the logits not finite, so that the error
 * is noticed. A code whose product is NaN is 0. */
#include "kernels/generic/lanes.h"
#include "kernels/kernels.h"
#include "kernels/math.h"

/* A group whose largest magnitude is below this counts as zero, so that 127 / amax does not overflow. */
#define AMAX_MIN 0x1p-100f
/* Lower limit of a token's largest magnitude if it has one scale, as in Hugging Face's code. */
#define TOKEN_AMAX_MIN 1e-5f
/* For a normal distribution the best step d of the levels d and 2 d is about 0.65 sigma, and the mean of |x| is 0.798
 * sigma; this is their rounded quotient. */
#define Q2_STEP_OF_MEAN 0.8125f

static int8_t code_of(float product)
{
    return product != product ? 0 : (int8_t)whit_round_i32(product);
}

/* Returns the scale of n values; a value times *factor, rounded, is its code. */
static float i8_scale(const float *x, uint32_t n, bool per_token, float *factor)
{
    uint32_t bits = whit_amax_bits(x, n);
    if (per_token) {
        if (bits < whit_f32_bits(TOKEN_AMAX_MIN)) bits = whit_f32_bits(TOKEN_AMAX_MIN);
    } else if (bits < whit_f32_bits(AMAX_MIN)) {
        *factor = 0;
        return 0;
    }
    float amax = whit_f32_from_bits(bits);
    *factor = 127.0f / amax;
    return amax / 127.0f;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Quantises a token with the fixed scale s of acts->spec: codes are x / s, clamped and rounded. If a value is not
 * finite, the token's scale becomes NaN. */
static void quantise_fixed(const float *x, const whit_acts *acts, uint32_t token)
{
    int8_t *codes = acts->i8 + token * acts->stride;
    int32_t sum = 0;
    for (uint32_t i = 0; i < acts->n_cols; i++) {
        codes[i] = code_of(whit_clamp_i8(x[i] / acts->spec.scale));
        sum += codes[i];
    }
    acts->scales[token] = whit_amax_bits(x, acts->n_cols) < whit_f32_bits(INFINITY) ? acts->spec.scale : NAN;
    acts->sums[token] = sum;
    memset(codes + acts->n_cols, 0, acts->stride - acts->n_cols);
}

static void quantise_i8(const float *x, const whit_acts *acts, uint32_t token)
{
    uint32_t n = acts->n_cols, group = acts->spec.group ? acts->spec.group : n;
    uint32_t step = acts->spec.step ? acts->spec.step : n;
    int8_t *codes = acts->i8 + token * acts->stride;
    float *scales = acts->scales + (size_t)token * acts->n_steps;
    int32_t *sums = acts->sums + (size_t)token * acts->n_steps;
    for (uint32_t begin = 0; begin < n; begin += group) {
        uint32_t end = min_u32(n, begin + group);
        float factor, scale = i8_scale(x + begin, end - begin, !acts->spec.group, &factor);
        for (uint32_t k = begin; k < end; k += step) {
            int32_t sum = 0;
            for (uint32_t i = k; i < min_u32(end, k + step); i++) {
                codes[i] = code_of(x[i] * factor);
                sum += codes[i];
            }
            *scales++ = scale;
            *sums++ = sum;
        }
    }
    memset(codes + n, 0, acts->stride - n);
}

static float q2_scale(const float *x, uint32_t n)
{
    float lanes[WHIT_LANES] = {0};
    for (uint32_t i = 0; i < n; i++) lanes[i % WHIT_LANES] += fabsf(x[i]);
    return whit_lanes_sum(lanes) / (float)n * Q2_STEP_OF_MEAN;
}

static void quantise_q2(const float *x, const whit_acts *acts, uint32_t token)
{
    uint32_t n = acts->n_cols, group = acts->spec.group, step = acts->spec.step;
    uint8_t *signs = acts->planes + 2 * token * acts->stride, *extras = signs + acts->stride;
    float *scales = acts->scales + (size_t)token * acts->n_steps;
    int32_t *sums = acts->sums + (size_t)token * acts->n_steps;
    memset(signs, 0, 2 * acts->stride);
    for (uint32_t begin = 0; begin < n; begin += group) {
        uint32_t end = min_u32(n, begin + group);
        float scale = q2_scale(x + begin, end - begin), large_from = 1.5f * scale;
        for (uint32_t k = begin; k < end; k += step) {
            int32_t sum = 0;
            for (uint32_t i = k; i < min_u32(end, k + step); i++) {
                unsigned sign = !(whit_f32_bits(x[i]) >> 31), large = fabsf(x[i]) > large_from;
                unsigned extra = large ? sign : !sign; /* equal bits in both planes mean magnitude 2 */
                unsigned byte = i / 32 * 4 + i % 4, bit = i % 32 / 4;
                signs[byte] = (uint8_t)(signs[byte] | sign << bit);
                extras[byte] = (uint8_t)(extras[byte] | extra << bit);
                sum += (int32_t)(1 + large) * (sign ? 1 : -1);
            }
            *scales++ = scale;
            *sums++ = sum;
        }
    }
}

void whit_quantise_generic(const float *x, size_t x_stride, const whit_acts *acts, uint32_t token_begin,
                           uint32_t token_end)
{
    for (uint32_t token = token_begin; token < token_end; token++) {
        if (acts->spec.kind == WHIT_ACTS_I8 && acts->spec.scale != 0)
            quantise_fixed(x + token * x_stride, acts, token);
        else if (acts->spec.kind == WHIT_ACTS_I8)
            quantise_i8(x + token * x_stride, acts, token);
        if (acts->spec.kind == WHIT_ACTS_Q2) quantise_q2(x + token * x_stride, acts, token);
    }
}

void whit_norm_acts_generic(const whit_norm_rows *rows, const whit_acts *acts, uint32_t token_begin, uint32_t token_end)
{
    uint32_t n = acts->n_cols;
    for (uint32_t token = token_begin; token < token_end; token++) {
        const float *a = rows->a + token * rows->a_stride, *b = rows->b + token * rows->b_stride;
        float *x = rows->x + token * rows->x_stride;
        if (rows->source == WHIT_ROW_SILU) {
            whit_silu_mul_generic(a, b, n, x);
        } else if (rows->source == WHIT_ROW_RELU2) {
            whit_relu2_mul_generic(a, b, n, x);
        } else if (rows->source == WHIT_ROW_SUM) {
            for (uint32_t i = 0; i < n; i++) x[i] = a[i] + b[i];
        }
        whit_rms_norm_generic(rows->source == WHIT_ROW_GIVEN ? a : x, rows->weight, n, rows->eps, rows->normed);
        whit_quantise_generic(rows->normed, 0, acts, token, token + 1);
    }
}
