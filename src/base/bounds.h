/* SPDX-License-Identifier: MIT
 * The smaller and larger of two numbers, and a number within limits. */
#ifndef WHIT_BASE_BOUNDS_H
#define WHIT_BASE_BOUNDS_H

#include <stdint.h>

static inline uint64_t whit_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t whit_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns `x`, or the limit that it exceeds. */
static inline int64_t whit_within(int64_t x, int64_t low, int64_t high)
{
    if (x < low) return low;
    return x > high ? high : x;
}

#endif
