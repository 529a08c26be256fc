/* SPDX-License-Identifier: MIT */
#include "compress/low_rank.h"

#include "base/rng.h"
#include "linalg/cholesky.h"
#include "quant/requantise.h"

#define TURNS 8

struct pair {
    const whit_blas *blas;
    whit_pool *pool;
    size_t m, n, r;
    const float *d, *h;
    float *a, *b;          /* A (r, n); B (m, r) */
    float *ah;             /* A H (r, n) */
    float *dx;             /* scratch (max(m, n), r) */
    float *square, *other; /* scratch (r, r) */
    float *scratch;
};

static void multiply_pair(const struct pair *p, bool transpose_a, bool transpose_b, const float *a, const float *b,
                          size_t m, size_t n, size_t k, float *c)
{
    whit_product product = whit_product_packed(transpose_a, transpose_b, a, b, m, n, k, c);
    whit_blas_share(p->blas, p->pool, &product);
}

/* Replaces `square` by the upper triangular U with inverse(square) = U^T U. Returns false if that is not possible. */
static bool invert(struct pair *p)
{
    return whit_cholesky_of_inverse(p->blas, p->pool, p->square, p->other, p->r, p->scratch, NULL, NULL);
}

/* Computes the best B for the current A. Returns false if the equations cannot be solved. */
static bool fit_b(struct pair *p)
{
    multiply_pair(p, false, false, p->a, p->h, p->r, p->n, p->n, p->ah);
    multiply_pair(p, false, true, p->ah, p->a, p->r, p->r, p->n, p->square);
    if (!invert(p)) return false;
    multiply_pair(p, false, true, p->d, p->ah, p->m, p->r, p->n, p->b);
    multiply_pair(p, false, true, p->b, p->square, p->m, p->r, p->r, p->dx);
    multiply_pair(p, false, false, p->dx, p->square, p->m, p->r, p->r, p->b);
    return true;
}

/* Computes the best A for the current B. Returns false if the equations cannot be solved. */
static bool fit_a(struct pair *p)
{
    multiply_pair(p, true, false, p->b, p->b, p->r, p->r, p->m, p->square);
    if (!invert(p)) return false;
    multiply_pair(p, true, false, p->d, p->b, p->n, p->r, p->m, p->dx); /* (n, r) */
    multiply_pair(p, false, true, p->dx, p->square, p->n, p->r, p->r, p->ah);
    multiply_pair(p, false, false, p->ah, p->square, p->n, p->r, p->r, p->dx);
    for (size_t j = 0; j < p->n; j++)
        for (size_t i = 0; i < p->r; i++) p->a[i * p->n + j] = p->dx[j * p->r + i];
    return true;
}

/* Rounds `values` to int8 rows, which are allocated in *rows, and replaces them by the rounded values. Returns false if
 * memory is exhausted. */
static bool round_rows(const whit_tensor_type *type, float *values, whit_rows *rows, const whit_allocator *a)
{
    rows->elems = whit_zalloc_array(a, type->n_rows, type->n_cols);
    rows->fields = whit_zalloc_array(a, type->n_rows, sizeof(float));
    for (size_t row = 0; rows->elems && rows->fields && row < type->n_rows; row++) {
        whit_rows at = {(int8_t *)rows->elems + row * type->n_cols, rows->fields + row, NULL};
        whit_requantise_row(type, values + row * type->n_cols, &at);
        whit_requantise_values(type, &at, values + row * type->n_cols);
    }
    return rows->elems && rows->fields;
}

static void free_rows(const whit_tensor_type *type, whit_rows *rows, const whit_allocator *a)
{
    whit_free(a, rows->elems, (size_t)type->n_rows * type->n_cols);
    whit_free(a, rows->fields, type->n_rows * sizeof(float));
}

static bool find_factors(struct pair *p)
{
    whit_rng rng = {.state = p->m * 65537 + p->n};
    for (size_t i = 0; i < p->r * p->n; i++) p->a[i] = (float)(whit_rng_uniform(&rng) * 2 - 1);
    for (int turn = 0; turn < TURNS; turn++)
        if (!fit_b(p) || !fit_a(p)) return false;
    return true;
}

whit_status whit_low_rank_find(const whit_tensor_type *type, const float *d, const float *h, uint32_t rank,
                               float *values, whit_buf *part_a, whit_buf *part_b, bool *found, const whit_blas *blas,
                               whit_pool *pool, const whit_allocator *a, whit_error *error)
{
    struct pair p = {.blas = blas, .pool = pool, .m = type->n_rows, .n = type->n_cols, .r = rank, .d = d, .h = h};
    size_t most = p.m > p.n ? p.m : p.n, scratch_elems = whit_cholesky_scratch(rank);
    whit_tensor_type a_type = whit_factor_type(rank, type->n_cols), b_type = whit_factor_type(type->n_rows, rank);
    whit_rows a_rows = {0}, b_rows = {0};
    p.a = whit_zalloc_array(a, p.r * p.n, sizeof(float));
    p.b = whit_zalloc_array(a, p.m * p.r, sizeof(float));
    p.ah = whit_zalloc_array(a, p.r * most, sizeof(float));
    p.dx = whit_zalloc_array(a, most * p.r, sizeof(float));
    p.square = whit_zalloc_array(a, p.r * p.r, sizeof(float));
    p.other = whit_zalloc_array(a, p.r * p.r, sizeof(float));
    p.scratch = whit_zalloc_array(a, scratch_elems, sizeof(float));
    bool ok = p.a && p.b && p.ah && p.dx && p.square && p.other && p.scratch;
    whit_status status = WHIT_OK;
    *found = ok && find_factors(&p);
    if (*found) {
        ok = round_rows(&a_type, p.a, &a_rows, a);
        *found = ok && fit_b(&p);
        if (*found) ok = round_rows(&b_type, p.b, &b_rows, a);
        if (ok && *found) status = whit_low_rank_build(type, rank, &a_rows, &b_rows, a, part_a, part_b, error);
        if (ok && *found && status == WHIT_OK) multiply_pair(&p, false, false, p.b, p.a, p.m, p.n, p.r, values);
    }
    if (!ok) status = whit_fail_memory(error, "a matrix's low-rank pair", most * rank * sizeof(float));
    free_rows(&a_type, &a_rows, a);
    free_rows(&b_type, &b_rows, a);
    whit_free(a, p.a, p.r * p.n * sizeof(float));
    whit_free(a, p.b, p.m * p.r * sizeof(float));
    whit_free(a, p.ah, p.r * most * sizeof(float));
    whit_free(a, p.dx, most * p.r * sizeof(float));
    whit_free(a, p.square, p.r * p.r * sizeof(float));
    whit_free(a, p.other, p.r * p.r * sizeof(float));
    whit_free(a, p.scratch, scratch_elems * sizeof(float));
    return status;
}
