/* SPDX-License-Identifier: MIT
 * Specifies the product of outliers. Activations become integers of up to 32,767 with a scale per token; integer
 * activations are first converted to the numbers float(q) scale. Per output, the sum of value times integer is exact in
 * any order (255 products of 127 and 32,767 stay below 2^31); then y = fma(float(sum), scale of the token times that of
 * the tile, y), for every row of a tile that has a record. */
#include "kernels/generic/lanes.h"
#include "kernels/kernels.h"
#include "kernels/math.h"

#include <string.h>

#define ROWS     WHIT_TILE_ROWS
#define MOST     32767.0f
#define AMAX_MIN 0x1p-100f /* a token whose largest magnitude is below this counts as zero, as with int8 activations */

static float value_of(const whit_acts *x, uint32_t token, uint32_t col)
{
    if (x->spec.kind == WHIT_ACTS_F32) return x->f32[token * x->stride + col];
    uint32_t step = x->spec.step ? col / x->spec.step : 0;
    return (float)whit_acts_code(x, token, col) * x->scales[(size_t)token * x->n_steps + step];
}

void whit_outlier_codes_generic(const whit_acts *x, const whit_outlier_acts *out)
{
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        int16_t *codes = out->codes + t * out->stride;
        uint32_t bits = 0;
        memset(codes, 0, out->stride * sizeof *codes);
        for (uint32_t k = 0; k < x->n_cols; k++) {
            uint32_t one = whit_f32_bits(value_of(x, t, k)) & 0x7FFFFFFF;
            if (one > bits) bits = one;
        }
        out->scales[t] = 0;
        if (bits < whit_f32_bits(AMAX_MIN)) continue;
        float amax = whit_f32_from_bits(bits), factor = MOST / amax;
        out->scales[t] = amax / MOST;
        for (uint32_t k = 0; k < x->n_cols; k++) {
            float product = value_of(x, t, k) * factor;
            codes[k] = product != product ? 0 : (int16_t)whit_round_i32(product);
        }
    }
}

void whit_outliers_generic(const whit_tensor *w, const whit_outlier_acts *x, uint32_t tile_begin, uint32_t tile_end,
                           float *y, size_t y_stride)
{
    const uint32_t n_cols = w->type.n_cols;
    for (uint32_t tile = tile_begin; tile < tile_end; tile++) {
        whit_outlier_tile o;
        if (!whit_outliers_of_tile(w, tile, &o)) continue;
        for (uint32_t t = 0; t < x->n_tokens; t++) {
            const int16_t *codes = x->codes + t * x->stride;
            const float scale = x->scales[t] * o.scale;
            uint32_t at = 0;
            for (uint32_t r = 0; r < ROWS && tile * ROWS + r < w->type.n_rows; r++) {
                int32_t sum = 0;
                float *out = y + t * y_stride + (size_t)tile * ROWS + r;
                for (uint32_t end = at + o.counts[r]; at < end; at++) {
                    uint32_t col = whit_outlier_column(&o, n_cols, at);
                    if (col < n_cols) sum += o.values[at] * codes[col];
                }
                *out = fmaf((float)sum, scale, *out);
            }
        }
    }
}
