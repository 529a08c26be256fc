/* SPDX-License-Identifier: MIT
 * Declares loops over f32 elements, which have one source for every level (chunk.inc). The compiler makes them vectors,
 * without contraction, so they give the bits of the element functions. */
#ifndef WHIT_LANG_CORE_CHUNK_H
#define WHIT_LANG_CORE_CHUNK_H

#include "lang/core/ast.h"

typedef struct lang_chunk_kernels {
    /* out may be an operand. */
    void (*binary[OP_NE + 1])(float *out, const float *a, const float *b, uint32_t n);
    void (*binary_scalar[OP_NE + 1])(float *out, const float *a, float b, uint32_t n);
    void (*scalar_binary[OP_NE + 1])(float *out, float a, const float *b, uint32_t n);
    void (*unary[OP_COS + 1])(float *out, const float *a, uint32_t n);
    /* These functions add elements, or products of elements, to lanes i mod 16. */
    void (*sum)(float lanes[16], const float *a, uint32_t n);
    void (*dot)(float lanes[16], const float *a, const float *b, uint32_t n);
    /* Keeps in each lane the larger of the lane and its elements, which come after the first 16 that lang_lanes_begin
     * takes. */
    void (*largest)(float lanes[16], const float *a, uint32_t n);
} lang_chunk_kernels;

extern const lang_chunk_kernels lang_chunk_generic, lang_chunk_avx2, lang_chunk_avx512;

static inline float lang_lanes_total(float lanes[16])
{
    for (unsigned half = 8; half; half /= 2)
        for (unsigned i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Begins the lanes of the largest of n > 0 elements with the first of them. */
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
