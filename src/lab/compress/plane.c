/* SPDX-License-Identifier: MIT */
#include "compress/plane.h"

#include "linalg/cholesky.h"

#include <math.h>
#include <stdlib.h>

#define SWEEPS 4

struct ranked {
    double weight;
    uint32_t column;
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->column > y->column) - (x->column < y->column);
}

static int by_number(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* Chooses the n_columns columns j with the largest H_jj times the sum over i of D_ij^2, and writes them to s->columns
 * in ascending order. */
static void choose_columns(const whit_plane_search *s, struct ranked *ranked)
{
    size_t m = s->type->n_rows, n = s->type->n_cols;
    for (size_t j = 0; j < n; j++) ranked[j] = (struct ranked){0, (uint32_t)j};
    for (size_t i = 0; i < m * n; i++) {
        double d = (double)s->target[i] - (double)s->codes[i];
        ranked[i % n].weight += d * d;
    }
    for (size_t j = 0; j < n; j++) ranked[j].weight *= (double)s->h[j * n + j];
    qsort(ranked, n, sizeof *ranked, by_weight);
    for (uint32_t k = 0; k < s->n_columns; k++) s->columns[k] = (uint16_t)ranked[k].column;
    qsort(s->columns, s->n_columns, sizeof *s->columns, by_number);
}

struct memory {
    struct ranked *ranked;
    float *d, *h_columns, *dh, *h, *upper, *other, *target, *scratch;
};

/* Computes T = (D H)_S H_SS^-1. Returns false if H_SS cannot be factorised. */
static bool find_target(const whit_plane_search *s, const whit_blas *blas, whit_pool *pool, struct memory *x)
{
    size_t m = s->type->n_rows, n = s->type->n_cols, k = s->n_columns;
    for (size_t i = 0; i < m * n; i++) x->d[i] = s->target[i] - s->codes[i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++) x->h_columns[i * k + j] = s->h[i * n + s->columns[j]];
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++)
            x->h[i * k + j] = x->upper[i * k + j] = s->h[(size_t)s->columns[i] * n + s->columns[j]];
    if (!whit_cholesky_of_inverse(blas, pool, x->upper, x->other, k, x->scratch, NULL, NULL)) return false;
    whit_blas_share_packed(blas, pool, false, x->d, m, n, x->h_columns, k, x->dh, false);
    whit_blas_share_packed(blas, pool, true, x->dh, m, k, x->upper, k, x->target, false);
    whit_blas_share_packed(blas, pool, false, x->target, m, k, x->upper, k, x->dh, false);
    return true;
}

whit_status whit_plane_find(whit_plane_search *s, const whit_blas *blas, whit_pool *pool, const whit_allocator *a,
                            whit_error *error)
{
    size_t m = s->type->n_rows, n = s->type->n_cols, k = s->n_columns, scratch_elems = whit_cholesky_scratch(k);
    struct memory x = {.ranked = whit_zalloc_array(a, n, sizeof *x.ranked),
                       .d = whit_zalloc_array(a, m * n, sizeof(float)),
                       .h_columns = whit_zalloc_array(a, n * k, sizeof(float)),
                       .dh = whit_zalloc_array(a, m * k, sizeof(float)),
                       .h = whit_zalloc_array(a, k * k, sizeof(float)),
                       .upper = whit_zalloc_array(a, k * k, sizeof(float)),
                       .other = whit_zalloc_array(a, k * k, sizeof(float)),
                       .target = whit_zalloc_array(a, m * k, sizeof(float)),
                       .scratch = whit_zalloc_array(a, scratch_elems, sizeof(float))};
    whit_status status = WHIT_OK;
    if (!x.ranked || !x.d || !x.h_columns || !x.dh || !x.h || !x.upper || !x.other || !x.target || !x.scratch)
        status = whit_fail_memory(error, "a matrix's plane of second signs", m * n * sizeof(float));
    if (status == WHIT_OK) {
        if (!s->goes_on) choose_columns(s, x.ranked);
        whit_tensor_type type = whit_plane_type(s->type, s->n_columns);
        if (!find_target(s, blas, pool, &x))
            status = whit_fail(
                error, WHIT_ERROR_NUMERIC,
                "a plane of second signs cannot be computed from this text: give more text, or leave planes out");
        whit_solve solve = {.type = &type,
                            .target = x.dh,
                            .h = x.h,
                            .u = x.upper,
                            .n_sweeps = SWEEPS,
                            .goes_on = s->goes_on,
                            .codes = s->signs,
                            .fields = s->scales,
                            .values = s->values};
        if (status == WHIT_OK) status = whit_solve_run(&solve, blas, pool, a, error);
    }
    whit_free(a, x.ranked, n * sizeof *x.ranked);
    whit_free(a, x.d, m * n * sizeof(float));
    whit_free(a, x.h_columns, n * k * sizeof(float));
    whit_free(a, x.dh, m * k * sizeof(float));
    whit_free(a, x.h, k * k * sizeof(float));
    whit_free(a, x.upper, k * k * sizeof(float));
    whit_free(a, x.other, k * k * sizeof(float));
    whit_free(a, x.target, m * k * sizeof(float));
    whit_free(a, x.scratch, scratch_elems * sizeof(float));
    return status;
}
