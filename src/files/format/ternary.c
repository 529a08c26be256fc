/* SPDX-License-Identifier: MIT */
#include "format/ternary.h"

#include "base/half.h"

#include <math.h>

bool whit_packed_ternary_row(const whit_packed_ternary *packed, uint64_t row, int8_t *codes)
{
    uint64_t quarter = packed->n_rows / 4, c = 0, eight, threes = 0;
    unsigned shift = 2 * (unsigned)(row / quarter);
    const uint8_t *bytes = packed->data + row % quarter * packed->n_cols;
    for (; c + 8 <= packed->n_cols; c += 8) { /* subtract 1 from each byte; bit 7 prevents borrows between bytes */
        memcpy(&eight, bytes + c, 8);
        eight = eight >> shift & 0x0303030303030303u;
        threes |= eight & eight >> 1;
        eight = ((eight | 0x8080808080808080u) - 0x0101010101010101u) ^ 0x8080808080808080u;
        memcpy(codes + c, &eight, 8);
    }
    for (; c < packed->n_cols; c++) {
        unsigned code = bytes[c] >> shift & 3;
        threes |= code & code >> 1;
        codes[c] = (int8_t)(code - 1);
    }
    return (threes & 0x0101010101010101u) == 0;
}

/* Returns the bits of an element's magnitude, in the element's own width. Equal bits mean equal magnitudes. */
static uint32_t magnitude_at(const whit_ggml_view *view, uint64_t i)
{
    if (view->kind == WHIT_GGML_F32) return whit_load_u32(view->data + 4 * i) & 0x7FFFFFFFu;
    return whit_load_u16(view->data + 2 * i) & 0x7FFFu;
}

bool whit_float_is_ternary(const whit_ggml_view *view, float *scale)
{
    uint32_t found = 0;
    uint64_t n = view->n_cols * view->n_rows;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t magnitude = magnitude_at(view, i);
        if (magnitude == 0 || magnitude == found) continue;
        if (found) return false;
        found = magnitude;
    }
    if (view->kind == WHIT_GGML_F32)
        *scale = whit_f32_from_bits(found);
    else if (view->kind == WHIT_GGML_F16)
        *scale = whit_f32_from_f16((uint16_t)found);
    else
        *scale = whit_f32_from_bf16((uint16_t)found);
    return isfinite(*scale);
}

double whit_float_absmean(const whit_ggml_view *view, float *row)
{
    double sum = 0;
    for (uint64_t r = 0; r < view->n_rows; r++) {
        whit_ggml_row_f32(view, r, row);
        for (uint64_t c = 0; c < view->n_cols; c++) sum += fabs((double)row[c]);
    }
    sum /= (double)view->n_cols * (double)view->n_rows;
    return isfinite(sum) ? sum : (double)NAN;
}

void whit_round_ternary(const float *row, uint64_t n_cols, float inverse, int8_t *codes)
{
    /* Ties are rounded to even: a magnitude of exactly 1/2 becomes 0, a larger one 1. */
    for (uint64_t c = 0; c < n_cols; c++) {
        float scaled = row[c] * inverse;
        codes[c] = (int8_t)((scaled > 0.5f) - (scaled < -0.5f));
    }
}

void whit_round_ternary_row(const whit_ggml_view *view, uint64_t row, float inverse, int8_t *codes)
{
    enum { BLOCK_COLS = 512 };
    float block[BLOCK_COLS];
    size_t elem_bytes = view->kind == WHIT_GGML_F32 ? 4 : 2;
    const uint8_t *data = view->data + row * view->n_cols * elem_bytes;
    for (uint64_t begin = 0; begin < view->n_cols; begin += BLOCK_COLS) {
        uint64_t left = view->n_cols - begin, n = left < BLOCK_COLS ? left : BLOCK_COLS;
        whit_ggml_view part = {view->kind, n, 1, data + begin * elem_bytes};
        whit_ggml_row_f32(&part, 0, block);
        whit_round_ternary(block, n, inverse, codes + begin);
    }
}
