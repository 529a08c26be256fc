/* SPDX-License-Identifier: MIT */
#include "model/ternary.h"

#include <math.h>

bool whit_ternary_row(whit_ternary *ternary, const float *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float magnitude = fabsf(row[i]);
        if (magnitude == 0) continue;
        if (ternary->scale == 0 && magnitude < INFINITY) ternary->scale = magnitude;
        if (magnitude != ternary->scale) return false; /* NaN and infinity too */
    }
    return true;
}

void whit_ternary_codes(const float *row, size_t n, int8_t *codes)
{
    for (size_t i = 0; i < n; i++) codes[i] = (int8_t)((row[i] > 0) - (row[i] < 0));
}
