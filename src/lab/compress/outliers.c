/* SPDX-License-Identifier: MIT */
#include "compress/outliers.h"

#include <math.h>
#include <stdlib.h>

#define MOST_OF_ROW  64 /* largest number of outliers in a row */
#define REFIT_SWEEPS 4
#define BYTE_MOST    127

/* A step of the greedy search in a row. */
struct step {
    uint32_t col;
    float gain; /* smallest gain of this and all earlier steps of the row; a threshold therefore always keeps the first
                 * steps */
};

struct search {
    whit_outlier_search *s;
    const whit_blas *blas;
    uint32_t m, n, most; /* most: largest number of steps in a row */
    uint32_t rows;       /* number of rows of a work item: whole tiles, depending only on the matrix's shape; the
                          * product of each item packs all of H */
    struct step *steps;  /* (m, most) */
    uint32_t *n_steps;   /* (m) */
    size_t *first;       /* (m + 1) index in the list of each row's first outlier */
    float *deltas;       /* values of the outliers in the list, before rounding */
    float *inverse;      /* (n) 1 / H_jj */
    float *scratch;      /* for each worker: (2 * rows, n) */
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Computes d = values - target and r = d H for n_rows rows. Returns r. */
static float *residual(const struct search *k, uint32_t worker, uint32_t row, uint32_t n_rows)
{
    float *d = k->scratch + (size_t)worker * 2 * k->rows * k->n, *r = d + (size_t)k->rows * k->n;
    size_t at = (size_t)row * k->n;
    for (size_t i = 0; i < (size_t)n_rows * k->n; i++) d[i] = k->s->values[at + i] - k->s->target[at + i];
    whit_blas_multiply(
        k->blas, worker,
        &(whit_product){
            .m = n_rows, .n = k->n, .k = k->n, .a = d, .lda = k->n, .b = k->s->h, .ldb = k->n, .c = r, .ldc = k->n});
    return r;
}

static void search_row(const struct search *k, uint32_t row, float *r)
{
    float least = INFINITY;
    struct step *steps = k->steps + (size_t)row * k->most;
    for (k->n_steps[row] = 0; k->n_steps[row] < k->most; k->n_steps[row]++) {
        float best_gain = 0;
        uint32_t best = 0;
        for (uint32_t j = 0; j < k->n; j++) {
            float gain = r[j] * r[j] * k->inverse[j];
            if (gain > best_gain) {
                best_gain = gain;
                best = j;
            }
        }
        if (!(best_gain > 0)) break;
        least = fminf(least, best_gain);
        steps[k->n_steps[row]] = (struct step){best, least};
        const float *h = k->s->h + (size_t)best * k->n;
        k->blas->loops->add_scaled(r, h, -r[best] / h[best], k->n);
    }
}

static void search_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct search *k = context;
    for (uint32_t item = begin; item < end; item++) {
        uint32_t row = item * k->rows, n_rows = smaller(k->rows, k->m - row);
        float *r = residual(k, worker, row, n_rows);
        for (uint32_t i = 0; i < n_rows; i++) search_row(k, row + i, r + (size_t)i * k->n);
    }
}

/* ---- choosing the best steps of all rows ------------------------------------------------------- */

static int by_column(const void *a, const void *b)
{
    const whit_outlier *x = a, *y = b;
    return (x->col > y->col) - (x->col < y->col);
}

static int by_gain(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Writes the columns of a row's steps with at least this gain to `list`, each column once. Returns their number. */
static size_t take_row(const struct search *k, uint32_t row, float threshold, whit_outlier *list)
{
    const struct step *steps = k->steps + (size_t)row * k->most;
    size_t n = 0;
    for (uint32_t i = 0; i < k->n_steps[row] && steps[i].gain >= threshold; i++) {
        bool again = false;
        for (size_t j = 0; j < n && !again; j++) again = list[j].col == steps[i].col;
        if (!again) list[n++] = (whit_outlier){.row = row, .col = steps[i].col};
    }
    qsort(list, n, sizeof *list, by_column);
    return n;
}

/* Returns the number of outliers whose steps have at least this gain. If `list` is not NULL, stores them there. */
static size_t count_outliers(const struct search *k, float threshold, whit_outlier *list)
{
    whit_outlier row_list[MOST_OF_ROW];
    size_t n = 0;
    for (uint32_t row = 0; row < k->m; row++) {
        size_t n_row = take_row(k, row, threshold, row_list);
        if (list) memcpy(list + n, row_list, n_row * sizeof *list);
        n += n_row;
    }
    return n;
}

/* Finds by bisection the smallest gain for which the outliers fit, and stores them in the list. Outliers must be
 * counted for that, because several steps at one position are one outlier. */
static void choose_outliers(const struct search *k, float *gains)
{
    size_t n_gains = 0;
    for (uint32_t row = 0; row < k->m; row++)
        for (uint32_t i = 0; i < k->n_steps[row]; i++) gains[n_gains++] = k->steps[(size_t)row * k->most + i].gain;
    qsort(gains, n_gains, sizeof *gains, by_gain);
    size_t low = 0, high = n_gains; /* low becomes the number of the largest gains that can be kept */
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (count_outliers(k, gains[middle - 1], NULL) <= k->s->most)
            low = middle;
        else
            high = middle - 1;
    }
    k->s->n = low ? count_outliers(k, gains[low - 1], k->s->list) : 0;
}

