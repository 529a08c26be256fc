/* SPDX-License-Identifier: MIT
 * Prints a hash of many fused multiply-adds: those of lanes_simd128.inc on WebAssembly, those of the C library's
 * fmaf elsewhere. Some exponents cause halfway cases and subnormal results, which two roundings would change. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#ifdef __wasm__
#include "kernels/wasm/lanes_simd128.inc"
#else
#include "base/half.h"
#endif

static uint64_t state = 1;

static uint32_t draw_bits(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

/* Returns a random number with one of n_exponents exponents from `first` on. Every fourth number has few significant
 * bits, so that sums are halfway cases. */
static float draw_number(uint32_t first, uint32_t n_exponents)
{
    uint32_t bits = draw_bits(), fraction = bits >> 2 & 0x7FFFFF;
    if ((bits & 3) == 0) fraction &= 0x7FF000;
    return whit_f32_from_bits((draw_bits() & 0x80000000) | (first + draw_bits() % n_exponents) << 23 | fraction);
}

static void multiply_add(const float *x, const float *y, const float *z, float *out)
{
#ifdef __wasm__
    vf_store(out, vf_fma(vf_load(x), vf_load(y), vf_load(z)));
#else
    for (int i = 0; i < 16; i++) out[i] = fmaf(x[i], y[i], z[i]);
#endif
}

int main(void)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    uint32_t n_subnormal = 0;
    for (int round = 0; round < 200000; round++) {
        float x[16], y[16], z[16], out[16];
        const uint32_t kind = (uint32_t)round % 4;
        for (int i = 0; i < 16; i++) {
            const uint32_t first = kind == 0 ? 120 : kind == 1 ? 40 : kind == 2 ? 0 : 200;
            const uint32_t n = kind == 0 ? 12 : kind == 1 ? 40 : kind == 2 ? 255 : 55;
            x[i] = draw_number(first, n), y[i] = draw_number(kind == 1 ? 30 : first, n);
            z[i] = draw_number(kind == 1 ? 0 : first, kind == 1 ? 30 : n);
        }
        multiply_add(x, y, z, out);
        for (int i = 0; i < 16; i++) {
            uint32_t bits = whit_f32_bits(out[i]);
            if (out[i] != out[i]) bits = 0x7FC00000; /* the payload of a NaN is not specified */
            n_subnormal += (bits & 0x7F800000) == 0 && (bits & 0x7FFFFFFF);
            hash = (hash ^ bits) * UINT64_C(1099511628211);
        }
    }
    printf("%016" PRIx64 " %" PRIu32 " subnormal\n", hash, n_subnormal);
    return n_subnormal < 10000;
}
