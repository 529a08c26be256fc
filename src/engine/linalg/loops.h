/* SPDX-License-Identifier: MIT
 * Declares inner loops of training and compression on bare rows, as a table that is chosen for the machine when a run
 * opens.
 *
 * The loops are plain C that the compiler vectorises, built once per ISA level (loops.inc). They use no fused
 * multiply-adds and sum in sixteen lanes, so every level gives the same bits. Training does not require that, unlike
 * inference. The loops have no state and may be called by any thread. */
#ifndef WHIT_LINALG_LOOPS_H
#define WHIT_LINALG_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds the constants of one step of AdamW (Loshchilov, Hutter 2019, algorithm 2): `step_size` includes the correction
 * of the first moment, `bias2` is 1 - beta2^t. */
typedef struct whit_adamw_row {
    float beta1, beta2, epsilon, step_size, bias2, decay, gradient_scale;
} whit_adamw_row;

typedef struct whit_loops {
    float (*dot)(const float *a, const float *b, size_t n);
    float (*max)(const float *x, size_t n);                               /* returns the largest element; n > 0 */
    void (*add)(float *y, const float *x, size_t n);                      /* y += x */
    void (*sum)(const float *a, const float *b, float *y, size_t n);      /* y = a + b */
    void (*scale)(float *y, const float *x, float factor, size_t n);      /* y = factor x */
    void (*add_scaled)(float *y, const float *x, float factor, size_t n); /* y += factor x */
    void (*softmax)(float *x, float scale, size_t n);                     /* x = softmax(scale * x) */
    /* Computes y, the floats that x has after rounding to int8 with the scale max(|x|, 1e-5) / 127, as W1.58A8 rounds
     * activations. */
    void (*round_row)(const float *x, float *y, size_t n);
    /* Computes the gradient of a softmax p with respect to its input, in place: dp = scale * p * (dp - mean), where
     * mean is the sum of p * dp. */
    void (*softmax_gradient)(const float *p, float mean, float scale, float *dp, size_t n);

    /* Computes y = weight * x * r with r = 1 / sqrt(mean(x^2) + eps). */
    void (*norm)(const float *x, const float *weight, float eps, float *y, size_t n);
    /* Computes the gradients of norm. dx is overwritten if `overwrites`, else added to; the gradient of the weight is
     * added to dweight, unless dweight is NULL. */
    void (*norm_gradient)(const float *x, const float *weight, float eps, const float *dy, bool overwrites, float *dx,
                          float *dweight, size_t n);
    /* Rotates pairs (i, i + n_pairs) by the angles of `table`, which holds n_pairs cosines, then n_pairs sines. `turn`
     * is 1 or, for the gradient, -1. Elements from 2 n_pairs on are copied. The result is added to y unless
     * `overwrites`. */
    void (*rope)(const float *x, const float *table, float turn, bool overwrites, float *y, size_t n_pairs, size_t n);
    /* Compute y = silu(gate) * up, y = max(gate, 0)^2 * up, and the gradients of both. A gradient is added to its
     * output unless that output's `overwrites` flag is set. */
    void (*silu)(const float *gate, const float *up, float *y, size_t n);
    void (*silu_gradient)(const float *gate, const float *up, const float *dy, float *dgate, bool overwrites_gate,
                          float *dup, bool overwrites_up, size_t n);
    void (*relu2)(const float *gate, const float *up, float *y, size_t n);
    void (*relu2_gradient)(const float *gate, const float *up, const float *dy, float *dgate, bool overwrites_gate,
                           float *dup, bool overwrites_up, size_t n);

    /* Computes the gradient of a loss over logits, in place: ce * (q - onehot(target)) + kl * (q - p), where q is the
     * softmax of `logits` and p the softmax of `teacher`. teacher NULL: the second term is left out. target < 0: onehot
     * is all zeros, and *ce_nats is 0. Returns the cross-entropy and the KL divergence in nats. */
    void (*logit_loss)(float *logits, const float *teacher, int32_t target, float ce, float kl, size_t n,
                       double *ce_nats, double *kl_nats);
    void (*adamw)(const whit_adamw_row *a, float *x, const float *gradient, float *moment1, float *moment2, size_t n);

    /* Splits magnitudes at a threshold: computes the sum of those above it, the sum of the others, and the number of
     * those above it. */
    void (*split)(const float *w, size_t n, float threshold, float *above, float *below, float *count);
    /* Compute out = w + share * (rounded - w), where `rounded` is w rounded to the levels of a codec
     * (quant/quantise.h). */
    void (*round_ternary)(const float *w, size_t n, float a, float share, float *out);
    void (*round_signs)(const float *w, size_t n, float a, float share, float *out);
    void (*round_four)(const float *w, size_t n, float a, float b, float share, float *out);
    void (*round_i8)(const float *w, size_t n, float a, float share, float *out);
    /* With d = dvalues times the sign of w, computes two sums of gradients: `first` is the sum of d where |w| > dead;
     * `second` is the sum of d where |w| > border, minus the sum of d elsewhere. */
    void (*scale_sums)(const float *w, const float *dvalues, size_t n, float dead, float border, float *first,
                       float *second);
} whit_loops;

extern const whit_loops whit_loops_generic, whit_loops_avx2, whit_loops_avx512;

/* Returns the widest table that this machine and the cap (level.h) allow; never NULL. */
const whit_loops *whit_loops_find(void);

/* Returns the code of w in an i8 row with scale a: w / a, rounded half to even and clamped to [-127, 127]. */
static inline float whit_loop_i8_code(float w, float a)
{
    const float magic = 12582912.0f; /* adding and subtracting 1.5 * 2^23 rounds to an integer */
    float code = (w / a + magic) - magic;
    if (code > 127.0f) return 127.0f;
    if (code < -127.0f) return -127.0f;
    return code;
}

#endif
