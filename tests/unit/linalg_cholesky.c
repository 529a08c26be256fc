/* SPDX-License-Identifier: MIT
 * Tests Cholesky factors: products give the matrix again for sizes around the block size, the factor of the inverse
 * is right, threads change no bit, and a matrix that is not positive definite is refused. */
#include "test.h"

#include "base/rng.h"
#include "linalg/cholesky.h"

#include <math.h>

/* Returns a positive definite matrix (n, n): X^T X of random rows, plus a constant on the diagonal. */
static float *make_matrix(size_t n, uint64_t seed)
{
    whit_rng rng = {seed};
    size_t n_rows = n + 7;
    float *x = malloc(n_rows * n * sizeof *x), *a = calloc(n * n, sizeof *a);
    assert_true(x && a);
    for (size_t i = 0; i < n_rows * n; i++) x[i] = (float)(whit_rng_uniform(&rng) * 2 - 1);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) a[i * n + j] += x[r * n + i] * x[r * n + j];
    for (size_t i = 0; i < n; i++) a[i * n + i] += 0.1f * (float)n;
    free(x);
    return a;
}

static void count_call(void *user)
{
    ++*(uint32_t *)user;
}

static void factors(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 63, 64, 65, 130, 200};
    whit_pool *pool = NULL;
    whit_blas blas;
    whit_error error;
    assert_ok(whit_pool_open(3, NULL, &pool, &error), error);
    assert_ok(whit_blas_open(&blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, 3, NULL, &error), error);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s], bytes = n * n * sizeof(float);
        float *a = make_matrix(n, s), *u = malloc(bytes), *alone = malloc(bytes), *other = malloc(bytes);
        float *scratch = malloc(whit_cholesky_scratch(n) * sizeof *scratch);
        memcpy(u, a, bytes);
        assert_true(whit_cholesky(&blas, pool, u, n, scratch, NULL, NULL));
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                double sum = 0;
                for (size_t k = 0; k < n; k++) sum += (double)u[i * n + k] * (double)u[j * n + k];
                assert_true(fabs(sum - (double)a[i * n + j]) < 1e-4 * (double)n);
            }
        memcpy(u, a, bytes);
        memcpy(alone, a, bytes);
        uint32_t n_heard = 0;
        assert_true(whit_cholesky_of_inverse(&blas, pool, u, other, n, scratch, count_call, &n_heard));
        assert_true(n_heard >= (n + WHIT_CHOLESKY_BLOCK - 1) / WHIT_CHOLESKY_BLOCK); /* at least in the first half */
        assert_true(whit_cholesky_of_inverse(&blas, NULL, alone, other, n, scratch, NULL, NULL));
        assert_memory_equal(u, alone, bytes);
        /* checks U^T U a = 1 */
        for (size_t i = 0; i < n; i += 1 + n / 8)
            for (size_t j = 0; j < n; j++) {
                double sum = 0;
                for (size_t k = 0; k < n; k++) {
                    double inverse = 0;
                    for (size_t l = 0; l <= (i < k ? i : k); l++)
                        inverse += (double)u[l * n + i] * (double)u[l * n + k];
                    sum += inverse * (double)a[k * n + j];
                }
                assert_true(fabs(sum - (i == j)) < 1e-3);
            }
        free(a), free(u), free(alone), free(other), free(scratch);
    }
    whit_blas_close(&blas);
    whit_pool_close(pool);
}

static void refused(void **state)
{
    (void)state;
    whit_blas blas;
    whit_error error;
    float scratch[2 * WHIT_CHOLESKY_BLOCK], singular[4] = {1, 1, 1, 1}, negative[4] = {1, 2, 2, 1},
                                            none[4] = {NAN, 0, 0, 1};
    assert_ok(whit_blas_open(&blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, 1, NULL, &error), error);
    assert_false(whit_cholesky(&blas, NULL, singular, 2, scratch, NULL, NULL));
    assert_false(whit_cholesky(&blas, NULL, negative, 2, scratch, NULL, NULL));
    assert_false(whit_cholesky(&blas, NULL, none, 2, scratch, NULL, NULL));
    whit_blas_close(&blas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("cholesky", tests, NULL, NULL);
}
