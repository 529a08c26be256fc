/* SPDX-License-Identifier: MIT
 * Specifies matrix products: lanes are the sixteen rows of a tile, every output is one chain over k. Not tuned: MR = 16
 * rows, NR = 8 tokens, KC = WHIT_CHUNK_COLS, the number of columns of a tile that are unpacked at once.
 *
 *   float weights       acc = fma(w, x, acc), k ascending
 *   codes, f32          per scale group g = fma(code, x, g), then acc = fma(g, scale, acc)
 *   codes, i8           per step an int32 sum, then acc = fma(sum, scale * scale_x, acc)
 *   q2                  the same for s' with a, then for e' with b
 *   superblocks         per group an int32 sum times its integer scale, added up for 128 columns; then
 *                       acc = fma(total, factor * scale_x, acc) and, for K4 and K16, with the sum of minimum *
 *                       sum of q as total, acc = fma(-(factor * scale_x), total, acc)
 *   with an offset      last: acc = fma(offset, sum of x, acc) for f32, and
 *                       acc = fma(offset * scale_x, sum of q, acc) for i8
 *
 * Every acc starts at +0. Letters: w weight, x activation, g group, t token, r row of the tile. */
#include "kernels/kernels.h"
#include "kernels/math.h"

#define ROWS   WHIT_TILE_ROWS
#define CHUNK  WHIT_CHUNK_COLS
#define TOKENS 8

typedef float lane_floats[ROWS];
typedef int32_t lane_ints[ROWS];

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void store(const whit_tensor *w, uint32_t tile, uint32_t t, uint32_t n, lane_floats acc[TOKENS], float *y,
                  size_t y_stride)
{
    uint32_t n_rows = min_u32(ROWS, w->type.n_rows - tile * ROWS);
    for (uint32_t i = 0; i < n; i++)
        memcpy(y + (t + i) * y_stride + (size_t)tile * ROWS, acc[i], n_rows * sizeof(float));
}

/* ---- float weights -------------------------------------------------------------------------- */

static void run_floats(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                       size_t y_stride, void *scratch)
{
    float *values = scratch;
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t t = 0; t < x->n_tokens; t += TOKENS) {
            uint32_t n = min_u32(TOKENS, x->n_tokens - t);
            lane_floats acc[TOKENS] = {{0}};
            for (uint32_t k = 0; k < x->n_cols; k += CHUNK) {
                uint32_t n_k = min_u32(CHUNK, x->n_cols - k);
                whit_tile_floats(w, tile, k, n_k, values);
                for (uint32_t i = 0; i < n; i++) {
                    const float *xs = x->f32 + (t + i) * x->stride + k;
                    for (uint32_t j = 0; j < n_k; j++)
                        for (uint32_t r = 0; r < ROWS; r++) acc[i][r] = fmaf(values[j * ROWS + r], xs[j], acc[i][r]);
                }
            }
            store(w, tile, t, n, acc, y, y_stride);
        }
}

static bool accepts_floats(const whit_tensor_type *type, const whit_acts_spec *spec)
{
    return whit_codec_find(type->codec)->is_float && type->layout == WHIT_LAYOUT_TILE16 && spec->kind == WHIT_ACTS_F32;
}

static size_t floats_scratch(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)type, (void)spec, (void)n_tokens;
    return CHUNK * ROWS * sizeof(float);
}

const whit_matmul_kernel whit_matmul_f32_float_16x1_generic = {
    .name = "matmul_f32_float_16x1_generic",
    .min_tokens = 1,
    .max_tokens = UINT32_MAX,
    .accepts = accepts_floats,
    .scratch_bytes = floats_scratch,
    .run = run_floats,
};

/* ---- codes, f32 activations ----------------------------------------------------------------- */

/* Sums of one token and sixteen rows within the current scale group. */
typedef struct group_sums {
    lane_floats main, extra; /* main: sums of code * x, for q2 of s' * x; extra: for q2, sums of e' * x */
    float x;
} group_sums;

