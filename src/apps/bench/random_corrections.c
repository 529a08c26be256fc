/* SPDX-License-Identifier: MIT
 * Draws random corrections of a matrix, as many as compression makes: a second sign plane on an eighth of the columns,
 * 0.3 outliers per 100 weights, a low-rank pair of rank 16. Their values are small compared to those of the matrix, so
 * that activations keep their magnitude. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "bench/bench.h"

enum { PLANE_SHARE = 8, RANK = 16, MEAN_GAP = 333 };

/* Allocates rows and draws their codes, of format b1 or i8, at random; all rows have the given scale. */
static bool random_rows(const whit_tensor_type *type, float scale, whit_rng *rng, whit_rows *rows)
{
    size_t n = (size_t)type->n_rows * type->n_cols;
    int8_t *codes = malloc(n);
    float *scales = malloc(type->n_rows * sizeof *scales);
    *rows = (whit_rows){.elems = codes, .fields = scales};
    if (!codes || !scales) return false;
    for (size_t i = 0; i < n; i++) {
        int8_t code = (int8_t)whit_rng_next(rng);
        if (type->codec == WHIT_CODEC_B1)
            codes[i] = code < 0 ? -1 : 1;
        else
            codes[i] = code;
    }
    for (uint32_t row = 0; row < type->n_rows; row++) scales[row] = scale;
    return true;
}

static void free_rows(whit_rows *rows)
{
    free(rows->elems);
    free(rows->fields);
}

static whit_status random_outliers(const whit_tensor_type *type, float size, whit_rng *rng, whit_buf *part,
                                   whit_error *error)
{
    size_t n = 0, most = (size_t)type->n_rows * type->n_cols / MEAN_GAP + type->n_rows;
    uint32_t n_tiles = (type->n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    whit_outlier *list = malloc(most * sizeof *list);
    float *scales = malloc(n_tiles * sizeof *scales);
    for (uint32_t tile = 0; scales && tile < n_tiles; tile++) scales[tile] = size / 127;
    for (uint32_t row = 0; list && row < type->n_rows; row++)
        for (uint64_t col = whit_rng_below(rng, 2 * MEAN_GAP); col < type->n_cols && n < most;
             col += 1 + whit_rng_below(rng, 2 * MEAN_GAP))
            list[n++] = (whit_outlier){row, (uint32_t)col, (int8_t)whit_rng_next(rng)};
    whit_status status = list && scales ? whit_outliers_build(type, list, n, scales, part, error)
                                        : whit_fail_memory(error, "the outliers of a matrix", most * sizeof *list);
    free(list);
    free(scales);
    return status;
}

static whit_status random_plane(const whit_tensor_type *type, float size, whit_rng *rng, whit_buf *part,
                                whit_error *error)
{
    uint32_t n = type->n_cols / PLANE_SHARE;
    whit_tensor_type plane = whit_plane_type(type, n);
    uint16_t *columns = malloc(n * sizeof *columns);
    whit_rows rows = {0};
    for (uint32_t j = 0; columns && j < n; j++)
        columns[j] = (uint16_t)(j * PLANE_SHARE + whit_rng_below(rng, PLANE_SHARE));
    whit_status status = columns && random_rows(&plane, size / 4, rng, &rows)
        ? whit_plane_build(type, columns, n, &rows, NULL, part, error)
        : whit_fail_memory(error, "a matrix's plane of second signs", n);
    free(columns);
    free_rows(&rows);
    return status;
}

static whit_status random_pair(const whit_tensor_type *type, float size, whit_rng *rng, whit_buf *parts,
                               whit_error *error)
{
    whit_tensor_type a = whit_factor_type(RANK, type->n_cols), b = whit_factor_type(type->n_rows, RANK);
    whit_rows a_rows = {0}, b_rows = {0};
    whit_status status = random_rows(&a, size / 127, rng, &a_rows) && random_rows(&b, 0.1f / 127, rng, &b_rows)
        ? whit_low_rank_build(type, RANK, &a_rows, &b_rows, NULL, &parts[WHIT_PART_FACTOR_A],
                              &parts[WHIT_PART_FACTOR_B], error)
        : whit_fail_memory(error, "a matrix's low-rank pair", RANK);
    free_rows(&a_rows);
    free_rows(&b_rows);
    return status;
}

whit_status bench_corrections(const whit_tensor_type *type, uint64_t seed, whit_buf parts[WHIT_PART_COUNT],
                              whit_error *error)
{
    whit_rng rng = {seed};
    float size = 1 / sqrtf((float)type->n_cols);
    WHIT_TRY(random_plane(type, size, &rng, &parts[WHIT_PART_PLANE], error));
    WHIT_TRY(random_outliers(type, size, &rng, &parts[WHIT_PART_OUTLIERS], error));
    return random_pair(type, size, &rng, parts, error);
}
