/* SPDX-License-Identifier: MIT
 * A number within limits. */
#ifndef WHIT_BASE_BOUNDS_H
#define WHIT_BASE_BOUNDS_H

#include <stdint.h>

/* Returns `x` clamped to [low, high]. */
static inline int64_t whit_within(int64_t x, int64_t low, int64_t high)
{
    if (x < low) return low;
    return x > high ? high : x;
}

#endif
