/* SPDX-License-Identifier: MIT */
#include "train/loops.h"

#include <math.h>
#include <string.h>

#define LANES 16
#define INLINE static inline __attribute__((always_inline))

INLINE float lanes_sum(const float lanes[LANES])
{
    float sum[LANES];
    memcpy(sum, lanes, sizeof sum);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) sum[i] += sum[i + width];
    return sum[0];
}

INLINE float dot(const float *a, const float *b, size_t n)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] += a[i + j] * b[i + j];
    for (; i < n; i++) lanes[i % LANES] += a[i] * b[i];
    return lanes_sum(lanes);
}

/* e^x, relative error under 2e-7, 0 below -87; as kernels/math.h but without fused operations, which
 * a baseline machine would have to call for. */
INLINE float exponential(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: rounds to an integer in the low bits */
    float bounded = x > 88.0f ? 88.0f : x < -87.0f ? -87.0f : x;
    float shifted = bounded * 1.44269502f + magic, n = shifted - magic;
    float r = bounded - n * 0.693145752f;
    r -= n * 1.42860677e-6f;
    float p = r * (1.0f / 720) + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)((uint32_t)(bits - 0x4B400000 + 127) << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : p * power;
}

WHIT_TRAIN_CLONES float whit_loop_dot(const float *a, const float *b, size_t n)
{
    return dot(a, b, n);
}

WHIT_TRAIN_CLONES float whit_loop_max(const float *x, size_t n)
{
    float lanes[LANES], best = x[0];
    for (int j = 0; j < LANES; j++) lanes[j] = x[0];
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (; i < n; i++) best = x[i] > best ? x[i] : best;
    for (int j = 0; j < LANES; j++) best = lanes[j] > best ? lanes[j] : best;
    return best;
}

WHIT_TRAIN_CLONES void whit_loop_add(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

WHIT_TRAIN_CLONES void whit_loop_sum(const float *a, const float *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

WHIT_TRAIN_CLONES void whit_loop_scale(float *restrict y, const float *restrict x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = factor * x[i];
}

WHIT_TRAIN_CLONES void whit_loop_add_scaled(float *restrict y, const float *restrict x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += factor * x[i];
}

INLINE float exp_row(const float *x, float max, float scale, float *y, size_t n)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            float e = exponential((x[i + j] - max) * scale);
            y[i + j] = e;
            lanes[j] += e;
        }
    for (; i < n; i++) lanes[i % LANES] += y[i] = exponential((x[i] - max) * scale);
    return lanes_sum(lanes);
}

WHIT_TRAIN_CLONES float whit_loop_exp(const float *x, float max, float *y, size_t n)
{
    return exp_row(x, max, 1.0f, y, n);
}

WHIT_TRAIN_CLONES void whit_loop_softmax(float *x, float scale, size_t n)
{
    float factor = 1.0f / exp_row(x, whit_loop_max(x, n), scale, x, n);
    for (size_t i = 0; i < n; i++) x[i] *= factor;
}

WHIT_TRAIN_CLONES void whit_loop_softmax_gradient(const float *restrict p, float mean, float scale, float *restrict dp,
                                                  size_t n)
{
    for (size_t i = 0; i < n; i++) dp[i] = scale * p[i] * (dp[i] - mean);
}

/* ---- norm, RoPE, gates ---------------------------------------------------------------------- */

WHIT_TRAIN_CLONES float whit_loop_norm(const float *restrict x, const float *restrict weight, float eps,
                                       float *restrict y, size_t n)
{
    float r = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++) y[i] = weight[i] * (x[i] * r);
    return r;
}

WHIT_TRAIN_CLONES void whit_loop_norm_gradient(const float *restrict x, const float *restrict weight, float eps,
                                               const float *restrict dy, bool fresh, float *restrict dx,
                                               float *restrict dweight, size_t n)
{
    float r = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps), lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] += dy[i + j] * weight[i + j] * x[i + j];
    for (; i < n; i++) lanes[i % LANES] += dy[i] * weight[i] * x[i];
    float back = lanes_sum(lanes) * r * r * r / (float)n;
    if (fresh)
        for (i = 0; i < n; i++) dx[i] = dy[i] * weight[i] * r - x[i] * back;
    else
        for (i = 0; i < n; i++) dx[i] += dy[i] * weight[i] * r - x[i] * back;
    if (dweight)
        for (i = 0; i < n; i++) dweight[i] += dy[i] * x[i] * r;
}

WHIT_TRAIN_CLONES void whit_loop_rope(const float *restrict x, const float *restrict table, float turn, bool fresh,
                                      float *restrict y, size_t n_pairs, size_t n)
{
    const float *cosine = table, *sine = table + n_pairs;
    for (size_t i = 0; i < n_pairs; i++) {
        float a = x[i], b = x[i + n_pairs], s = turn * sine[i];
        float first = a * cosine[i] - b * s, second = b * cosine[i] + a * s;
        y[i] = (fresh ? 0.0f : y[i]) + first;
        y[i + n_pairs] = (fresh ? 0.0f : y[i + n_pairs]) + second;
    }
    for (size_t i = 2 * n_pairs; i < n; i++) y[i] = (fresh ? 0.0f : y[i]) + x[i];
}

