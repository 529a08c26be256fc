/* SPDX-License-Identifier: MIT
 * Specifies norms, rotations, gates and searches on vectors. */
#include "kernels/hadamard.h"
#include "kernels/generic/lanes.h"
#include "kernels/kernels.h"
#include "kernels/math.h"

void whit_rms_norm_generic(const float *x, const float *weight, uint32_t n, float eps, float *out)
{
    float lanes[WHIT_LANES] = {0};
    for (uint32_t i = 0; i < n; i++) lanes[i % WHIT_LANES] = fmaf(x[i], x[i], lanes[i % WHIT_LANES]);
    float inverse = 1.0f / sqrtf(whit_lanes_sum(lanes) / (float)n + eps);
    for (uint32_t i = 0; i < n; i++) out[i] = weight ? weight[i] * (x[i] * inverse) : x[i] * inverse;
}

void whit_layer_norm_generic(const float *x, const float *weight, const float *bias, uint32_t n, float eps, float *out)
{
    float sums[WHIT_LANES] = {0}, squares[WHIT_LANES] = {0};
    for (uint32_t i = 0; i < n; i++) sums[i % WHIT_LANES] += x[i];
    const float mean = whit_lanes_sum(sums) / (float)n;
    for (uint32_t i = 0; i < n; i++) squares[i % WHIT_LANES] = fmaf(x[i] - mean, x[i] - mean, squares[i % WHIT_LANES]);
    const float inverse = 1.0f / sqrtf(whit_lanes_sum(squares) / (float)n + eps);
    for (uint32_t i = 0; i < n; i++) out[i] = weight[i] * ((x[i] - mean) * inverse) + bias[i];
}

static float gelu_tanh(float x)
{
    float cubic = fmaf(x * x * x, 0.044715f, x);
    return 0.5f * x * (1.0f + whit_tanh_f32(cubic * 0.7978845608028654f)); /* the factor is sqrt(2 / pi) */
}

void whit_activate_generic(const float *x, uint32_t n, whit_activation kind, float *out)
{
    for (uint32_t i = 0; i < n; i++) switch (kind) {
        case WHIT_ACTIVATE_GELU: out[i] = whit_gelu_f32(x[i]); break;
        case WHIT_ACTIVATE_TANH: out[i] = whit_tanh_f32(x[i]); break;
        case WHIT_ACTIVATE_RELU: out[i] = x[i] < 0 ? 0 : x[i]; break;
        case WHIT_ACTIVATE_GELU_TANH: out[i] = gelu_tanh(x[i]); break;
        }
}

static void rotate(float a, float b, float cosine, float sine, float *out_a, float *out_b)
{
    *out_a = fmaf(a, cosine, -(b * sine));
    *out_b = fmaf(b, cosine, a * sine);
}

/* Copies the elements of a head after the rotated ones. */
static void copy_rest(const float *x, uint32_t head_dim, uint32_t n_pairs, float *out)
{
    for (uint32_t i = 2 * n_pairs; i < head_dim; i++) out[i] = x[i];
}

void whit_rope_half_generic(const float *x, uint32_t n_heads, uint32_t head_dim, uint32_t n_pairs, const float *table,
                            float *out)
{
    for (uint32_t head = 0; head < n_heads; head++, x += head_dim, out += head_dim) {
        for (uint32_t i = 0; i < n_pairs; i++)
            rotate(x[i], x[i + n_pairs], table[i], table[n_pairs + i], &out[i], &out[i + n_pairs]);
        copy_rest(x, head_dim, n_pairs, out);
    }
}

void whit_rope_pairs_generic(const float *x, uint32_t n_heads, uint32_t head_dim, uint32_t n_pairs, const float *table,
                             float *out)
{
    for (uint32_t head = 0; head < n_heads; head++, x += head_dim, out += head_dim) {
        for (uint32_t i = 0; i < n_pairs; i++)
            rotate(x[2 * i], x[2 * i + 1], table[i], table[n_pairs + i], &out[2 * i], &out[2 * i + 1]);
        copy_rest(x, head_dim, n_pairs, out);
    }
}

void whit_silu_mul_generic(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = gate[i] / (1.0f + whit_exp_f32(-gate[i])) * up[i];
}

void whit_relu2_mul_generic(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) {
        float positive = gate[i] < 0 ? 0 : gate[i]; /* NaN stays NaN */
        out[i] = positive * positive * up[i];
    }
}

void whit_gelu_mul_generic(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = gate[i], cubic = fmaf(x * x * x, 0.044715f, x);
        float t = whit_tanh_f32(cubic * 0.7978845608028654f); /* the factor is sqrt(2 / pi) */
        out[i] = 0.5f * x * (1.0f + t) * up[i];
    }
}

void whit_sigmoid_mul_generic(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = 1.0f / (1.0f + whit_exp_f32(-gate[i])) * up[i];
}

void whit_product_generic(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = gate[i] * up[i];
}

void whit_swish1_mul_generic(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = gate[i] / (1.0f + whit_exp_f32(-(1.702f * gate[i]))) * (up[i] + 1.0f);
}

void whit_add_generic(float *x, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) x[i] += y[i];
}

void whit_weighted_add_generic(float *x, const float *y, float factor, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) x[i] = fmaf(factor, y[i], x[i]);
}

void whit_scale_generic(float *x, float factor, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) x[i] *= factor;
}

void whit_softcap_generic(float *x, float cap, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) x[i] = cap * whit_tanh_f32(x[i] / cap);
}

void whit_fix_scale_generic(float *x, float scale, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) x[i] = (whit_clamp_i8(x[i] / scale) + WHIT_ROUND_MAGIC - WHIT_ROUND_MAGIC) * scale;
}

uint32_t whit_argmax_generic(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

bool whit_all_finite_generic(const float *x, uint32_t n)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t magnitude = whit_f32_bits(x[i]) & 0x7FFFFFFF;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest < 0x7F800000;
}

void whit_hadamard_row_generic(const float *x, const float *signs, uint32_t n, uint32_t block, bool is_back, float *out)
{
    whit_hadamard_row(x, signs, n, block, is_back, out);
}
