/* SPDX-License-Identifier: MIT */
#include "kernels/corrections.h"

#include <math.h>

#define ROWS WHIT_TILE_ROWS
#define HEAD 64 /* bytes before a plane's columns and before the codes of factor A */

static uint32_t tiles_of(const whit_tensor_type *type)
{
    return (type->n_rows + ROWS - 1) / ROWS;
}

bool whit_may_be_corrected(const whit_tensor_type *type)
{
    bool codec = type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5 || type->codec == WHIT_CODEC_B1 ||
        type->codec == WHIT_CODEC_Q2 || type->codec == WHIT_CODEC_L2;
    return codec && type->layout == WHIT_LAYOUT_TILE16 && type->act != WHIT_TENSOR_ACT_FIXED;
}

whit_tensor_type whit_plane_type(const whit_tensor_type *type, uint32_t n)
{
    return (whit_tensor_type){.codec = WHIT_CODEC_B1,
                              .layout = WHIT_LAYOUT_TILE16,
                              .scale_kind = WHIT_SCALE_ROW,
                              .scale_type = WHIT_SCALE_F16,
                              .act = type->act,
                              .n_rows = type->n_rows,
                              .n_cols = n};
}

whit_tensor_type whit_factor_type(uint32_t n_rows, uint32_t n_cols)
{
    return (whit_tensor_type){.codec = WHIT_CODEC_I8,
                              .layout = WHIT_LAYOUT_TILE16,
                              .scale_kind = WHIT_SCALE_ROW,
                              .n_rows = n_rows,
                              .n_cols = n_cols};
}

/* Makes *matrix a view of the codes at `data` and of the row scales, which directly follow them; returns the end of the
 * scales. */
static const uint8_t *matrix_at(const uint8_t *data, const whit_tensor_type *type, whit_tensor *matrix)
{
    *matrix = (whit_tensor){.type = *type};
    for (int part = WHIT_PART_CODES; part <= WHIT_PART_ROW_SCALES; part++) {
        (void)whit_codec_part_bytes(type, (whit_part)part, &matrix->part_bytes[part]);
        matrix->part[part] = data;
        data += matrix->part_bytes[part];
    }
    return data;
}

static uint64_t matrix_bytes(const whit_tensor_type *type)
{
    uint64_t bytes = 0;
    (void)whit_codec_total_bytes(type, &bytes);
    return bytes;
}

static uint64_t columns_bytes(uint32_t n)
{
    return HEAD + whit_round_up(2 * (uint64_t)n, 64);
}

bool whit_plane_of(const whit_tensor *w, whit_plane *plane)
{
    const uint8_t *part = w->part[WHIT_PART_PLANE];
    if (!w->part_bytes[WHIT_PART_PLANE]) return false;
    plane->n = whit_load_u32(part);
    plane->columns = part + HEAD;
    whit_tensor_type type = whit_plane_type(&w->type, plane->n);
    matrix_at(part + columns_bytes(plane->n), &type, &plane->signs);
    return true;
}

bool whit_low_rank_of(const whit_tensor *w, whit_low_rank_pair *pair)
{
    if (!w->part_bytes[WHIT_PART_FACTOR_A]) return false;
    pair->rank = whit_load_u32(w->part[WHIT_PART_FACTOR_A]);
    whit_tensor_type a = whit_factor_type(pair->rank, w->type.n_cols), b = whit_factor_type(w->type.n_rows, pair->rank);
    matrix_at(w->part[WHIT_PART_FACTOR_A] + HEAD, &a, &pair->a);
    matrix_at(w->part[WHIT_PART_FACTOR_B], &b, &pair->b);
    return true;
}

static const char *plane_fault(const whit_tensor *w)
{
    uint64_t bytes = w->part_bytes[WHIT_PART_PLANE];
    if (!bytes) return NULL;
    if (bytes <= HEAD) return "its sign plane is truncated";
    uint32_t n = whit_load_u32(w->part[WHIT_PART_PLANE]);
    if (!n || n > w->type.n_cols) return "its sign plane has no columns, or more than the tensor";
    whit_tensor_type type = whit_plane_type(&w->type, n);
    return bytes != columns_bytes(n) + matrix_bytes(&type) ? "its sign plane is not as long as it says" : NULL;
}

