/* SPDX-License-Identifier: MIT
 * Specifies the second half of an adapter: the low-rank product that is added to finished outputs. Per output, sum =
 * fma(code, low, sum) from +0, ranks ascending; then y = fma(sum, scale, y). */
#include "kernels/kernels.h"
#include "kernels/math.h"

#define ROWS WHIT_TILE_ROWS

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void whit_low_rank_generic(const whit_tensor *b, const float *low, size_t low_stride, uint32_t n_tokens,
                           uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride)
{
    int8_t codes[WHIT_CHUNK_COLS * ROWS];
    float fields[WHIT_MAX_FIELDS][ROWS];
    uint32_t rank = b->type.n_cols;
    for (uint32_t tile = tile_begin; tile < tile_end; tile++) {
        uint32_t n_rows = min_u32(ROWS, b->type.n_rows - tile * ROWS);
        whit_tile_codes(b, tile, 0, rank, codes);
        whit_tile_fields(b, tile, 0, fields);
        for (uint32_t t = 0; t < n_tokens; t++) {
            const float *x = low + t * low_stride;
            float *out = y + t * y_stride + (size_t)tile * ROWS;
            for (uint32_t r = 0; r < n_rows; r++) {
                float sum = 0;
                for (uint32_t j = 0; j < rank; j++) sum = fmaf((float)codes[j * ROWS + r], x[j], sum);
                out[r] = fmaf(sum, fields[0][r], out[r]);
            }
        }
    }
}