static void add_f32(group_sums *sums, bool is_q2, const int8_t *codes, const float *x, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++, codes += ROWS) {
        sums->x += x[j];
        if (!is_q2) {
            for (uint32_t r = 0; r < ROWS; r++) sums->main[r] = fmaf((float)codes[r], x[j], sums->main[r]);
            continue;
        }
        for (uint32_t r = 0; r < ROWS; r++) {
            sums->main[r] += codes[r] & 1 ? x[j] : -x[j];
            sums->extra[r] += codes[r] & 2 ? x[j] : -x[j];
        }
    }
}

static void flush_f32(const whit_tensor_type *type, const group_sums *sums, float fields[WHIT_MAX_FIELDS][ROWS],
                      lane_floats acc)
{
    unsigned field = 0;
    for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf(sums->main[r], fields[0][r], acc[r]);
    field++;
    if (type->codec == WHIT_CODEC_Q2) {
        for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf(sums->extra[r], fields[1][r], acc[r]);
        field++;
    }
    if (type->has_offset)
        for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf(fields[field][r], sums->x, acc[r]);
}

static void run_codes_f32(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                          size_t y_stride, void *scratch)
{
    int8_t *codes = scratch;
    bool is_q2 = w->type.codec == WHIT_CODEC_Q2;
    uint32_t group_cols = whit_codec_geometry(&w->type).group_cols;
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t t = 0; t < x->n_tokens; t += TOKENS) {
            uint32_t n = min_u32(TOKENS, x->n_tokens - t);
            lane_floats acc[TOKENS] = {{0}};
            group_sums sums[TOKENS] = {{{0}, {0}, 0}};
            for (uint32_t k = 0; k < x->n_cols;) {
                uint32_t chunk = k / CHUNK * CHUNK, group_end = (k / group_cols + 1) * group_cols;
                uint32_t end = min_u32(min_u32(chunk + CHUNK, group_end), x->n_cols);
                if (k == chunk) whit_tile_integers(w, tile, k, min_u32(CHUNK, x->n_cols - k), codes);
                for (uint32_t i = 0; i < n; i++)
                    add_f32(&sums[i], is_q2, codes + (k - chunk) * ROWS, x->f32 + (t + i) * x->stride + k, end - k);
                if (end == group_end || end == x->n_cols) {
                    float fields[WHIT_MAX_FIELDS][ROWS];
                    whit_tile_fields(w, tile, k / group_cols, fields);
                    for (uint32_t i = 0; i < n; i++) flush_f32(&w->type, &sums[i], fields, acc[i]);
                    memset(sums, 0, sizeof sums);
                }
                k = end;
            }
            store(w, tile, t, n, acc, y, y_stride);
        }
}

static bool accepts_codes_f32(const whit_tensor_type *type, const whit_acts_spec *spec)
{
    return !whit_codec_find(type->codec)->is_float && spec->kind == WHIT_ACTS_F32;
}

static size_t codes_scratch(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)type, (void)spec, (void)n_tokens;
    return CHUNK * ROWS;
}

const whit_matmul_kernel whit_matmul_f32_codes_16x1_generic = {
    .name = "matmul_f32_codes_16x1_generic",
    .min_tokens = 1,
    .max_tokens = UINT32_MAX,
    .accepts = accepts_codes_f32,
    .scratch_bytes = codes_scratch,
    .run = run_codes_f32,
};

/* ---- codes, integer activations ------------------------------------------------------------- */

typedef struct step_sums {
    lane_ints main, extra;
} step_sums;

/* Adds the products of n columns of one token. For q2 a code is s + 2 e with bits s and e, and the sums of s' q and e'
 * q are computed, with s', e' = ±1. */
static void add_i8(step_sums *sums, bool is_q2, const int8_t *codes, const int8_t *q, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++, codes += ROWS) {
        if (!is_q2) {
            for (uint32_t r = 0; r < ROWS; r++) sums->main[r] += codes[r] * q[j];
            continue;
        }
        for (uint32_t r = 0; r < ROWS; r++) {
            sums->main[r] += codes[r] & 1 ? q[j] : -q[j];
            sums->extra[r] += codes[r] & 2 ? q[j] : -q[j];
        }
    }
}

