/* SPDX-License-Identifier: MIT
 * Implements fma and fmaf with one rounding, as C requires: the functions of mingw-w64 11 round twice. The linker finds
 * these first.
 *
 * Without the instruction: x * y is exact in the wider type, and x * y + z is rounded there to odd (Boldo and
 * Melquiond, 2008), so that the second rounding gives what one rounding would. */
#include "fma.h"

#include <cpuid.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

float whit_soft_fmaf(float x, float y, float z)
{
    double product = (double)x * y, sum = product + z;
    double back = sum - product, error = (product - (sum - back)) + (z - back); /* Knuth's exact error of the sum */
    if (!isfinite(sum) || error == 0 || error != error) return (float)sum;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (!(bits & 1)) bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
}

double whit_soft_fma(double x, double y, double z)
{
    if (!isfinite(x) || !isfinite(y) || !isfinite(z)) return x * y + z;
    __float128 product = (__float128)x * y, sum = product + z;
    __float128 back = sum - product, error = (product - (sum - back)) + (z - back);
    if (error == 0) return (double)sum;
    unsigned __int128 bits;
    memcpy(&bits, &sum, sizeof bits);
    if (!(bits & 1)) bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    memcpy(&sum, &bits, sizeof bits);
    return (double)sum;
}

static bool has_instruction(void)
{
    static _Atomic int known; /* 0: not asked yet; 1: no; 2: yes */
    if (!known) {
        unsigned a, b, c = 0, d;
        bool has = __get_cpuid(1, &a, &b, &c, &d) && c >> 12 & 1 && c >> 27 & 1; /* bits of FMA and OSXSAVE */
        known = has ? 2 : 1;
    }
    return known == 2;
}

__attribute__((target("fma"))) static float instruction_fmaf(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}

__attribute__((target("fma"))) static double instruction_fma(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}

float fmaf(float x, float y, float z)
{
    return has_instruction() ? instruction_fmaf(x, y, z) : whit_soft_fmaf(x, y, z);
}

double fma(double x, double y, double z)
{
    return has_instruction() ? instruction_fma(x, y, z) : whit_soft_fma(x, y, z);
}
