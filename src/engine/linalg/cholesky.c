/* SPDX-License-Identifier: MIT */
#include "linalg/cholesky.h"

#include <math.h>
#include <string.h>

#define BLOCK WHIT_CHOLESKY_BLOCK

struct factor_job {
    const whit_blas *blas;
    float *a;
    size_t n, at, width; /* n: number of rows of a; at, width: the diagonal block has columns and rows [at, at +
                          * width) */
    float *negated;      /* (n, BLOCK) the panel below the block, times -1 */
};

/* Factors the diagonal block with the unblocked algorithm. */
static bool factor_block(float *a, size_t n, size_t at, size_t width)
{
    double l[BLOCK][BLOCK];
    for (size_t i = 0; i < width; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = (double)a[(at + i) * n + at + j];
            for (size_t k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
            if (i != j) {
                l[i][j] = sum / l[j][j];
            } else {
                if (!(sum > 0) || !isfinite(sum)) return false;
                l[i][i] = sqrt(sum);
            }
        }
    for (size_t i = 0; i < width; i++)
        for (size_t j = 0; j < width; j++) a[(at + i) * n + at + j] = j <= i ? (float)l[i][j] : 0;
    return true;
}

/* Solves x L^T = row for the rows below the block, by forward substitution. */
static void solve_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct factor_job *job = context;
    const whit_loops *loops = job->blas->loops;
    for (size_t r = job->at + job->width + begin; r < job->at + job->width + end; r++) {
        float *row = job->a + r * job->n + job->at;
        for (size_t j = 0; j < job->width; j++) {
            const float *l = job->a + (job->at + j) * job->n + job->at;
            row[j] = (row[j] - loops->dot(row, l, j)) / l[j];
        }
        loops->scale(job->negated + r * BLOCK, row, -1, job->width);
    }
}

/* Updates the matrix to the right of the block and below it, in strips of rows that end at the diagonal. */
static void update_strips(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct factor_job *job = context;
    size_t first = job->at + job->width;
    for (size_t strip = begin; strip < end; strip++) {
        size_t from = first + strip * BLOCK, to = from + BLOCK < job->n ? from + BLOCK : job->n;
        whit_blas_multiply(job->blas, worker,
                           &(whit_product){.transpose_b = true,
                                           .m = to - from,
                                           .n = to - first,
                                           .k = job->width,
                                           .a = job->negated + from * BLOCK,
                                           .lda = BLOCK,
                                           .b = job->a + first * job->n + job->at,
                                           .ldb = job->n,
                                           .beta = 1,
                                           .c = job->a + from * job->n + first,
                                           .ldc = job->n});
    }
}

size_t whit_cholesky_scratch(size_t n)
{
    return n * BLOCK;
}

bool whit_cholesky(const whit_blas *blas, whit_pool *pool, float *a, size_t n, float *scratch, whit_cholesky_fn *tell,
                   void *user)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        if (tell) tell(user);
        size_t width = n - at < BLOCK ? n - at : BLOCK, below = n - at - width;
        struct factor_job job = {blas, a, n, at, width, scratch};
        if (!factor_block(a, n, at, width)) return false;
        for (size_t i = at; i < at + width; i++) memset(a + i * n + at + width, 0, below * sizeof *a);
        if (!below) break;
        whit_pool_run(pool, solve_rows, &job, (uint32_t)below, 16);
        whit_pool_run(pool, update_strips, &job, (uint32_t)((below + BLOCK - 1) / BLOCK), 1);
    }
    for (size_t i = 0; i < n; i++) memset(a + i * n + i + 1, 0, (n - i - 1) * sizeof *a);
    return true;
}

struct invert_job {
    const whit_blas *blas;
    const float *lower;
    float *inverse;
    size_t n;
    whit_cholesky_fn *tell;
    void *user;
};

/* Computes block columns [begin, end) of inverse(L): solves L x = e for each unit column e, by blocks of rows from the
 * diagonal down. */
static void invert_columns(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct invert_job *job = context;
    const whit_loops *loops = job->blas->loops;
    size_t n = job->n;
    for (size_t block = begin; block < end; block++) {
        if (job->tell && !worker) job->tell(job->user);
        size_t column = block * BLOCK, width = n - column < BLOCK ? n - column : BLOCK;
        for (size_t i = 0; i < n; i++) memset(job->inverse + i * n + column, 0, width * sizeof(float));
        for (size_t from = column; from < n; from += BLOCK) {
            size_t height = n - from < BLOCK ? n - from : BLOCK;
            float *x = job->inverse + from * n + column;
            if (from > column) /* sum over the blocks of rows from `column` to `from`; its sign is changed below */
                whit_blas_multiply(job->blas, worker,
                                   &(whit_product){.m = height,
                                                   .n = width,
                                                   .k = from - column,
                                                   .a = job->lower + from * n + column,
                                                   .lda = n,
                                                   .b = job->inverse + column * n + column,
                                                   .ldb = n,
                                                   .c = x,
                                                   .ldc = n});
            for (size_t i = 0; i < height; i++) {
                const float *l = job->lower + (from + i) * n + from;
                float *row = x + i * n;
                loops->scale(row, row, -1, width);
                if (from == column) row[i] += 1;
                for (size_t k = 0; k < i; k++) loops->add_scaled(row, x + k * n, -l[k], width);
                loops->scale(row, row, 1 / l[i], width);
            }
        }
    }
}

static void reverse(float *a, size_t n)
{
    for (size_t i = 0, j = n * n - 1; i < j; i++, j--) {
        float x = a[i];
        a[i] = a[j];
        a[j] = x;
    }
}

bool whit_cholesky_of_inverse(const whit_blas *blas, whit_pool *pool, float *a, float *other, size_t n, float *scratch,
                              whit_cholesky_fn *tell, void *user)
{
    struct invert_job job = {blas, a, other, n, tell, user};
    reverse(a, n);
    if (!whit_cholesky(blas, pool, a, n, scratch, tell, user)) return false;
    whit_pool_run(pool, invert_columns, &job, (uint32_t)((n + BLOCK - 1) / BLOCK), 1);
    memcpy(a, other, n * n * sizeof *a);
    reverse(a, n);
    return true;
}