static const char *low_rank_fault(const whit_tensor *w)
{
    uint64_t a_bytes = w->part_bytes[WHIT_PART_FACTOR_A], b_bytes = w->part_bytes[WHIT_PART_FACTOR_B];
    if (!a_bytes && !b_bytes) return NULL;
    if (a_bytes <= HEAD) return "one factor of its low-rank pair is missing";
    uint32_t rank = whit_load_u32(w->part[WHIT_PART_FACTOR_A]);
    if (!rank || rank > WHIT_LOW_RANK_MAX) return "the rank of its low-rank pair is not between 1 and 256";
    whit_tensor_type a = whit_factor_type(rank, w->type.n_cols), b = whit_factor_type(w->type.n_rows, rank);
    return a_bytes != HEAD + matrix_bytes(&a) || b_bytes != matrix_bytes(&b)
        ? "its low-rank pair is not as long as it says"
        : NULL;
}

static const char *outliers_fault(const whit_tensor *w)
{
    const uint8_t *part = w->part[WHIT_PART_OUTLIERS];
    uint64_t bytes = part ? w->part_bytes[WHIT_PART_OUTLIERS] : 0;
    uint32_t n_tiles = tiles_of(&w->type);
    if (!bytes) return NULL;
    uint64_t head = whit_outliers_head_bytes(n_tiles);
    if (bytes <= head) return "its outliers are truncated";
    if ((bytes - head) / 2 > (uint64_t)n_tiles * (WHIT_OUTLIERS_HEAD_UNITS + 2 * ROWS * UINT8_MAX))
        return "it has more outliers than its rows can contain";
    if (head + 2 * (uint64_t)whit_load_u32(part + 4 * (uint64_t)n_tiles) != bytes)
        return "its outliers do not end where they say";
    return NULL;
}

const char *whit_corrections_fault(const whit_tensor *w)
{
    if (!whit_is_corrected(w) && !w->part_bytes[WHIT_PART_FACTOR_B]) return NULL;
    if (!whit_may_be_corrected(&w->type)) return "it has corrections, but its codec supports none";
    const char *fault = plane_fault(w);
    if (!fault) fault = outliers_fault(w);
    return fault ? fault : low_rank_fault(w);
}

void whit_plane_gather(const whit_plane *plane, const whit_acts *x, float *out, size_t stride)
{
    const uint32_t shift = x->spec.step ? (uint32_t)__builtin_ctz(x->spec.step) : 31;
    for (uint32_t t = 0; t < x->n_tokens; t++, out += stride)
        for (uint32_t j = 0; j < plane->n; j++) {
            uint32_t col = whit_load_u16(plane->columns + 2 * (size_t)j);
            if (col >= x->n_cols)
                out[j] = 0;
            else if (x->spec.kind == WHIT_ACTS_F32)
                out[j] = x->f32[t * x->stride + col];
            else
                out[j] = (float)whit_acts_code(x, t, col) * x->scales[(size_t)t * x->n_steps + (col >> shift)];
        }
}

static void add_plane_row(const whit_tensor *w, uint32_t row, float *values)
{
    whit_plane plane;
    if (!whit_plane_of(w, &plane)) return;
    for (uint32_t begin = 0, n; begin < plane.n; begin += n) {
        int8_t codes[WHIT_CHUNK_COLS * ROWS];
        float fields[WHIT_MAX_FIELDS][ROWS];
        n = plane.n - begin < WHIT_CHUNK_COLS ? plane.n - begin : WHIT_CHUNK_COLS;
        whit_tile_codes(&plane.signs, row / ROWS, begin, n, codes);
        whit_tile_fields(&plane.signs, row / ROWS, 0, fields);
        for (uint32_t j = 0; j < n; j++) {
            uint32_t col = whit_load_u16(plane.columns + 2 * (size_t)(begin + j));
            if (col < w->type.n_cols) values[col] += (float)codes[j * ROWS + row % ROWS] * fields[0][row % ROWS];
        }
    }
}

