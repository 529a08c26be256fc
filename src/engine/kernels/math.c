/* SPDX-License-Identifier: MIT */
#include "kernels/math.h"

#define MAGIC 0x1.8p52 /* like WHIT_ROUND_MAGIC, for doubles: adding it rounds to an integer */

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns 2^n for n in [-1022, 1023]. */
static double power_of_two(int64_t n)
{
    return from_bits((uint64_t)(n + 1023) << 52);
}

double whit_exp_f64(double x)
{
    if (x > 709.8) return (double)INFINITY;
    if (x < -745.2) return 0;
    if (x != x) return x;
    double shifted = fma(x, 0x1.71547652b82fep+0, MAGIC), n = shifted - MAGIC;
    double r = fma(n, -0x1.62e42fefa39efp-1, x);
    r = fma(n, -0x1.abc9e3b39803fp-56, r);
    double sum = 1.0 / 6227020800.0; /* 1 / 13!, the last coefficient of the Taylor series */
    static const double factorials[] = {479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1};
    for (unsigned i = 0; i < 12; i++) sum = fma(sum, r, 1.0 / factorials[i]);
    sum = fma(sum, r, 1.0);
    /* multiplies by 2^n in two steps, because 2^n alone may be outside the range of normal doubles */
    int64_t power = (int64_t)n, half = power / 2;
    return sum * power_of_two(half) * power_of_two(power - half);
}

double whit_log_f64(double x)
{
    if (!(x > 0)) return x == 0 ? -(double)INFINITY : (double)NAN;
    if (x == (double)INFINITY) return x;
    int64_t exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54;
    }
    uint64_t bits = to_bits(x);
    exponent += (int64_t)(bits >> 52) - 1023;
    double m = from_bits((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000); /* mantissa in [1, 2) */
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    /* ln m = 2 atanh(s), with s = (m - 1) / (m + 1) and |s| < 0.1716 */
    double s = (m - 1) / (m + 1), z = s * s, sum = 0;
    for (int i = 23; i >= 3; i -= 2) sum = fma(sum, z, 1.0 / i);
    sum = fma(2 * s * z, sum, 2 * s);
    double e = (double)exponent;
    return fma(e, 0x1.62e42fefa39efp-1, fma(e, 0x1.abc9e3b39803fp-56, sum));
}

double whit_pow_f64(double base, double exponent)
{
    return whit_exp_f64(exponent * whit_log_f64(base));
}

void whit_sincos_f64(double x, double *sine, double *cosine)
{
    /* x = n pi/2 + r with |r| <= pi/4; pi/2 is subtracted in three parts */
    double shifted = fma(x, 0x1.45f306dc9c883p-1, MAGIC), n = shifted - MAGIC;
    double r = fma(n, -0x1.921fb54442d18p+0, x);
    r = fma(n, -0x1.1a62633145c07p-54, r);
    r = fma(n, 0x1.f1976b7ed8fbcp-110, r);
    double z = r * r, s = 0, c = 0;
    /* Taylor series up to r^17 for the sine and r^18 for the cosine: the next terms are below 1e-18 */
    static const double sines[] = {355687428096000, 1307674368000, 6227020800, 39916800, 362880, 5040, 120, 6};
    static const double cosines[] = {
        6402373705728000, 20922789888000, 87178291200, 479001600, 3628800, 40320, 720, 24, 2};
    double sign = 1;
    for (unsigned i = 0; i < 8; i++, sign = -sign) s = fma(s, z, sign / sines[i]);
    sign = -1;
    for (unsigned i = 0; i < 9; i++, sign = -sign) c = fma(c, z, sign / cosines[i]);
    s = fma(s * z, r, r);
    c = fma(c, z, 1.0);
    switch ((uint64_t)to_bits(shifted) & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
    }
}
