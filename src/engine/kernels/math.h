/* SPDX-License-Identifier: MIT
 * Computes elementary functions by fixed sequences of correctly rounded operations, so that a result does not depend on
 * a library or an ISA. Vector code repeats the f32 sequences step by step with the constants below. fmaf and fma are
 * correctly rounded by definition, so any implementation may be used.
 *
 * The functions assume the environment of base/fpenv.h. */
#ifndef WHIT_KERNELS_MATH_H
#define WHIT_KERNELS_MATH_H

#include "base/half.h"

#include <math.h>

/* Adding this number to x with |x| < 2^22 leaves x, rounded to an integer with ties to even, in the low bits of the
 * sum. */
#define WHIT_ROUND_MAGIC      12582912.0f /* 1.5 * 2^23 */
#define WHIT_ROUND_MAGIC_BITS 0x4B400000

static inline int32_t whit_round_i32(float x)
{
    return (int32_t)(whit_f32_bits(x + WHIT_ROUND_MAGIC) - WHIT_ROUND_MAGIC_BITS);
}

/* Clamps x to [-128, 127]; NaN stays NaN. */
static inline float whit_clamp_i8(float x)
{
    if (x < -128.0f) return -128.0f;
    if (x > 127.0f) return 127.0f;
    return x;
}

/* Returns e^x = 2^n e^r, with x = n ln 2 + r, |r| <= ln 2 / 2, and e^r = 1 + r + r^2 P(r), where the polynomial P
 * interpolates at Chebyshev nodes (relative error 1.1e-8). For x below -87 the result is +0, to avoid subnormals; above
 * 88 it is e^88, to avoid infinity. NaN stays NaN. */
#define WHIT_EXP_MAX    88.0f
#define WHIT_EXP_MIN    (-87.0f)
#define WHIT_EXP_LOG2E  0x1.715476p+0f
#define WHIT_EXP_LN2_HI 0x1.62e000p-1f
#define WHIT_EXP_LN2_LO 0x1.0bfbe8p-15f
#define WHIT_EXP_P0     0x1.000000p-1f
#define WHIT_EXP_P1     0x1.5554dcp-3f
#define WHIT_EXP_P2     0x1.555518p-5f
#define WHIT_EXP_P3     0x1.120be2p-7f
#define WHIT_EXP_P4     0x1.6d117cp-10f

static inline float whit_exp_f32(float x)
{
    float bounded = WHIT_EXP_MAX < x ? WHIT_EXP_MAX : x;
    float shifted = fmaf(bounded, WHIT_EXP_LOG2E, WHIT_ROUND_MAGIC);
    float n = shifted - WHIT_ROUND_MAGIC;
    float r = fmaf(n, -WHIT_EXP_LN2_HI, bounded);
    r = fmaf(n, -WHIT_EXP_LN2_LO, r);
    float p = fmaf(WHIT_EXP_P4, r, WHIT_EXP_P3);
    p = fmaf(p, r, WHIT_EXP_P2);
    p = fmaf(p, r, WHIT_EXP_P1);
    p = fmaf(p, r, WHIT_EXP_P0);
    float y = fmaf(p, r * r, r) + 1.0f;
    /* bits of 2^n: (n + 127) << 23, with n from the low bits of `shifted` */
    float power = whit_f32_from_bits((whit_f32_bits(shifted) - WHIT_ROUND_MAGIC_BITS + 127) << 23);
    return x < WHIT_EXP_MIN ? 0.0f : y * power;
}

/* Returns 2^x for x <= 0, for the weights of attention. x = n + f, where n is x truncated to an integer, so that f in
 * (-1, 0] is exact. 2^f is approximated by the polynomial of degree 5 with value 1 at 0 that has the least relative
 * error (8.4e-8), and multiplied by 2^n. For x below -126 the result is +0, to avoid subnormals. NaN stays NaN. */