static void flush_i8(const whit_tensor_type *type, const step_sums *sums, float scale_x, int32_t sum_q,
                     float fields[WHIT_MAX_FIELDS][ROWS], lane_floats acc)
{
    unsigned field = 0;
    for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf((float)sums->main[r], fields[0][r] * scale_x, acc[r]);
    field++;
    if (type->codec == WHIT_CODEC_Q2) {
        for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf((float)sums->extra[r], fields[1][r] * scale_x, acc[r]);
        field++;
    }
    if (type->has_offset)
        for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf(fields[field][r] * scale_x, (float)sum_q, acc[r]);
}

/* Sums of one token and sixteen rows within 128 columns of a superblock. */
typedef struct super_sums {
    lane_ints scaled, minima;
} super_sums;

/* Ends a group: adds its sums times its integer scales, and the sum of activations times its integer minima, to *total;
 * clears *sums. */
static void add_group(super_sums *total, step_sums *sums, int32_t numbers[2][ROWS], int32_t sum_q)
{
    for (uint32_t r = 0; r < ROWS; r++) {
        total->scaled[r] += sums->main[r] * numbers[0][r];
        total->minima[r] += sum_q * numbers[1][r];
    }
    memset(sums, 0, sizeof *sums);
}

static void flush_super(const whit_tensor_type *type, super_sums *total, float scale_x, float factors[2][ROWS],
                        lane_floats acc)
{
    for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf((float)total->scaled[r], factors[0][r] * scale_x, acc[r]);
    if (type->has_offset)
        for (uint32_t r = 0; r < ROWS; r++) acc[r] = fmaf(-(factors[1][r] * scale_x), (float)total->minima[r], acc[r]);
    memset(total, 0, sizeof *total);
}

/* Unpacks one token's quaternary activations of columns [k, k + n) to q; returns q. */
static const int8_t *q2_codes(const whit_acts *x, uint32_t token, uint32_t k, uint32_t n, int8_t *q)
{
    const uint8_t *signs = x->planes + 2 * token * x->stride, *extras = signs + x->stride;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t column = k + i, byte = column / 32 * 4 + column % 4, bit = column % 32 / 4;
        unsigned sign = signs[byte] >> bit & 1, extra = extras[byte] >> bit & 1;
        int magnitude = sign == extra ? 2 : 1;
        q[i] = (int8_t)(sign ? magnitude : -magnitude);
    }
    return q;
}

static void run_super_i8(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                         size_t y_stride, void *scratch)
{
    int8_t *codes = scratch, *q_scratch = codes + CHUNK * ROWS;
    const whit_tensor_type *type = &w->type;
    uint32_t group = type->group, n_groups = type->n_cols / group;
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t t = 0; t < x->n_tokens; t += TOKENS) {
            uint32_t n = min_u32(TOKENS, x->n_tokens - t);
            lane_floats acc[TOKENS] = {{0}};
            super_sums total[TOKENS] = {0};
            step_sums sums[TOKENS] = {{{0}, {0}}};
            for (uint32_t g = 0; g < n_groups; g++) {
                uint32_t k = g * group, chunk = k / CHUNK * CHUNK, end = k + group;
                int32_t numbers[2][ROWS];
                if (k == chunk) whit_tile_integers(w, tile, k, min_u32(CHUNK, x->n_cols - k), codes);
                whit_tile_numbers(w, tile, g, numbers);
                for (uint32_t i = 0; i < n; i++) {
                    const int8_t *q = x->spec.kind == WHIT_ACTS_Q2 ? q2_codes(x, t + i, k, group, q_scratch)
                                                                   : x->i8 + (t + i) * x->stride + k;
                    add_i8(&sums[i], false, codes + (k - chunk) * ROWS, q, group);
                    add_group(&total[i], &sums[i], numbers, x->sums[(size_t)(t + i) * x->n_steps + g]);
                }
                if (end % WHIT_SUPER_ACTS) continue;
                float factors[2][ROWS];
                whit_tile_factors(w, tile, k, factors);
                for (uint32_t i = 0; i < n; i++)
                    flush_super(type, &total[i], x->scales[(size_t)(t + i) * x->n_steps + g], factors, acc[i]);
            }
            store(w, tile, t, n, acc, y, y_stride);
        }
}