static void add_low_rank_row(const whit_tensor *w, uint32_t row, float *values)
{
    whit_low_rank_pair pair;
    if (!whit_low_rank_of(w, &pair)) return;
    float b[WHIT_LOW_RANK_MAX];
    whit_codec_get_rows(&pair.b, (const int32_t[]){(int32_t)row}, 1, b, 0);
    for (uint32_t k = 0; k < w->type.n_cols; k += WHIT_CHUNK_COLS) {
        uint32_t n = w->type.n_cols - k < WHIT_CHUNK_COLS ? w->type.n_cols - k : WHIT_CHUNK_COLS;
        float sums[WHIT_CHUNK_COLS] = {0};
        for (uint32_t j = 0; j < pair.rank; j++) {
            int8_t codes[WHIT_CHUNK_COLS * ROWS];
            float fields[WHIT_MAX_FIELDS][ROWS];
            whit_tile_codes(&pair.a, j / ROWS, k, n, codes);
            whit_tile_fields(&pair.a, j / ROWS, 0, fields);
            for (uint32_t i = 0; i < n; i++)
                sums[i] += b[j] * ((float)codes[i * ROWS + j % ROWS] * fields[0][j % ROWS]);
        }
        for (uint32_t i = 0; i < n; i++) values[k + i] += sums[i];
    }
}

static void add_outliers_row(const whit_tensor *w, uint32_t row, float *values)
{
    whit_outlier_tile tile;
    if (!w->part_bytes[WHIT_PART_OUTLIERS] || !whit_outliers_of_tile(w, row / ROWS, &tile)) return;
    uint32_t at = 0;
    for (uint32_t r = 0; r < row % ROWS; r++) at += tile.counts[r];
    for (uint32_t end = at + tile.counts[row % ROWS]; at < end; at++) {
        uint32_t col = whit_outlier_column(&tile, w->type.n_cols, at);
        if (col < w->type.n_cols) values[col] = fmaf((float)tile.values[at], tile.scale, values[col]);
    }
}

void whit_corrections_add_row(const whit_tensor *w, uint32_t row, float *values)
{
    add_plane_row(w, row, values);
    add_outliers_row(w, row, values);
    add_low_rank_row(w, row, values);
}

/* ---- building --------------------------------------------------------------------------------- */

/* Appends the record of a tile whose outliers are [begin, end); *fits becomes false if a row has more than 255 of them.
 * The result is false if memory runs out. */
static bool put_tile(whit_buf *out, uint32_t n_cols, const whit_outlier *begin, const whit_outlier *end, float scale,
                     bool *fits)
{
    uint32_t counts[ROWS] = {0}, column_bytes = whit_outlier_column_bytes(n_cols);
    uint16_t half = whit_f16_from_f32(scale);
    bool ok = whit_buf_append(out, &half, sizeof half);
    for (const whit_outlier *o = begin; o < end; o++) *fits = ++counts[o->row % ROWS] <= UINT8_MAX && *fits;
    for (uint32_t r = 0; r < ROWS; r++) ok = ok && whit_buf_append(out, &(uint8_t){(uint8_t)counts[r]}, 1);
    for (const whit_outlier *o = begin; ok && o < end; o++) {
        uint8_t column[2] = {(uint8_t)o->col, (uint8_t)(o->col >> 8)};
        ok = whit_buf_append(out, column, column_bytes);
    }
    for (const whit_outlier *o = begin; ok && o < end; o++) ok = whit_buf_append(out, &o->value, 1);
    return ok && whit_buf_align(out, 2);
}