#define WHIT_EXP2_MIN (-126.0f)
#define WHIT_EXP2_P1  0x1.62e3bcp-1f
#define WHIT_EXP2_P2  0x1.ebe392p-3f
#define WHIT_EXP2_P3  0x1.c4fef8p-5f
#define WHIT_EXP2_P4  0x1.2da7d6p-7f
#define WHIT_EXP2_P5  0x1.ef66d4p-11f

static inline float whit_exp2_below_0_f32(float x)
{
    if (!(x >= WHIT_EXP2_MIN)) return x < WHIT_EXP2_MIN ? 0.0f : x;
    int32_t n = (int32_t)x;
    float f = x - (float)n;
    float p = fmaf(WHIT_EXP2_P5, f, WHIT_EXP2_P4);
    p = fmaf(p, f, WHIT_EXP2_P3);
    p = fmaf(p, f, WHIT_EXP2_P2);
    p = fmaf(p, f, WHIT_EXP2_P1);
    p = fmaf(p, f, 1.0f);
    return p * whit_f32_from_bits((uint32_t)(n + 127) << 23);
}

/* Returns tanh(x): an odd polynomial for |x| <= 0.625, else 1 - 2 / (e^(2|x|) + 1) with the sign of x. */
#define WHIT_TANH_SPLIT 0.625f
#define WHIT_TANH_Q0    (-0x1.555552p-2f)
#define WHIT_TANH_Q1    0x1.110dd8p-3f
#define WHIT_TANH_Q2    (-0x1.b91582p-5f)
#define WHIT_TANH_Q3    0x1.576e30p-6f
#define WHIT_TANH_Q4    (-0x1.8c2d0ap-8f)

static inline float whit_tanh_f32(float x)
{
    float size = fabsf(x), z = x * x;
    float q = fmaf(WHIT_TANH_Q4, z, WHIT_TANH_Q3);
    q = fmaf(q, z, WHIT_TANH_Q2);
    q = fmaf(q, z, WHIT_TANH_Q1);
    q = fmaf(q, z, WHIT_TANH_Q0);
    float small = fmaf(q * z, x, x);
    float large = 1.0f - 2.0f / (whit_exp_f32(size + size) + 1.0f);
    return size <= WHIT_TANH_SPLIT ? small : copysignf(large, x);
}

/* Returns the complementary error function for x >= 0: (a1 t + ... + a5 t^5) e^(-x^2), t = 1 / (1 + p x). Its absolute
 * error is below 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26). */
#define WHIT_ERFC_P    0.3275911f
#define WHIT_ERFC_A1   0.254829592f
#define WHIT_ERFC_A2   (-0.284496736f)
#define WHIT_ERFC_A3   1.421413741f
#define WHIT_ERFC_A4   (-1.453152027f)
#define WHIT_ERFC_A5   1.061405429f
#define WHIT_SQRT_HALF 0x1.6a09e6p-1f

static inline float whit_erfc_f32(float x)
{
    float t = 1.0f / fmaf(WHIT_ERFC_P, x, 1.0f);
    float p = fmaf(WHIT_ERFC_A5, t, WHIT_ERFC_A4);
    p = fmaf(p, t, WHIT_ERFC_A3);
    p = fmaf(p, t, WHIT_ERFC_A2);
    p = fmaf(p, t, WHIT_ERFC_A1);
    return p * t * whit_exp_f32(-(x * x));
}

/* Returns GELU(x) = x * Phi(x) = max(x, 0) - |x| / 2 * erfc(|x| / sqrt(2)), where Phi is the normal distribution. */
static inline float whit_gelu_f32(float x)
{
    float size = fabsf(x), positive = x < 0 ? 0 : x; /* NaN stays NaN */
    return positive - 0.5f * size * whit_erfc_f32(size * WHIT_SQRT_HALF);
}

/* The following functions compute in double precision, for RoPE tables and samplers, and are not vectorised. Their
 * relative error is about 1e-15 (sincos: absolute error, for |x| < 2^30). */
double whit_exp_f64(double x);
double whit_log_f64(double x);                     /* -infinity for x = 0, NaN for x < 0 */
double whit_pow_f64(double base, double exponent); /* `base` must be positive */
void whit_sincos_f64(double x, double *sine, double *cosine);

#endif