static void run_codes_i8(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                         size_t y_stride, void *scratch)
{
    int8_t *codes = scratch, *q_scratch = codes + CHUNK * ROWS;
    bool is_q2 = w->type.codec == WHIT_CODEC_Q2, planes = x->spec.kind == WHIT_ACTS_Q2;
    uint32_t group_cols = whit_codec_geometry(&w->type).group_cols;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    if (whit_scale_in_superblocks(w->type.scale_type)) {
        run_super_i8(w, x, tile_begin, tile_end, y, y_stride, scratch);
        return;
    }
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t t = 0; t < x->n_tokens; t += TOKENS) {
            uint32_t n = min_u32(TOKENS, x->n_tokens - t);
            lane_floats acc[TOKENS] = {{0}};
            step_sums sums[TOKENS] = {{{0}, {0}}};
            for (uint32_t k = 0; k < x->n_cols;) {
                uint32_t chunk = k / CHUNK * CHUNK, step = k / step_cols;
                uint32_t step_end = (step + 1) * step_cols;
                uint32_t end = min_u32(min_u32(chunk + CHUNK, step_end), x->n_cols);
                if (k == chunk) whit_tile_integers(w, tile, k, min_u32(CHUNK, x->n_cols - k), codes);
                for (uint32_t i = 0; i < n; i++) {
                    const int8_t *q =
                        planes ? q2_codes(x, t + i, k, end - k, q_scratch) : x->i8 + (t + i) * x->stride + k;
                    add_i8(&sums[i], is_q2, codes + (k - chunk) * ROWS, q, end - k);
                }
                if (end == step_end || end == x->n_cols) {
                    float fields[WHIT_MAX_FIELDS][ROWS];
                    whit_tile_fields(w, tile, k / group_cols, fields);
                    for (uint32_t i = 0; i < n; i++) {
                        size_t at = (size_t)(t + i) * x->n_steps + step;
                        flush_i8(&w->type, &sums[i], x->scales[at], x->sums[at], fields, acc[i]);
                    }
                    memset(sums, 0, sizeof sums);
                }
                k = end;
            }
            store(w, tile, t, n, acc, y, y_stride);
        }
}

static bool accepts_codes_i8(const whit_tensor_type *type, const whit_acts_spec *spec)
{
    return !whit_codec_find(type->codec)->is_float && spec->kind == WHIT_ACTS_I8;
}

/* Accepts every integer codec, not only b1 and q2, because the factors of adapters are multiplied by the same
 * activations as the matrix. */
static bool accepts_planes(const whit_tensor_type *type, const whit_acts_spec *spec)
{
    return !whit_codec_find(type->codec)->is_float && spec->kind == WHIT_ACTS_Q2;
}

static size_t codes_i8_scratch(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)type, (void)spec, (void)n_tokens;
    return CHUNK * (ROWS + 1);
}

const whit_matmul_kernel whit_matmul_i8_codes_16x1_generic = {
    .name = "matmul_i8_codes_16x1_generic",
    .min_tokens = 1,
    .max_tokens = UINT32_MAX,
    .accepts = accepts_codes_i8,
    .scratch_bytes = codes_i8_scratch,
    .run = run_codes_i8,
};

/* Unpacks quaternary activations to int8 and multiplies these; a popcount kernel computes the same integers. */
const whit_matmul_kernel whit_matmul_q2_planes_16x1_generic = {
    .name = "matmul_q2_planes_16x1_generic",
    .min_tokens = 1,
    .max_tokens = UINT32_MAX,
    .accepts = accepts_planes,
    .scratch_bytes = codes_i8_scratch,
    .run = run_codes_i8,
};