whit_status whit_outliers_build(const whit_tensor_type *type, const whit_outlier *outliers, size_t n,
                                const float *scales, whit_buf *out, whit_error *error)
{
    uint32_t n_tiles = tiles_of(type);
    uint64_t head = whit_outliers_head_bytes(n_tiles);
    bool fits = type->n_cols <= 1u << 16, ok = whit_buf_reserve(out, head);
    if (ok) {
        memset(out->data, 0, head);
        out->size_bytes = head;
    }
    const whit_outlier *at = outliers, *end = outliers + n;
    for (uint32_t tile = 0; ok && tile < n_tiles; tile++) {
        const whit_outlier *begin = at;
        while (at < end && at->row / ROWS == tile) at++;
        if (at > begin) ok = put_tile(out, type->n_cols, begin, at, scales[tile], &fits);
        uint32_t units = (uint32_t)((out->size_bytes - head) / 2);
        if (ok) memcpy(out->data + 4 * ((uint64_t)tile + 1), &units, sizeof units);
    }
    if (!ok) return whit_fail_memory(error, "the outliers of a matrix", n * sizeof *outliers);
    if (!fits)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "a row has more than 255 outliers, or the tensor more than 65,536 columns: the limits");
    return WHIT_OK;
}

/* Appends a head of 64 bytes: the u32 n, then zeros. */
static bool put_head(whit_buf *out, uint32_t n)
{
    const uint32_t words[HEAD / 4] = {n};
    return whit_buf_append(out, words, sizeof words);
}

static whit_status put_matrix(const whit_tensor_type *type, const whit_rows *rows, const whit_allocator *allocator,
                              whit_buf *out, whit_error *error)
{
    whit_tensor matrix;
    uint64_t bytes = matrix_bytes(type);
    uint8_t *data = whit_zalloc(allocator, bytes), *part[WHIT_PART_COUNT] = {0};
    if (!data) return whit_fail_memory(error, "the corrections of a matrix", bytes);
    matrix_at(data, type, &matrix);
    part[WHIT_PART_CODES] = data;
    part[WHIT_PART_ROW_SCALES] = data + matrix.part_bytes[WHIT_PART_CODES];
    whit_status status = whit_codec_pack(type, 0, type->n_rows, rows, part, error);
    if (status == WHIT_OK && !whit_buf_append(out, data, bytes))
        status = whit_fail_memory(error, "the corrections of a matrix", bytes);
    whit_free(allocator, data, bytes);
    return status;
}

whit_status whit_plane_build(const whit_tensor_type *type, const uint16_t *columns, uint32_t n, const whit_rows *signs,
                             const whit_allocator *allocator, whit_buf *out, whit_error *error)
{
    whit_tensor_type plane = whit_plane_type(type, n);
    if (!put_head(out, n) || !whit_buf_append(out, columns, n * sizeof *columns) || !whit_buf_align(out, 64))
        return whit_fail_memory(error, "a matrix's plane of second signs", columns_bytes(n));
    return put_matrix(&plane, signs, allocator, out, error);
}

whit_status whit_low_rank_build(const whit_tensor_type *type, uint32_t rank, const whit_rows *a, const whit_rows *b,
                                const whit_allocator *allocator, whit_buf *out_a, whit_buf *out_b, whit_error *error)
{
    whit_tensor_type a_type = whit_factor_type(rank, type->n_cols), b_type = whit_factor_type(type->n_rows, rank);
    if (!put_head(out_a, rank)) return whit_fail_memory(error, "a matrix's low-rank pair", HEAD);
    WHIT_TRY(put_matrix(&a_type, a, allocator, out_a, error));
    return put_matrix(&b_type, b, allocator, out_b, error);
}

/* ---- identity ---------------------------------------------------------------------------------- */

void whit_corrections_digest(const whit_tensor *w, whit_hash *hash)
{
    for (uint32_t kind = WHIT_PART_PLANE; kind < WHIT_PART_COUNT; kind++) {
        uint64_t bytes = w->part_bytes[kind];
        if (!bytes) continue;
        whit_hash_add(hash, &kind, sizeof kind);
        whit_hash_add(hash, &bytes, sizeof bytes);
        whit_hash_add(hash, w->part[kind], bytes);
    }
}