WHIT_TRAIN_CLONES void whit_loop_silu(const float *restrict gate, const float *restrict up, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
}

WHIT_TRAIN_CLONES void whit_loop_silu_gradient(const float *restrict gate, const float *restrict up,
                                               const float *restrict dy, float *restrict dgate, bool fresh_gate,
                                               float *restrict dup, bool fresh_up, size_t n)
{
    if (fresh_gate) memset(dgate, 0, n * sizeof *dgate);
    if (fresh_up) memset(dup, 0, n * sizeof *dup);
    for (size_t i = 0; i < n; i++) {
        float sigmoid = 1.0f / (1.0f + exponential(-gate[i])), silu = gate[i] * sigmoid;
        dgate[i] += dy[i] * up[i] * (sigmoid + silu * (1.0f - sigmoid));
        dup[i] += dy[i] * silu;
    }
}

WHIT_TRAIN_CLONES void whit_loop_relu2(const float *restrict gate, const float *restrict up, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float positive = gate[i] > 0 ? gate[i] : 0;
        y[i] = positive * positive * up[i];
    }
}

WHIT_TRAIN_CLONES void whit_loop_relu2_gradient(const float *restrict gate, const float *restrict up,
                                                const float *restrict dy, float *restrict dgate, bool fresh_gate,
                                                float *restrict dup, bool fresh_up, size_t n)
{
    if (fresh_gate) memset(dgate, 0, n * sizeof *dgate);
    if (fresh_up) memset(dup, 0, n * sizeof *dup);
    for (size_t i = 0; i < n; i++) {
        float positive = gate[i] > 0 ? gate[i] : 0;
        dgate[i] += dy[i] * up[i] * 2.0f * positive;
        dup[i] += dy[i] * positive * positive;
    }
}

INLINE float exp_sum(const float *x, float max, size_t n)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] += exponential(x[i + j] - max);
    for (; i < n; i++) lanes[i % LANES] += exponential(x[i] - max);
    return lanes_sum(lanes);
}

/* ---- losses --------------------------------------------------------------------------------- */

/* With q = e / sum: KL(p || q) = sum p (log p - log q), and both gradients are differences of
 * probabilities. The teacher's exponentials are computed twice rather than stored. */
WHIT_TRAIN_CLONES void whit_loop_logit_loss(float *restrict logits, const float *restrict teacher, int64_t target,
                                            float ce, float kl, size_t n, double *ce_nats, double *kl_nats)
{
    float max = whit_loop_max(logits, n), teacher_max = 0, teacher_sum = 1, lanes[LANES] = {0};
    float lse = 0, teacher_lse = 0;
    *kl_nats = *ce_nats = 0;
    float sum = exp_sum(logits, max, n);
    lse = logf(sum);
    if (teacher) {
        teacher_max = whit_loop_max(teacher, n);
        teacher_sum = exp_sum(teacher, teacher_max, n);
        teacher_lse = logf(teacher_sum);
    }
    if (target >= 0) *ce_nats = lse - (logits[target] - max);
    float factor = 1.0f / sum, teacher_factor = 1.0f / teacher_sum;
    if (teacher) {
        size_t i = 0;
        float difference = teacher_max - max + teacher_lse - lse; /* log p - log q = t - l - difference */
        for (; i + LANES <= n; i += LANES)
            for (int j = 0; j < LANES; j++) {
                float p = exponential(teacher[i + j] - teacher_max) * teacher_factor;
                float q = exponential(logits[i + j] - max) * factor;
                lanes[j] += p * (teacher[i + j] - logits[i + j] - difference);
                logits[i + j] = (ce + kl) * q - kl * p;
            }
        for (; i < n; i++) {
            float p = exponential(teacher[i] - teacher_max) * teacher_factor;
            float q = exponential(logits[i] - max) * factor;
            lanes[i % LANES] += p * (teacher[i] - logits[i] - difference);
            logits[i] = (ce + kl) * q - kl * p;
        }
        *kl_nats = lanes_sum(lanes);
    } else {
        for (size_t i = 0; i < n; i++) logits[i] = ce * (exponential(logits[i] - max) * factor);
    }
    if (target >= 0) logits[target] -= ce;
}

WHIT_TRAIN_CLONES void whit_loop_adamw(const whit_adamw_row *a, float *restrict x, const float *restrict gradient,
                                       float *restrict moment1, float *restrict moment2, size_t n)
{
    const whit_adamw_row r = *a;
    float correction = 1.0f / sqrtf(r.bias2);
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] * r.gradient_scale;
        float m = r.beta1 * moment1[i] + (1.0f - r.beta1) * g, v = r.beta2 * moment2[i] + (1.0f - r.beta2) * g * g;
        moment1[i] = m;
        moment2[i] = v;
        x[i] -= r.decay * x[i] + r.step_size * m / (sqrtf(v) * correction + r.epsilon);
    }
}
