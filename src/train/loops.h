/* SPDX-License-Identifier: MIT
 * Inner loops of training on bare rows. Unlike the kernels of inference they need not give the same
 * bits on every machine, so they are plain loops that the compiler vectorises, cloned for wider
 * registers where the compiler can choose between clones when the program starts. Sums run in
 * sixteen lanes, so that they vectorise without reordering. No state, any thread. */
#ifndef WHIT_TRAIN_LOOPS_H
#define WHIT_TRAIN_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sanitizers start after the clones are chosen, so they get one clone only. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WHIT_TRAIN_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WHIT_TRAIN_CLONES
#endif

float whit_loop_dot(const float *a, const float *b, size_t n);
float whit_loop_max(const float *x, size_t n); /* n > 0 */
void whit_loop_add(float *y, const float *x, size_t n);               /* y += x */
void whit_loop_sum(const float *a, const float *b, float *y, size_t n); /* y = a + b */
void whit_loop_scale(float *y, const float *x, float factor, size_t n); /* y = factor x */
void whit_loop_add_scaled(float *y, const float *x, float factor, size_t n); /* y += factor x */

/* y = exp(x - max); returns the sum. */
float whit_loop_exp(const float *x, float max, float *y, size_t n);
/* The softmax of scale * x over n elements. */
void whit_loop_softmax(float *x, float scale, size_t n);
/* In place over dp: the gradient before a softmax p, times scale: scale * p * (dp - mean). */
void whit_loop_softmax_gradient(const float *p, float mean, float scale, float *dp, size_t n);

/* y = weight * x * r with r = 1 / sqrt(mean(x^2) + eps), which is returned. */
float whit_loop_norm(const float *x, const float *weight, float eps, float *y, size_t n);
/* Gradients of that: dx (added to what is there unless `fresh`), dweight += ... unless NULL. */
void whit_loop_norm_gradient(const float *x, const float *weight, float eps, const float *dy, bool fresh,
                             float *dx, float *dweight, size_t n);

/* Rotates pairs (i, i + n_pairs) by the table's angles: cosines (n_pairs), then sines; `turn` is 1
 * or, for the gradient, -1. Elements from 2 n_pairs on are copied. Adds to y unless `fresh`. */
void whit_loop_rope(const float *x, const float *table, float turn, bool fresh, float *y, size_t n_pairs,
                    size_t n);

/* y = silu(gate) * up, and its gradients, added unless fresh. */
void whit_loop_silu(const float *gate, const float *up, float *y, size_t n);
void whit_loop_silu_gradient(const float *gate, const float *up, const float *dy, float *dgate, bool fresh_gate,
                             float *dup, bool fresh_up, size_t n);
/* y = max(gate, 0)^2 * up, and its gradients. */
void whit_loop_relu2(const float *gate, const float *up, float *y, size_t n);
void whit_loop_relu2_gradient(const float *gate, const float *up, const float *dy, float *dgate, bool fresh_gate,
                              float *dup, bool fresh_up, size_t n);

/* The gradient of a loss over logits, in place: ce * (q - onehot) + kl * (q - p), where q is the
 * softmax of `logits` and p of `teacher` (NULL where kl is 0). target < 0: no cross-entropy. Gives
 * both losses in nats. */
void whit_loop_logit_loss(float *logits, const float *teacher, int64_t target, float ce, float kl, size_t n,
                          double *ce_nats, double *kl_nats);

/* One step of AdamW (Loshchilov, Hutter 2019, algorithm 2): `step_size` has the correction of the
 * first moment in it, `bias2` is 1 - beta2^t. */
typedef struct whit_adamw_row {
    float beta1, beta2, epsilon, step_size, bias2, decay, gradient_scale;
} whit_adamw_row;
void whit_loop_adamw(const whit_adamw_row *a, float *x, const float *gradient, float *moment1, float *moment2,
                     size_t n);

#endif
