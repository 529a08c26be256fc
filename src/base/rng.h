/* SPDX-License-Identifier: MIT
 * Generates random numbers that are the same on every machine for the same seed: SplitMix64 (Steele, Lea, Flood,
 * 2014). */
#ifndef WHIT_BASE_RNG_H
#define WHIT_BASE_RNG_H

#include <stdint.h>

typedef struct whit_rng {
    uint64_t state;
} whit_rng;

static inline uint64_t whit_rng_next(whit_rng *rng)
{
    uint64_t z = (rng->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* Draws a number uniformly from [0, 1), with 53 random bits. */
static inline double whit_rng_uniform(whit_rng *rng)
{
    return (double)(whit_rng_next(rng) >> 11) * 0x1p-53;
}
/* Draws an integer uniformly from [0, n); n > 0. The bias is less than n / 2^64. */
static inline uint64_t whit_rng_below(whit_rng *rng, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)whit_rng_next(rng) * n) >> 64);
}

#endif
