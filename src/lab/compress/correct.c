/* SPDX-License-Identifier: MIT */
#include "compress/correct.h"

#include "compress/low_rank.h"
#include "compress/outliers.h"
#include "compress/plane.h"

#define TURNS 2 /* rounds in which the codes and the plane are refined alternately */

struct correction {
    whit_solve *solve;
    const whit_blas *blas;
    whit_pool *pool;
    const whit_allocator *allocator;
    whit_error *error;
    const float *target, *held_target; /* targets of the sum of codes and corrections */
    size_t m, n;
    float *fixed;     /* (m, n) sum of the corrections found so far */
    float *left;      /* (m, n) target - fixed */
    float *held_left; /* (m, n) held_target - fixed * H with the H of held-out tokens; NULL: there are no held-out
                       * tokens */
    float *sum;       /* (m, n) sum of codes and corrections */
};

static void add_scaled(const float *a, const float *b, float sign, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = a[i] + sign * b[i];
}

static void multiply_square(const struct correction *c, const float *a, const float *b, float *to)
{
    whit_product product = whit_product_packed(false, false, a, b, c->m, c->n, c->n, to);
    whit_blas_share(c->blas, c->pool, &product);
}

/* Continues the descent of the codes, with the target reduced by the corrections found so far. */
static whit_status go_on(struct correction *c)
{
    whit_solve *s = c->solve;
    double before = s->error_gptq;
    add_scaled(c->target, c->fixed, -1, c->left, c->m * c->n);
    if (c->held_left) {
        multiply_square(c, c->fixed, s->held_h, c->held_left);
        add_scaled(c->held_target, c->held_left, -1, c->held_left, c->m * c->n);
        s->held_target = c->held_left;
    }
    s->target = c->left;
    s->goes_on = true;
    s->begin = s->end;
    s->end += (1 - s->end) / 2;
    whit_status status = whit_solve_run(s, c->blas, c->pool, c->allocator, c->error);
    s->target = c->target;
    s->held_target = c->held_target;
    s->error_gptq = before;
    return status;
}

static whit_status add_plane(struct correction *c, uint32_t n_columns, whit_buf *part)
{
    const whit_allocator *a = c->allocator;
    size_t elems = c->m * n_columns;
    whit_plane_search s = {.type = c->solve->type,
                           .target = c->target,
                           .h = c->solve->h,
                           .n_columns = n_columns,
                           .codes = c->solve->values};
    s.columns = whit_zalloc_array(a, n_columns, sizeof *s.columns);
    s.signs = whit_zalloc_array(a, elems, sizeof *s.signs);
    s.scales = whit_zalloc_array(a, c->m, sizeof *s.scales);
    s.values = whit_zalloc_array(a, elems, sizeof *s.values);
    whit_status status = s.columns && s.signs && s.scales && s.values
        ? WHIT_OK
        : whit_fail_memory(c->error, "a matrix's plane of second signs", elems * sizeof(float));
    for (int turn = 0; status == WHIT_OK && turn < TURNS; turn++) {
        s.goes_on = turn > 0;
        status = whit_plane_find(&s, c->blas, c->pool, a, c->error);
        for (size_t i = 0; status == WHIT_OK && i < elems; i++)
            c->fixed[i / n_columns * c->n + s.columns[i % n_columns]] = s.values[i];
        if (status == WHIT_OK) status = go_on(c);
    }
    if (status == WHIT_OK)
        status = whit_plane_build(c->solve->type, s.columns, n_columns, &(whit_rows){s.signs, s.scales, NULL}, a, part,
                                  c->error);
    whit_free(a, s.columns, n_columns * sizeof *s.columns);
    whit_free(a, s.signs, elems * sizeof *s.signs);
    whit_free(a, s.scales, c->m * sizeof *s.scales);
    whit_free(a, s.values, elems * sizeof *s.values);
    return status;
}

