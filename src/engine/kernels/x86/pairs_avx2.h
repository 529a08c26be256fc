/* SPDX-License-Identifier: MIT
 * Products of bytes, summed in words, as inline assembly: for the intrinsics, gcc 12 emits loops that keep a sum in
 * memory.
 * compile with: -mavx2 */
#ifndef WHIT_KERNELS_X86_PAIRS_AVX2_H
#define WHIT_KERNELS_X86_PAIRS_AVX2_H

#include <immintrin.h>

/* Adds to every word of `sums` two products of an unsigned byte of u8 and a signed byte of i8. */
static inline __m256i whit_add_pairs(__m256i sums, __m256i u8, __m256i i8)
{
    __m256i pairs;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sums), "=&x"(pairs) : "x"(u8), "x"(i8));
    return sums;
}

/* Adds to every dword of acc four products of an unsigned byte of u7 (at most 127) and a signed byte of x. `ones` has 1
 * in every word. */
static inline __m256i whit_add_quads(__m256i acc, __m256i u7, __m256i x, __m256i ones)
{
    __m256i pairs;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
            : "+x"(acc), "=&x"(pairs)
            : "x"(u7), "x"(x), "x"(ones));
    return acc;
}

#endif
