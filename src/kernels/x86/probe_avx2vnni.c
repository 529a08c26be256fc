/* SPDX-License-Identifier: MIT
 * Probes: AVX2 with VPDPBUSD in its VEX form. */
#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/x86/dot_vex.h"

#define DOT whit_dot_vex
#include "kernels/x86/probe_avx2.inc"

uint32_t whit_probe_int8_avx2vnni(const uint8_t *w, const int8_t *x, uint32_t n_rounds)
{
    return multiply(w, x, n_rounds);
}