/* ---- values of the outliers -------------------------------------------------------------------- */

static void fit_row(const struct search *k, uint32_t row, float *r)
{
    for (int sweep = 0; sweep < REFIT_SWEEPS; sweep++)
        for (size_t i = k->first[row]; i < k->first[row + 1]; i++) {
            const float *h = k->s->h + (size_t)k->s->list[i].col * k->n;
            float step = -r[k->s->list[i].col] / h[k->s->list[i].col];
            k->deltas[i] += step;
            k->blas->loops->add_scaled(r, h, step, k->n);
        }
}

/* Rounds the values of the outliers in rows [row, row + n), which are a tile, and adds them to the matrix's values. */
static void round_tile(const struct search *k, uint32_t row, uint32_t n)
{
    whit_outlier *list = k->s->list;
    float most = 0;
    for (size_t i = k->first[row]; i < k->first[row + n]; i++) most = fmaxf(most, fabsf(k->deltas[i]));
    float scale = whit_f32_from_f16(whit_f16_from_f32(most / BYTE_MOST));
    k->s->scales[row / WHIT_TILE_ROWS] = scale;
    for (size_t i = k->first[row]; i < k->first[row + n]; i++) {
        float value = scale > 0 ? fminf(fmaxf(rintf(k->deltas[i] / scale), -BYTE_MOST), BYTE_MOST) : 0;
        float *at = k->s->values + (size_t)list[i].row * k->n + list[i].col;
        list[i].value = (int8_t)value;
        *at = fmaf(value, scale, *at);
    }
}

static void fit_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct search *k = context;
    for (uint32_t item = begin; item < end; item++) {
        uint32_t row = item * k->rows, n_rows = smaller(k->rows, k->m - row);
        float *r = residual(k, worker, row, n_rows);
        for (uint32_t i = 0; i < n_rows; i++) fit_row(k, row + i, r + (size_t)i * k->n);
        for (uint32_t i = 0; i < n_rows; i += WHIT_TILE_ROWS)
            round_tile(k, row + i, smaller(WHIT_TILE_ROWS, n_rows - i));
    }
}

static void find_first(const struct search *k)
{
    size_t at = 0;
    for (uint32_t row = 0; row <= k->m; row++) {
        while (at < k->s->n && k->s->list[at].row < row) at++;
        k->first[row] = at;
    }
}

whit_status whit_outliers_search(whit_outlier_search *s, const whit_blas *blas, whit_pool *pool,
                                 const whit_allocator *a, whit_error *error)
{
    struct search k = {.s = s, .blas = blas, .m = s->type->n_rows, .n = s->type->n_cols};
    k.rows = k.m >= 2048 ? 128 : 32;
    size_t share = s->most / k.m + 1, n_workers = whit_pool_size(pool);
    k.most = (uint32_t)(4 * share + 2 < MOST_OF_ROW ? 4 * share + 2 : MOST_OF_ROW);
    if (k.most > k.n) k.most = k.n;
    size_t n_steps = (size_t)k.m * k.most, scratch_elems = n_workers * 2 * k.rows * k.n;
    k.steps = whit_zalloc_array(a, n_steps, sizeof *k.steps);
    k.n_steps = whit_zalloc_array(a, k.m, sizeof *k.n_steps);
    k.first = whit_zalloc_array(a, (size_t)k.m + 1, sizeof *k.first);
    k.deltas = whit_zalloc_array(a, s->most, sizeof *k.deltas);
    k.inverse = whit_zalloc_array(a, k.n, sizeof *k.inverse);
    k.scratch = whit_zalloc_array(a, scratch_elems, sizeof *k.scratch);
    float *gains = whit_zalloc_array(a, n_steps, sizeof *gains);
    uint32_t n_items = (k.m + k.rows - 1) / k.rows;
    whit_status status = WHIT_OK;
    if (!k.steps || !k.n_steps || !k.first || !k.deltas || !k.inverse || !k.scratch || !gains)
        status = whit_fail_memory(error, "the outliers of a matrix", n_steps * sizeof *k.steps);
    if (status == WHIT_OK) {
        for (size_t j = 0; j < k.n; j++) k.inverse[j] = 1 / s->h[j * k.n + j];
        if (!s->refit) {
            whit_pool_run(pool, search_rows, &k, n_items, 1);
            choose_outliers(&k, gains);
        }
        find_first(&k);
        whit_pool_run(pool, fit_rows, &k, n_items, 1);
    }
    whit_free(a, k.steps, n_steps * sizeof *k.steps);
    whit_free(a, k.n_steps, k.m * sizeof *k.n_steps);
    whit_free(a, k.first, ((size_t)k.m + 1) * sizeof *k.first);
    whit_free(a, k.deltas, s->most * sizeof *k.deltas);
    whit_free(a, k.inverse, k.n * sizeof *k.inverse);
    whit_free(a, k.scratch, scratch_elems * sizeof *k.scratch);
    whit_free(a, gains, n_steps * sizeof *gains);
    return status;
}
