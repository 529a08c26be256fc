/* SPDX-License-Identifier: MIT
 * Outliers, as specified: what they add to finished outputs. Per output a sum from +0, columns ascending:
 * sum = fma(value, x, sum), of integer activations sum = fma(float(value q), scale of the step, sum); then
 * y = fma(sum, scale of the tile, y). A row that has none is left as it is. */
#include "kernels/kernels.h"
#include "kernels/math.h"

#define ROWS WHIT_TILE_ROWS

static float add_term(const whit_acts *x, uint32_t token, uint32_t col, int value, float sum)
{
    if (x->spec.kind == WHIT_ACTS_F32) return fmaf((float)value, x->f32[token * x->stride + col], sum);
    uint32_t step = x->spec.step ? col / x->spec.step : 0;
    return fmaf((float)(value * whit_acts_code(x, token, col)), x->scales[(size_t)token * x->n_steps + step], sum);
}

void whit_outliers_generic(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                           size_t y_stride)
{
    for (uint32_t tile = tile_begin; tile < tile_end; tile++) {
        whit_outlier_tile o;
        if (!whit_outliers_of_tile(w, tile, &o)) continue;
        for (uint32_t t = 0; t < x->n_tokens; t++) {
            uint32_t at = 0;
            for (uint32_t r = 0; r < ROWS && tile * ROWS + r < w->type.n_rows; r++) {
                uint32_t end = at + o.counts[r], col = 0;
                float sum = 0, *out = y + t * y_stride + (size_t)tile * ROWS + r;
                for (uint32_t i = at; i < end && i < o.n_pairs; i++) {
                    col += o.pairs[2 * i];
                    if (col >= w->type.n_cols) break;
                    sum = add_term(x, t, col, (int8_t)o.pairs[2 * i + 1], sum);
                }
                if (end > at) *out = fmaf(sum, o.scale, *out);
                at = end;
            }
        }
    }
}
