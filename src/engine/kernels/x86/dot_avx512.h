/* SPDX-License-Identifier: MIT
 * Provides the instruction VPDPBUSD as inline assembly. For the intrinsics gcc 12 copies the sums and emits a separate
 * load for shared or memory operands, which makes 1.5 times as many instructions.
 * compile with: -mavx512f -mavx512vnni
 */
#ifndef WHIT_KERNELS_X86_DOT_AVX512_H
#define WHIT_KERNELS_X86_DOT_AVX512_H

#include <immintrin.h>
#include <stdint.h>

/* Returns the four activations at q in every lane. */
static inline __m512i broadcast_quad(const int8_t *q)
{
    __m512i quad;
    __asm__("vpbroadcastd %1, %0" : "=v"(quad) : "m"(*(const int32_t *)(const void *)q));
    return quad;
}

/* Adds to every lane of acc the products of the four unsigned bytes of `line` with the four activations of `quad`. */
static inline __m512i add_quad_products(__m512i acc, __m512i line, __m512i quad)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(line), "v"(quad));
    return acc;
}

/* Does the same as add_quad_products for the four activations at q, which the product's instruction loads itself. */
static inline __m512i add_products(__m512i acc, __m512i line, const int8_t *q)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(line), "m"(*(const int32_t *)(const void *)q));
    return acc;
}

#endif
