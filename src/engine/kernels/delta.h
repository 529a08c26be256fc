/* SPDX-License-Identifier: MIT
 * Computes the scalars and normalised heads of the gated delta rule (docs/dev/numerics.md), the same for inference and
 * training. */
#ifndef WHIT_KERNELS_DELTA_H
#define WHIT_KERNELS_DELTA_H

#include "kernels/kernels.h"
#include "kernels/math.h"

#include <math.h>

/* epsilon for normalising queries and keys; a constant of the model family, not a setting */
#define WHIT_DELTA_NORM_EPS        1e-6f
#define WHIT_DELTA_SOFTPLUS_LINEAR 20.0f /* for larger x, softplus(x) rounds to x in f32 */

/* Returns the key head of value head `head`; n_key_heads divides n_heads. With is_grouped the value heads of a key head
 * are adjacent; otherwise value head j uses key head j mod n_key_heads. */
static inline uint32_t whit_delta_key_head(uint32_t head, uint32_t n_heads, uint32_t n_key_heads, bool is_grouped)
{
    return is_grouped ? head / (n_heads / n_key_heads) : head % n_key_heads;
}

static inline float whit_delta_sigmoid(float x)
{
    return 1.0f / (1.0f + whit_exp_f32(-x));
}

static inline float whit_delta_softplus(float x)
{
    return x > WHIT_DELTA_SOFTPLUS_LINEAR ? x : (float)whit_log_f64(1.0 + (double)whit_exp_f32(x));
}

/* Computes out = factor * x / sqrt(sum(x^2) + eps) for n elements. */
static inline void whit_delta_normalise(const whit_kernels *kernels, const float *x, uint32_t n, float factor,
                                        float *out)
{
    kernels->rms_norm(x, NULL, n, WHIT_DELTA_NORM_EPS / (float)n, out);
    kernels->scale(out, factor / sqrtf((float)n), n);
}

#endif
