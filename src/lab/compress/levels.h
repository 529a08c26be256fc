/* SPDX-License-Identifier: MIT
 * The levels of one scale group and how its scales are fitted where weights count differently; the plain
 * rounding is quant/quantise.h's. No state, any thread. */
#ifndef WHIT_COMPRESS_LEVELS_H
#define WHIT_COMPRESS_LEVELS_H

#include "base/tensor.h"

enum { WHIT_LEVELS_MAX = 4 };

typedef struct whit_levels {
    uint32_t n;
    float value[WHIT_LEVELS_MAX];
    int8_t code[WHIT_LEVELS_MAX];  /* code of each level, as for whit_codec_pack */
    int8_t first[WHIT_LEVELS_MAX]; /* value = first * a + second * b */
    int8_t second[WHIT_LEVELS_MAX];
} whit_levels;

/* Levels at the scales a (and, q2, b) of a group of t2, t5, b1 or q2. */
whit_levels whit_levels_at(uint8_t codec, const float scales[2]);
/* The number of the nearest level. */
static inline uint32_t whit_levels_nearest(const whit_levels *levels, float w)
{
    uint32_t best = 0;
    float least = (w - levels->value[0]) * (w - levels->value[0]);
    for (uint32_t i = 1; i < levels->n; i++) {
        float error = (w - levels->value[i]) * (w - levels->value[i]);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    return best;
}

/* Scales as the file will hold them: f16, a not below the smallest; with the factors of a row (not NULL) the nearest of
 * 1 to 255 times its own (b: 0 to 255). */
void whit_levels_store(uint8_t codec, const float scales[2], const float factors[2], float stored[2]);
/* The factors of a row for the stored scales (n_groups, 2) of its groups: the largest is 230 of 255, so that scales
 * may still grow. */
void whit_levels_factors(uint8_t codec, const float *scales, uint32_t n_groups, float factors[2]);
/* Such a scale's u8. */
uint8_t whit_levels_byte(float stored, float factor);
/* Scales of least sum of weights * (w - level)^2 over a group of n, by Lloyd's method from some starts,
 * stored. All weights 0 count as all 1. */
void whit_levels_fit(uint8_t codec, const float *w, const float *weights, size_t n, const float factors[2],
                     float stored[2]);

#endif
