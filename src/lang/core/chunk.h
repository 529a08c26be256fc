/* SPDX-License-Identifier: MIT
 * Declares loops over f32 elements, compiled from one source for every ISA level (chunk.inc). The compiler vectorises
 * them without contraction, so they give the same bits as the functions on elements (scalar.h). */
#ifndef WHIT_LANG_CORE_CHUNK_H
#define WHIT_LANG_CORE_CHUNK_H

#include "lang/core/ast.h"

typedef struct lang_chunk_kernels {
    /* `out` may be the same array as an operand. */
    void (*binary[OP_NE + 1])(float *out, const float *a, const float *b, uint32_t n);
    void (*binary_scalar[OP_NE + 1])(float *out, const float *a, float b, uint32_t n);
    void (*scalar_binary[OP_NE + 1])(float *out, float a, const float *b, uint32_t n);
    void (*unary[OP_COS + 1])(float *out, const float *a, uint32_t n);
    /* These functions add element i, or the product of elements i, to lane i mod 16. */
    void (*sum)(float lanes[16], const float *a, uint32_t n);
    void (*dot)(float lanes[16], const float *a, const float *b, uint32_t n);
    /* Keeps in lane i mod 16 the larger of the lane and element i. The lanes must begin with the first 16 elements
     * (lang_lanes_begin), which need not be in `a`. */
    void (*largest)(float lanes[16], const float *a, uint32_t n);
} lang_chunk_kernels;

extern const lang_chunk_kernels lang_chunk_generic, lang_chunk_avx2, lang_chunk_avx512;

static inline float lang_lanes_total(float lanes[16])
{
    for (unsigned half = 8; half; half /= 2)
        for (unsigned i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Sets the lanes for finding the largest of n > 0 elements: to the first 16 elements, or to element 0 for lanes >=
 * n. */
static inline void lang_lanes_begin(float lanes[16], const float *a, uint32_t n)
{
    for (uint32_t i = 0; i < 16; i++) lanes[i] = a[i < n ? i : 0];
}
static inline float lang_lanes_largest(float lanes[16])
{
    for (unsigned i = 1; i < 16; i++) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    return lanes[0];
}
static inline float lang_largest(const lang_chunk_kernels *kernels, const float *a, uint32_t n)
{
    float lanes[16];
    lang_lanes_begin(lanes, a, n);
    if (n > 16) kernels->largest(lanes, a + 16, n - 16);
    return lang_lanes_largest(lanes);
}

#endif
