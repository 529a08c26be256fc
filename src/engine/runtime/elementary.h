/* SPDX-License-Identifier: MIT
 * Computes exp, log and pow in double precision, from correctly rounded operations only, so that a seed gives the same
 * picks on every machine. A sampler without top-k computes exponentials of a whole vocabulary. Unlike kernels/math.h,
 * these functions need no fused multiply-add, which is a library call on baseline targets without FMA. */
#ifndef WHIT_RUNTIME_ELEMENTARY_H
#define WHIT_RUNTIME_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double whit_bits_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns e^x: 0 for x <= -700 and infinity for x > 709, so that no result is subnormal. */
static inline double whit_quick_exp(double x)
{
    if (!(x > -700.0)) return x != x ? x : 0.0;
    if (x > 709.0) return INFINITY;
    double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52; /* rounds x / ln 2 to an integer */
    double k = shifted - 0x1.8p52;
    /* the product of k and the high part of ln 2 is exact */
    double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    /* Taylor series of e^r up to r^13; |r| <= ln(2) / 2 */
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * whit_bits_f64((uint64_t)(1023 + (int64_t)k) << 52);
}

/* Returns the natural logarithm of a normal, positive, finite number; -infinity for 0. */
static inline double whit_quick_log(double x)
{
    if (x <= 0.0) return -INFINITY;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    /* Splits x into m * 2^e with m in [sqrt(1/2), sqrt(2)). */
    uint64_t from_half = bits - 0x3fe6a09e667f3bcdu;
    int64_t e = (int64_t)from_half >> 52;
    double m = whit_bits_f64(bits - ((uint64_t)e << 52));
    double s = (m - 1.0) / (m + 1.0), s2 = s * s; /* log m = 2 artanh s, |s| < 0.172 */
    double p = 1.0 / 23.0;
    for (int n = 21; n >= 3; n -= 2) p = p * s2 + 1.0 / n;
    double log_m = 2.0 * s + 2.0 * s * s2 * p;
    return (double)e * 0x1.62e42feep-1 + ((double)e * 0x1.a39ef35793c76p-33 + log_m);
}

/* Returns x to the power of y, for x >= 0. */
static inline double whit_quick_pow(double x, double y)
{
    if (y == 0.0) return 1.0;
    if (x <= 0.0) return y > 0.0 ? 0.0 : INFINITY;
    if (x == 1.0) return 1.0;
    return whit_quick_exp(y * whit_quick_log(x));
}

#endif