static whit_status add_outliers(struct correction *c, size_t most, whit_buf *part, size_t *n_outliers)
{
    const whit_allocator *a = c->allocator;
    size_t n_tiles = c->m / WHIT_TILE_ROWS + 1;
    whit_outlier_search s = {
        .type = c->solve->type, .target = c->target, .h = c->solve->h, .most = most, .values = c->sum};
    s.list = whit_zalloc_array(a, most, sizeof *s.list);
    s.scales = whit_zalloc_array(a, n_tiles, sizeof *s.scales);
    add_scaled(c->solve->values, c->fixed, 1, c->sum, c->m * c->n);
    whit_status status = s.list && s.scales
        ? whit_outliers_search(&s, c->blas, c->pool, a, c->error)
        : whit_fail_memory(c->error, "the outliers of a matrix", most * sizeof *s.list);
    *n_outliers = s.n;
    if (status == WHIT_OK && s.n) {
        for (int sign = 1; status == WHIT_OK && sign >= -1;
             sign -= 2) { /* outliers are added for the descent, then subtracted, since they are refitted below */
            for (size_t i = 0; i < s.n; i++)
                c->fixed[s.list[i].row * c->n + s.list[i].col] +=
                    (float)(sign * s.list[i].value) * s.scales[s.list[i].row / WHIT_TILE_ROWS];
            if (sign > 0) status = go_on(c);
        }
        add_scaled(c->solve->values, c->fixed, 1, c->sum, c->m * c->n);
        s.refit = true;
        if (status == WHIT_OK) status = whit_outliers_search(&s, c->blas, c->pool, a, c->error);
        for (size_t i = 0; status == WHIT_OK && i < s.n; i++)
            c->fixed[s.list[i].row * c->n + s.list[i].col] +=
                (float)s.list[i].value * s.scales[s.list[i].row / WHIT_TILE_ROWS];
        if (status == WHIT_OK) status = whit_outliers_build(c->solve->type, s.list, s.n, s.scales, part, c->error);
    }
    whit_free(a, s.list, most * sizeof *s.list);
    whit_free(a, s.scales, n_tiles * sizeof *s.scales);
    return status;
}

static whit_status add_low_rank(struct correction *c, uint32_t rank, whit_buf *part_a, whit_buf *part_b)
{
    bool found;
    add_scaled(c->solve->values, c->fixed, 1, c->sum, c->m * c->n);
    add_scaled(c->target, c->sum, -1, c->left, c->m * c->n);
    WHIT_TRY(whit_low_rank_find(c->solve->type, c->left, c->solve->h, rank, c->sum, part_a, part_b, &found, c->blas,
                                c->pool, c->allocator, c->error));
    if (!found) return WHIT_OK;
    add_scaled(c->fixed, c->sum, 1, c->fixed, c->m * c->n);
    return go_on(c);
}

/* Returns tr(D H D^T), the squared error of the outputs for a difference D of the weights. */
static double weigh(const struct correction *c, const float *d, float *product)
{
    double sum = 0;
    multiply_square(c, d, c->solve->h, product);
    for (size_t row = 0; row < c->m; row++)
        sum += (double)c->blas->loops->dot(d + row * c->n, product + row * c->n, c->n);
    return sum;
}

whit_status whit_correct(whit_solve *solve, const whit_correction_sizes *sizes, const whit_blas *blas, whit_pool *pool,
                         const whit_allocator *a, whit_corrected *corrected, whit_error *error)
{
    struct correction c = {.solve = solve,
                           .blas = blas,
                           .pool = pool,
                           .allocator = a,
                           .error = error,
                           .target = solve->target,
                           .held_target = solve->held_target,
                           .m = solve->type->n_rows,
                           .n = solve->type->n_cols};
    size_t elems = c.m * c.n;
    if (!sizes->n_columns && !sizes->n_outliers && !sizes->rank) return WHIT_OK;
    c.fixed = whit_zalloc_array(a, elems, sizeof(float));
    c.left = whit_zalloc_array(a, elems, sizeof(float));
    c.sum = whit_zalloc_array(a, elems, sizeof(float));
    if (solve->held_h) c.held_left = whit_zalloc_array(a, elems, sizeof(float));
    whit_status status = WHIT_OK;
    if (!c.fixed || !c.left || !c.sum || (solve->held_h && !c.held_left))
        status = whit_fail_memory(error, "corrections", elems * sizeof(float));
    if (status == WHIT_OK && sizes->n_columns)
        status = add_plane(&c, sizes->n_columns, &corrected->parts[WHIT_PART_PLANE]);
    if (status == WHIT_OK && sizes->rank)
        status =
            add_low_rank(&c, sizes->rank, &corrected->parts[WHIT_PART_FACTOR_A], &corrected->parts[WHIT_PART_FACTOR_B]);
    if (status == WHIT_OK && sizes->n_outliers)
        status = add_outliers(&c, sizes->n_outliers, &corrected->parts[WHIT_PART_OUTLIERS], &corrected->n_outliers);
    if (status == WHIT_OK) {
        add_scaled(solve->values, c.fixed, 1, solve->values, elems);
        add_scaled(solve->values, c.target, -1, c.left, elems);
        double lost = weigh(&c, c.left, c.sum), all = weigh(&c, c.target, c.sum);
        solve->error = all > 0 ? lost / all : 0;
    }
    whit_free(a, c.fixed, elems * sizeof(float));
    whit_free(a, c.left, elems * sizeof(float));
    whit_free(a, c.sum, elems * sizeof(float));
    whit_free(a, c.held_left, elems * sizeof(float));
    return status;
}
