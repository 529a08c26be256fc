/* SPDX-License-Identifier: MIT
 * Provides the instruction VPDPBUSD in its VEX form, as inline assembly: for the intrinsic, gcc 12 emits a second
 * instruction, which copies the sums.
 * compile with: -mavx2 */
#ifndef WHIT_KERNELS_X86_DOT_VEX_H
#define WHIT_KERNELS_X86_DOT_VEX_H

#include <immintrin.h>

/* Adds to every lane of acc the four products of an unsigned byte of u8 and a signed byte of i8. */
static inline __m256i whit_dot_vex(__m256i acc, __m256i u8, __m256i i8)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(u8), "x"(i8));
    return acc;
}

#endif
