/* SPDX-License-Identifier: MIT
 * Specifies the screened head. An i8s code is 16 h + l - 128; the screen reads h and assumes that l is 7.5, so per step
 * the row's sum is 16 (sum of h q) - 120.5 (sum of q). */
#include "base/mem.h"
#include "kernels/codec_lines.h"
#include "kernels/kernels.h"
#include "kernels/math.h"

#define ROWS WHIT_TILE_ROWS

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void screen_tile(const whit_tensor *w, const whit_acts *x, uint32_t token, uint32_t tile, float *logits)
{
    const int8_t *q = x->i8 + token * x->stride;
    const uint8_t *lines = w->part[WHIT_PART_CODES] + tile * whit_codec_geometry(&w->type).tile_bytes;
    float fields[WHIT_MAX_FIELDS][ROWS], acc[ROWS] = {0};
    whit_tile_fields(w, tile, 0, fields);
    for (uint32_t step = 0; step < x->n_steps; step++) {
        int32_t sums[ROWS] = {0};
        uint32_t end = whit_acts_step_end(x, step);
        for (uint32_t k = whit_acts_step_begin(x, step); k < end; k += 8) {
            int8_t high[8 * ROWS];
            whit_line_unpack(WHIT_CODEC_I8S, lines + k / 8 * WHIT_LINE_BYTES, high);
            for (uint32_t c = 0; c < min_u32(8, end - k); c++)
                for (uint32_t r = 0; r < ROWS; r++) sums[r] += high[c * ROWS + r] * q[k + c];
        }
        size_t at = (size_t)token * x->n_steps + step;
        float middle = -120.5f * (float)x->sums[at];
        for (uint32_t r = 0; r < ROWS; r++)
            acc[r] = fmaf(fmaf(16.0f, (float)sums[r], middle), fields[0][r] * x->scales[at], acc[r]);
    }
    memcpy(logits, acc, min_u32(ROWS, w->type.n_rows - tile * ROWS) * sizeof *logits);
}

void whit_screen_generic(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                         float *logits, size_t stride)
{
    for (uint32_t token = 0; token < x->n_tokens; token++)
        for (uint32_t tile = tile_begin; tile < tile_end; tile++)
            screen_tile(w, x, token, tile, logits + token * stride + (size_t)tile * ROWS);
}

/* Unpacks columns [k, k + n) of a row, eight at a time from four bytes of high nibbles and four of low nibbles. k is a
 * multiple of 8, and n is rounded up to a multiple of 8. */
static void row_codes(const uint8_t *high, const uint8_t *low, uint32_t k, uint32_t n, int8_t *codes)
{
    const uint32_t nibbles = 0x0F0F0F0F, signs = 0x80808080; /* code = u8 - 128 as int8, which flips the highest bit */
    for (uint32_t j = k / 8; j < (k + n + 7) / 8; j++, codes += 8) {
        uint32_t upper = whit_load_u32(high + (size_t)j * WHIT_LINE_BYTES);
        uint32_t lower = whit_load_u32(low + (size_t)j * 4);
        uint32_t first = ((upper & nibbles) << 4 | (lower & nibbles)) ^ signs;
        uint32_t second = ((upper & ~nibbles) | (lower >> 4 & nibbles)) ^ signs;
        memcpy(codes, &first, 4);
        memcpy(codes + 4, &second, 4);
    }
}

static int32_t row_sum(const uint8_t *high, const uint8_t *low, const int8_t *q, uint32_t begin, uint32_t end)
{
    int8_t codes[WHIT_CHUNK_COLS];
    int32_t sum = 0;
    for (uint32_t k = begin; k < end; k += WHIT_CHUNK_COLS) {
        uint32_t n = min_u32(WHIT_CHUNK_COLS, end - k);
        row_codes(high, low, k, n, codes);
        for (uint32_t i = 0; i < n; i++) sum += codes[i] * q[k + i];
    }
    return sum;
}

void whit_rescore_generic(const whit_tensor *w, const whit_acts *x, uint32_t token, const uint32_t *rows, uint32_t n,
                          float *logits)
{
    whit_geometry g = whit_codec_geometry(&w->type);
    const int8_t *q = x->i8 + token * x->stride;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i], r = row % ROWS;
        const uint8_t *high = w->part[WHIT_PART_CODES] + row / ROWS * g.tile_bytes + 4 * r;
        const uint8_t *low = w->part[WHIT_PART_LOW] + whit_low_offset(&w->type, row, 0);
        float fields[WHIT_MAX_FIELDS][ROWS], acc = 0;
        whit_tile_fields(w, row / ROWS, 0, fields);
        for (uint32_t step = 0; step < x->n_steps; step++) {
            int32_t sum = row_sum(high, low, q, whit_acts_step_begin(x, step), whit_acts_step_end(x, step));
            size_t at = (size_t)token * x->n_steps + step;
            acc = fmaf((float)sum, fields[0][r] * x->scales[at], acc);
        }
        logits[i] = acc;
    }
}

/* Inserts `row` at index i or below it in a heap of n rows whose first row has the least logit. */
static void sift_down(const float *logits, uint32_t *rows, uint32_t n, uint32_t i, uint32_t row)
{
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && logits[rows[child + 1]] < logits[rows[child]]) child++;
        if (!(logits[rows[child]] < logits[row])) break;
        rows[i] = rows[child];
    }
    rows[i] = row;
}

void whit_best_rows_generic(const float *logits, uint32_t n, uint32_t n_best, uint32_t *rows)
{
    for (uint32_t i = 0; i < n_best; i++) rows[i] = i;
    for (uint32_t i = n_best / 2; i--;) sift_down(logits, rows, n_best, i, rows[i]);
    for (uint32_t row = n_best; row < n; row++)
        if (logits[row] > logits[rows[0]]) sift_down(logits, rows, n_best, 0, row);
}

uint32_t whit_survive_generic(const whit_tensor *w, const float *logits, float bound, float threshold, uint32_t *rows)
{
    float fields[WHIT_MAX_FIELDS][ROWS];
    uint32_t n = 0;
    for (uint32_t row = 0; row < w->type.n_rows; row++) {
        if (row % ROWS == 0) whit_tile_fields(w, row / ROWS, 0, fields);
        /* "not less" instead of "greater or equal", so that a NaN survives and is noticed. */
        if (!(fmaf(bound, fabsf(fields[0][row % ROWS]), logits[row]) < threshold)) rows[n++] = row;
    }
    return n;
}
