/* SPDX-License-Identifier: MIT
 * Quaternary vectors have elements of {-2, -1, 1, 2} in two bitmaps, one bit of each per lane.
 *
 *     (sign, extra)   (1,1) (1,0) (0,1) (0,0)
 *     value             +2    +1    -1    -2
 *
 * Lane i is bit i mod 64 of word i / 64. As a number of two bits, (sign, extra) is ordered like the value; the
 * magnitude is 2 where sign and extra agree. There is no zero: x + (-x) is +1. Lanes past the end of a vector (padding)
 * may have any value and influence no result: elementwise functions process whole words; functions that sum or count
 * get the number of elements and mask the last word.
 *
 * Addition and multiplication saturate at 2. src/engine/kernels/quat has the functions of the table. */
#ifndef WHIT_BASE_QUAT_H
#define WHIT_BASE_QUAT_H

#include <stddef.h>

#include "base/cpu.h"

static inline uint32_t whit_quat_words(uint32_t n_elems)
{
    return (n_elems + 63) / 64;
}

/* Points to two bitmaps (planes) of n_words words each. */
typedef struct whit_quat_planes {
    uint64_t *sign, *extra;
} whit_quat_planes;
typedef struct whit_quat_view {
    const uint64_t *sign, *extra;
} whit_quat_view;

/* Tabulates a function of two elements: bit i of `sign` and `extra` is the result for the four bits i = (sign a, extra
 * a, sign b, extra b), where sign a is the highest bit. */
typedef struct whit_quat_map {
    uint16_t sign, extra;
} whit_quat_map;

/* Computes out = f(a, b) for every lane of n_words words; out may be a or b. */
typedef void whit_quat_binary_fn(whit_quat_planes out, whit_quat_view a, whit_quat_view b, uint32_t n_words);
typedef void whit_quat_unary_fn(whit_quat_planes out, whit_quat_view a, uint32_t n_words);
/* Sets bit i of `mask` to 1 if the relation holds for elements i of a and b, else to 0. */
typedef void whit_quat_compare_fn(uint64_t *mask, whit_quat_view a, whit_quat_view b, uint32_t n_words);
/* Copies the lanes of a where the mask's bit is 1, and the lanes of b elsewhere; out may be a or b. */
typedef void whit_quat_select_fn(whit_quat_planes out, const uint64_t *mask, whit_quat_view a, whit_quat_view b,
                                 uint32_t n_words);
typedef void whit_quat_map_fn(whit_quat_planes out, const whit_quat_map *map, whit_quat_view a, whit_quat_view b,
                              uint32_t n_words);
/* Returns the sum of the products a[i] * b[i], without scales. */
typedef int64_t whit_quat_dot_fn(whit_quat_view a, whit_quat_view b, uint32_t n_elems);
/* Returns the sum of the elements, or the sum of their squares. */
typedef int64_t whit_quat_reduce_fn(whit_quat_view a, uint32_t n_elems);
/* Counts the bits that differ between two bitmaps of n_words words. */
typedef uint64_t whit_quat_distance_fn(const uint64_t *a, const uint64_t *b, uint32_t n_words);

typedef struct whit_quat_kernels {
    whit_isa isa;
    uint32_t features;
    whit_quat_binary_fn *add;    /* saturating; x + (-x) is +1 */
    whit_quat_binary_fn *mul;    /* saturating */
    whit_quat_binary_fn *swiglu; /* silu(a) * b, saturating */
    whit_quat_unary_fn *silu;    /* both negative values give -1 */
    whit_quat_unary_fn *negate;
    whit_quat_unary_fn *absolute;
    whit_quat_compare_fn *less, *equal;
    whit_quat_select_fn *select;
    whit_quat_map_fn *map;
    whit_quat_dot_fn *dot;
    whit_quat_dot_fn *dot8; /* dot, computed with eight popcounts per word, for the benchmark */
    whit_quat_reduce_fn *sum, *sum_squares;
    whit_quat_distance_fn *distance;
} whit_quat_kernels;

/* Returns element i of a vector, without its scale. */
static inline int whit_quat_at(whit_quat_view a, uint32_t i)
{
    unsigned sign = (unsigned)(a.sign[i / 64] >> i % 64 & 1), extra = (unsigned)(a.extra[i / 64] >> i % 64 & 1);
    return (int)(3 * sign + extra) - 2;
}
/* Stores `value`, one of {-2, -1, 1, 2}, as element i. */
static inline void whit_quat_put(whit_quat_planes a, uint32_t i, int value)
{
    uint64_t bit = (uint64_t)1 << i % 64, sign = value > 0 ? bit : 0;
    uint64_t extra = value == 2 || value == -1 ? bit : 0;
    a.sign[i / 64] = (a.sign[i / 64] & ~bit) | sign;
    a.extra[i / 64] = (a.extra[i / 64] & ~bit) | extra;
}

/* ---- functions on top of the kernels: scales, norms, matrices ---------------------------------- */

/* Find the best scale of a vector of f32 piece by piece. whit_quat_fit_begin gets the largest finite magnitude of all
 * elements, whit_quat_fit_add each piece of n elements in order, and whit_quat_fit_end returns the log2 of a scale:
 * among the WHIT_QUAT_SCALES powers of two from the one above the largest magnitude downwards, the one with the least
 * squared error (of equals, the largest); 0 if all finite elements are 0. whit_quat_round rounds n f32 to elements
 * times 2^log2_scale: quotients of magnitude 1.5 and above become 2, smaller ones 1; zeros of either sign and NaN
 * become +1. */
enum { WHIT_QUAT_SCALES = 6 };
typedef struct whit_quat_fitting {
    double sums[WHIT_QUAT_SCALES];
    int8_t scales[WHIT_QUAT_SCALES];
    bool any;
} whit_quat_fitting;
float whit_quat_largest(const float *x, uint32_t n);
void whit_quat_fit_begin(whit_quat_fitting *fit, float largest);
void whit_quat_fit_add(whit_quat_fitting *fit, const float *x, uint32_t n);
int8_t whit_quat_fit_end(const whit_quat_fitting *fit);
void whit_quat_round(const float *x, uint32_t n, int8_t log2_scale, whit_quat_planes out);
void whit_quat_expand(whit_quat_view a, uint32_t n, int8_t log2_scale, float *out);

/* Computes a 2^a_scale + b 2^b_scale; returns the scale of the result, which is the larger of the two. If the scales
 * differ, every sum is rounded to the nearest of {-2, -1, 1, 2} times the result's scale; halves are rounded away from
 * zero, and 0 becomes +1. */
int8_t whit_quat_add_scaled(const whit_quat_kernels *kernels, whit_quat_planes out, whit_quat_view a, int8_t a_scale,
                            whit_quat_view b, int8_t b_scale, uint32_t n_words);

/* Computes weight * x / sqrt(mean(x^2)) for n elements, rounded to the elements of `out` times a power of two. Returns
 * 0 or 1: this plus the log2 scale of `weight` is the log2 scale of `out`. No division or root is needed, because
 * magnitudes are compared as integers. NULL planes in `weight` mean that all weights are 1. The scale of x does not
 * matter. */
int8_t whit_quat_rms_norm(const whit_quat_kernels *kernels, whit_quat_planes out, whit_quat_view x,
                          whit_quat_view weight, uint32_t n);

#endif
