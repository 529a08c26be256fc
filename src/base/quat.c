/* SPDX-License-Identifier: MIT
 * Implements operations on quaternary vectors with different scales, norms and matrices: a table of the sixteen
 * possible results is computed in integers, and then applied to words of 64 lanes. */
#include <math.h>
#include <string.h>

#include "base/bounds.h"
#include "base/quat.h"

static const int values[4] = {-2, -1, 1, 2}; /* values of the elements, indexed by 2 * sign + extra */

static void set_entry(whit_quat_map *map, unsigned entry, int value)
{
    if (value > 0) map->sign |= (uint16_t)(1u << entry);
    if (value == 2 || value == -1) map->extra |= (uint16_t)(1u << entry);
}

/* ---- rounding -------------------------------------------------------------------------------- */

void whit_quat_round(const float *x, uint32_t n, int8_t log2_scale, whit_quat_planes out)
{
    float inverse = ldexpf(1, -log2_scale);
    for (uint32_t begin = 0; begin < n; begin += 64) {
        uint64_t sign = 0, extra = 0;
        uint32_t count = n - begin < 64 ? n - begin : 64;
        for (uint32_t i = 0; i < count; i++) {
            float y = x[begin + i] * inverse;
            uint64_t positive = !(y < 0), large = y >= 1.5f || y <= -1.5f;
            sign |= positive << i;
            extra |= (positive ^ large ^ 1) << i;
        }
        uint64_t kept = count < 64 ? ~(uint64_t)0 << count : 0;
        out.sign[begin / 64] = (out.sign[begin / 64] & kept) | sign;
        out.extra[begin / 64] = (out.extra[begin / 64] & kept) | extra;
    }
}

void whit_quat_expand(whit_quat_view a, uint32_t n, int8_t log2_scale, float *out)
{
    float scale = ldexpf(1, log2_scale);
    for (uint32_t i = 0; i < n; i++) out[i] = (float)whit_quat_at(a, i) * scale;
}

float whit_quat_largest(const float *x, uint32_t n)
{
    float largest = 0;
    for (uint32_t i = 0; i < n; i++)
        if (fabsf(x[i]) > largest && isfinite(x[i])) largest = fabsf(x[i]);
    return largest;
}

void whit_quat_fit_begin(whit_quat_fitting *fit, float largest)
{
    int exponent = 0;
    frexpf(largest, &exponent); /* 2^(exponent - 1) <= largest < 2^exponent; 0 if largest is 0 */
    *fit = (whit_quat_fitting){.any = largest != 0};
    for (int k = 0; k < WHIT_QUAT_SCALES; k++) fit->scales[k] = (int8_t)whit_within(exponent - k, -126, 126);
}

void whit_quat_fit_add(whit_quat_fitting *fit, const float *x, uint32_t n)
{
    enum { BLOCK = 64 };
    double squares[WHIT_QUAT_SCALES][BLOCK];
    for (uint32_t begin = 0; begin < n; begin += BLOCK) {
        float block[BLOCK], rounded[BLOCK];
        double weights[BLOCK]; /* 1, or 0 for padding and values that are not finite */
        uint32_t count = n - begin < BLOCK ? n - begin : BLOCK;
        for (uint32_t i = 0; i < BLOCK; i++) {
            bool counts = i < count && isfinite(x[begin + i]);
            block[i] = counts ? x[begin + i] : 0;
            weights[i] = counts;
        }
        for (int k = 0; k < WHIT_QUAT_SCALES; k++) {
            float unit = ldexpf(1, fit->scales[k]), inverse = ldexpf(1, -fit->scales[k]);
            int32_t bits[BLOCK], unit_bits;
            for (uint32_t i = 0; i < BLOCK; i++) rounded[i] = block[i] * inverse + 0.0f; /* + 0.0f turns -0 into 0 */
            memcpy(bits, rounded, sizeof bits);
            memcpy(&unit_bits, &unit, sizeof unit_bits);
            for (uint32_t i = 0; i < BLOCK; i++) { /* magnitudes below 1.5 units become one unit, others two units;
                                                    * signs are kept */
                int32_t large = (bits[i] & 0x7FFFFFFF) >= 0x3FC00000;
                bits[i] = (unit_bits + large * 0x800000) | (bits[i] & INT32_MIN);
            }
            memcpy(rounded, bits, sizeof bits);
            for (uint32_t i = 0; i < BLOCK; i++) {
                double gap = (double)block[i] - (double)rounded[i];
                squares[k][i] = gap * gap * weights[i];
            }
        }
        for (uint32_t i = 0; i < count; i++) /* added in the order of elements for each scale, so that the sum does
                                              * not depend on the blocks */
            for (int k = 0; k < WHIT_QUAT_SCALES; k++) fit->sums[k] += squares[k][i];
    }
}

