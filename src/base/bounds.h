/* SPDX-License-Identifier: MIT
 * Defines functions on integers. */
#ifndef WHIT_BASE_BOUNDS_H
#define WHIT_BASE_BOUNDS_H

#include <stdint.h>

/* Returns `x` clamped to [low, high]. */
static inline int64_t whit_within(int64_t x, int64_t low, int64_t high)
{
    if (x < low) return low;
    return x > high ? high : x;
}

/* Returns the greatest common divisor; gcd(a, 0) = a. */
static inline uint64_t whit_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
