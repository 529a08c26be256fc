/* SPDX-License-Identifier: MIT
 * Computes the levels of one group, and fits the group's scales with different weights for its elements. (Rounding with
 * equal weights is in quant/quantise.h.) The functions have no state, so any thread may call them. */
#ifndef WHIT_COMPRESS_LEVELS_H
#define WHIT_COMPRESS_LEVELS_H

#include "base/tensor.h"

enum { WHIT_LEVELS_MAX = 64 };

typedef struct whit_levels {
    uint32_t n;
    float value[WHIT_LEVELS_MAX];
    int8_t code[WHIT_LEVELS_MAX];  /* code of each level, in the form of whit_codec_pack */
    int8_t first[WHIT_LEVELS_MAX]; /* value = first * a + second * b, with the group's scales a and b */
    int8_t second[WHIT_LEVELS_MAX];
} whit_levels;

/* Returns whether this file supports the type. It must have scales per group: t2, t5, b1, q2 without offsets; l2; i4
 * with f16 scales and without offsets; n4 with f16 scales; u2, i3, u4, u5, i6, n4, x8, x9, x10 with scales in
 * superblocks. */
bool whit_levels_know(const whit_tensor_type *type);
/* Computes the levels of a group with scales a and b. The levels of q2 and l2 are a s + b e with two signs s and e; the
 * levels of u2, u4 and u5 are a * code - b. Other types have no b. */
whit_levels whit_levels_at(const whit_tensor_type *type, const float scales[2]);
/* Returns whether groups of the type have a second scale b. */
bool whit_levels_have_second(const whit_tensor_type *type);
/* Returns whether a group of the type may have these scales; most types require a > 0. */
bool whit_levels_allow(const whit_tensor_type *type, const float scales[2]);
/* Returns the index of the nearest level, of equally near ones the first. More than sixteen levels are equally spaced;
 * then only the levels around (w - first) / step are compared. */
static inline uint32_t whit_levels_nearest(const whit_levels *levels, float w)
{
    uint32_t best = 0, end = levels->n;
    if (levels->n > 16) {
        float place = (w - levels->value[0]) / (levels->value[1] - levels->value[0]);
        float last = (float)(levels->n - 1);
        if (place > 1)
            place = place < last ? place : last;
        else
            place = 1; /* also if `place` is NaN */
        best = (uint32_t)place - 1;
        end = best + 4 < levels->n ? best + 4 : levels->n;
    }
    float least = (w - levels->value[best]) * (w - levels->value[best]);
    for (uint32_t i = best + 1; i < end; i++) {
        float error = (w - levels->value[i]) * (w - levels->value[i]);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    return best;
}

/* Returns the number of consecutive groups that share factors: all groups of a row with u8 scales, those of a
 * superblock with scales in superblocks; 0: the type has no factors. */
uint32_t whit_levels_shared_groups(const whit_tensor_type *type);
/* Rounds scales to values that the file can store. Without factors (NULL): f16, with a not below the smallest positive
 * f16 unless the type is a grid (levels.c). With factors: the nearest multiples of the factors that the file's integers
 * can represent. For l2: the scales that the nearest two bytes represent. */
void whit_levels_store(const whit_tensor_type *type, const float scales[2], const float factors[2], float stored[2]);
/* Computes the factors for the scales (n_groups, 2) of the groups that share them. The largest u8 scale becomes 230 of
 * 255, so that scales can still grow. */
void whit_levels_factors(const whit_tensor_type *type, const float *scales, uint32_t n_groups, float factors[2]);
/* Write the bytes of a group's stored scales, and read them. `factors` is not used for l2. */
void whit_levels_write(const whit_tensor_type *type, const float stored[2], const float factors[2], uint8_t *bytes);
void whit_levels_read(const whit_tensor_type *type, const uint8_t *bytes, const float factors[2], float stored[2]);
/* Finds scales for a group of n elements that make the sum of weights * (w - level)^2 small, by Lloyd's method from
 * several starting points, and rounds them like whit_levels_store. If all weights are 0, they count as 1. */
void whit_levels_fit(const whit_tensor_type *type, const float *w, const float *weights, size_t n,
                     const float factors[2], float stored[2]);

#endif
