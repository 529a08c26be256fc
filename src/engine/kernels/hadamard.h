/* SPDX-License-Identifier: MIT
 * Computes Hadamard transforms: of values in packed caches, and of the inputs of rotated matrices. A head is cut into
 * chunks whose sizes are powers of two, at most 64, the largest first. Each chunk is transformed by butterflies (lower
 * + upper, lower - upper) at distances 1, 2, 4 ..., and then scaled by a power of two, which rounds nothing: 2^k
 * elements by 2^-floor(k / 2), and in the inverse by 2^-ceil(k / 2). The inputs of rotated matrices are transformed in
 * blocks of any power of two (whit_hadamard_row). Plain C, so that compilers vectorise it for every ISA, with the same
 * bits. */
#ifndef WHIT_KERNELS_HADAMARD_H
#define WHIT_KERNELS_HADAMARD_H

#include "base/half.h"

#include <math.h>
#include <stdbool.h>

/* Applies the butterflies of n elements at distances first, 2 first, 4 first ..., n / 2. */
static inline __attribute__((always_inline)) void whit_hadamard_butterflies(float *x, const uint32_t n,
                                                                            const uint32_t first)
{
    for (uint32_t h = first; h < n; h *= 2)
        for (uint32_t i = 0; i < n; i += 2 * h)
            for (uint32_t j = i; j < i + h; j++) {
                const float lower = x[j], upper = x[j + h];
                x[j] = lower + upper;
                x[j + h] = lower - upper;
            }
}

static inline __attribute__((always_inline)) void whit_hadamard_chunk(float *x, const uint32_t n, const float scale)
{
    whit_hadamard_butterflies(x, n, 1);
    for (uint32_t i = 0; i < n; i++) x[i] *= scale;
}

/* Transforms the chunks of a head x of n elements in place; is_back selects the inverse. */
static inline void whit_hadamard(float *x, uint32_t n, bool is_back)
{
    for (; n >= 64; n -= 64, x += 64) whit_hadamard_chunk(x, 64, 0.125f);
#define CHUNK(size, forth, back)                                                                                       \
    if (n & (size)) {                                                                                                  \
        whit_hadamard_chunk(x, size, is_back ? (back) : (forth));                                                      \
        x += (size);                                                                                                   \
    }
    CHUNK(32, 0.25f, 0.125f)
    CHUNK(16, 0.25f, 0.25f)
    CHUNK(8, 0.5f, 0.25f)
    CHUNK(4, 0.5f, 0.5f)
    CHUNK(2, 1.0f, 0.5f)
#undef CHUNK
}

/* Transforms each block of a row of n elements: out = H (signs * x) / sqrt(block), or with is_back the inverse out =
 * signs * (H x) / sqrt(block). H is Sylvester's Hadamard matrix; signs (n) are 1 or -1, NULL: all 1. `block` is a power
 * of two that divides n. out may be x. */
static inline __attribute__((always_inline)) void whit_hadamard_row(const float *x, const float *signs, uint32_t n,
                                                                    uint32_t block, bool is_back, float *out)
{
    const float scale = 1.0f / sqrtf((float)block);
    for (uint32_t i = 0; i < n; i++) out[i] = signs && !is_back ? x[i] * signs[i] : x[i];
    if (block < 64)
        for (uint32_t i = 0; i < n; i += block) whit_hadamard_butterflies(out + i, block, 1);
    else
        for (uint32_t i = 0; i < n; i += 64) whit_hadamard_butterflies(out + i, 64, 1);
    for (uint32_t i = 0; block > 64 && i < n; i += block) whit_hadamard_butterflies(out + i, block, 64);
    for (uint32_t i = 0; i < n; i++) out[i] *= signs && is_back ? scale * signs[i] : scale;
}

#endif