int8_t whit_quat_fit_end(const whit_quat_fitting *fit)
{
    int best = 0;
    for (int k = 1; k < WHIT_QUAT_SCALES; k++)
        if (fit->sums[k] < fit->sums[best]) best = k;
    return fit->any ? fit->scales[best] : 0;
}

/* ---- sums ------------------------------------------------------------------------------------- */

int8_t whit_quat_add_scaled(const whit_quat_kernels *kernels, whit_quat_planes out, whit_quat_view a, int8_t a_scale,
                            whit_quat_view b, int8_t b_scale, uint32_t n_words)
{
    if (a_scale == b_scale) {
        kernels->add(out, a, b, n_words);
        return a_scale;
    }
    int apart = a_scale > b_scale ? a_scale - b_scale : b_scale - a_scale;
    /* The operand with the smaller scale has no influence from a difference of three steps on, so capping the
     * difference at four changes nothing. */
    int unit = 1 << (apart < 4 ? apart : 4);
    whit_quat_map map = {0};
    for (unsigned i = 0; i < 16; i++) {
        int x = values[i >> 2], y = values[i & 3];
        int sum = a_scale > b_scale ? x * unit + y : x + y * unit; /* in units of the smaller scale */
        int magnitude = 1;
        if (2 * (sum < 0 ? -sum : sum) >= 3 * unit) magnitude = 2;
        set_entry(&map, i, sum < 0 ? -magnitude : magnitude);
    }
    kernels->map(out, &map, a, b, n_words);
    return a_scale > b_scale ? a_scale : b_scale;
}

/* ---- norm ------------------------------------------------------------------------------------- */

/* Divides each product weight * x of magnitude m by the root mean square r of x and rounds it to {1, 2} 2^k: to 2 where
 * m / r >= 1.5 * 2^k, that is where 4 m^2 n >= 9 * 4^k * sum(x^2). With k = 0 products of magnitude 4 (a weight of 2
 * and an element of 2) would saturate, so k is 1 if many weights have magnitude 2. */
int8_t whit_quat_rms_norm(const whit_quat_kernels *kernels, whit_quat_planes out, whit_quat_view x,
                          whit_quat_view weight, uint32_t n)
{
    uint64_t sum = (uint64_t)kernels->sum_squares(x, n);
    uint32_t n_words = whit_quat_words(n);
    bool weighted = weight.sign != NULL;
    /* sum > 5 n / 2: more than half of the weights have magnitude 2 */
    int k = weighted && kernels->sum_squares(weight, n) > 5 * (int64_t)n / 2;
    whit_quat_map map = {0};
    for (unsigned i = 0; i < 16; i++) {
        int product = values[i >> 2] * (weighted ? values[i & 3] : 1);
        uint64_t m = (uint64_t)(product < 0 ? -product : product);
        int magnitude = 4 * m * m * n >= (9 * sum) << (2 * k) ? 2 : 1;
        set_entry(&map, i, product < 0 ? -magnitude : magnitude);
    }
    kernels->map(out, &map, x, weighted ? weight : x, n_words);
    return (int8_t)k;
}
