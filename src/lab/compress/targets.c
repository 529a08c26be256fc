/* SPDX-License-Identifier: MIT */
#include "compress/targets.h"

#include "linalg/cholesky.h"

#include <string.h>

#define DAMPING      0.01f /* share of the mean of the Hessian's diagonal that is added to the diagonal */
#define MOST_DAMPING 1.0f

void whit_factor_free(whit_factor *f)
{
    const whit_allocator *a = f->allocator;
    size_t square = (size_t)f->n * f->n;
    whit_free(a, f->damped, square * sizeof(float));
    whit_free(a, f->upper, square * sizeof(float));
    whit_free(a, f->order, f->n * sizeof *f->order);
    *f = (whit_factor){0};
}

/* Orders whole groups of columns by the energy of their inputs (the sum of the Hessian's diagonal), largest first. */
static void find_order(const float *diagonal, uint32_t n, uint32_t group, uint32_t *order)
{
    uint32_t n_groups = (n + group - 1) / group, at = 0;
    for (uint32_t placed = 0; placed < n_groups; placed++) {
        double most = -1;
        uint32_t best = 0;
        for (uint32_t g = 0; g < n_groups; g++) {
            bool taken = false;
            for (uint32_t i = 0; i < at; i += 1) taken = taken || order[i] / group == g;
            double sum = 0;
            for (uint32_t j = g * group; !taken && j < n && j < (g + 1) * group; j++) sum += (double)diagonal[j];
            if (!taken && sum > most) {
                most = sum;
                best = g;
            }
        }
        for (uint32_t j = best * group; j < n && j < (best + 1) * group; j++) order[at++] = j;
    }
}

static double damp(float *damped, const float *diagonal, size_t n, float share)
{
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += (double)diagonal[i] / (double)n;
    for (size_t i = 0; i < n; i++) damped[i * n + i] = diagonal[i] + (float)(mean * (double)share);
    return mean;
}

static void tell_block(void *user)
{
    const whit_within *within = user;
    (void)whit_within_tell(within, 0);
}

whit_status whit_factor_make(whit_hessian *hessian, uint32_t group, bool ordered, const char *name,
                             const whit_blas *blas, whit_pool *pool, const whit_allocator *a, const whit_within *within,
                             whit_factor *f, whit_error *error)
{
    size_t n = hessian->n, square = n * n, scratch_elems = whit_cholesky_scratch(n);
    *f = (whit_factor){.allocator = a, .n = hessian->n, .group = group};
    f->damped = hessian->h;
    hessian->h = NULL;
    f->upper = whit_zalloc_array(a, square, sizeof(float));
    f->order = whit_zalloc_array(a, n, sizeof *f->order);
    float *other = whit_zalloc_array(a, square, sizeof(float)), *diagonal = whit_zalloc_array(a, n, sizeof(float)),
          *scratch = whit_zalloc_array(a, scratch_elems, sizeof(float));
    whit_status status = WHIT_OK;
    bool done = false;
    if (!f->damped || !f->upper || !f->order || !other || !diagonal || !scratch)
        status = whit_fail_memory(error, "the statistics of a matrix's inputs", square * sizeof(float));
    for (size_t i = 0; status == WHIT_OK && i < n; i++) diagonal[i] = f->damped[i * n + i];
    for (float share = DAMPING; status == WHIT_OK && !done && share <= MOST_DAMPING; share *= 10) {
        double mean = damp(f->damped, diagonal, n, share);
        if (!(mean > 0)) break;
        for (uint32_t j = 0; j < n; j++) f->order[j] = j;
        if (ordered) find_order(diagonal, hessian->n, group, f->order);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) f->upper[i * n + j] = f->damped[(size_t)f->order[i] * n + f->order[j]];
        done = whit_cholesky_of_inverse(blas, pool, f->upper, other, n, scratch, tell_block, (void *)within);
    }
    if (status == WHIT_OK && !done)
        status =
            whit_fail(error, WHIT_ERROR_NUMERIC,
                      "tensor '%s': the Hessian of its inputs is singular on this calibration text (its inputs are "
                      "all zero, or nearly dependent); give more text of another kind, or use --method rtn",
                      name);
    whit_free(a, other, square * sizeof(float));
    whit_free(a, diagonal, n * sizeof(float));
    whit_free(a, scratch, scratch_elems * sizeof(float));
    if (status != WHIT_OK) whit_factor_free(f);
    return status;
}

/* ---- targets -------------------------------------------------------------------------------------- */

void whit_target_correct(const whit_factor *f, const whit_hessian *hessian, bool lost, const float *w, size_t m,
                         const whit_blas *blas, whit_pool *pool, float *target, float *scratch)
{
    size_t n = f->n, elems = m * n;
    float *moved = scratch, *other = scratch + elems;
    if (lost)
        memcpy(moved, hessian->lost, elems * sizeof *moved);
    else
        memset(moved, 0, elems * sizeof *moved);
    whit_blas_share_packed(blas, pool, false, w, m, n, hessian->shift, n, moved, true);
    for (size_t row = 0; row < m; row++)
        for (size_t j = 0; j < n; j++) target[row * n + j] = moved[row * n + f->order[j]];
    whit_blas_share_packed(blas, pool, true, target, m, n, f->upper, n, other, false);
    whit_blas_share_packed(blas, pool, false, other, m, n, f->upper, n, moved, false);
    memcpy(target, w, elems * sizeof *target);
    for (size_t row = 0; row < m; row++)
        for (size_t j = 0; j < n; j++) target[row * n + f->order[j]] += moved[row * n + j];
}

void whit_target_held(const whit_hessian *held, bool lost, const float *w, size_t m, const whit_blas *blas,
                      whit_pool *pool, float *target)
{
    size_t n = held->n;
    if (lost)
        memcpy(target, held->lost, m * n * sizeof *target);
    else
        memset(target, 0, m * n * sizeof *target);
    whit_blas_share_packed(blas, pool, false, w, m, n, held->h, n, target, true);
    if (held->shift) whit_blas_share_packed(blas, pool, false, w, m, n, held->shift, n, target, true);
}
