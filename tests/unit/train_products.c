/* SPDX-License-Identifier: MIT
 * Matrix products of training in both precisions against sums in double precision: all ways to
 * transpose, sizes beside every multiple of a tile, strides, accumulation, and the same bits however
 * many threads share them. */
#include "test.h"

#include "base/rng.h"
#include "linalg/blas.h"

#include <math.h>

struct matrix {
    size_t n_rows, n_cols, stride;
    float *at;
};

static struct matrix random_matrix(whit_rng *rng, size_t n_rows, size_t n_cols, size_t gap)
{
    struct matrix m = {n_rows, n_cols, n_cols + gap, NULL};
    m.at = malloc(n_rows * m.stride * sizeof *m.at);
    assert_non_null(m.at);
    for (size_t i = 0; i < n_rows * m.stride; i++) m.at[i] = (float)(whit_rng_uniform(rng) * 2 - 1);
    return m;
}

/* To the nearest bfloat16, ties to even. */
static double rounded(float x, whit_precision precision)
{
    if (precision == WHIT_PRECISION_F32) return x;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double element(const whit_product *p, whit_precision precision, size_t i, size_t j)
{
    double sum = 0;
    for (size_t l = 0; l < p->k; l++)
        sum += rounded(p->transpose_a ? p->a[l * p->lda + i] : p->a[i * p->lda + l], precision) *
            rounded(p->transpose_b ? p->b[j * p->ldb + l] : p->b[l * p->ldb + j], precision);
    return sum;
}

static void check_product(whit_precision precision, size_t m, size_t n, size_t k, bool transpose_a, bool transpose_b,
                          bool add)
{
    whit_error error;
    whit_blas blas;
    whit_rng rng = {m * 131 + n * 17 + k};
    struct matrix a = random_matrix(&rng, transpose_a ? k : m, transpose_a ? m : k, 3);
    struct matrix b = random_matrix(&rng, transpose_b ? n : k, transpose_b ? k : n, 0);
    struct matrix before = random_matrix(&rng, m, n, 5);
    size_t bytes = m * before.stride * sizeof(float);
    float *c[4]; /* by one worker; shared by one, two and three */
    assert_ok(whit_blas_open(&blas, precision, whit_loops_find(), whit_blas_elems(n, k), whit_blas_elems(n, k), 3, NULL,
                             &error),
              error);
    whit_product p = {.transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = a.at,
                      .lda = a.stride,
                      .b = b.at,
                      .ldb = b.stride,
                      .beta = add,
                      .ldc = before.stride};
    for (uint32_t i = 0; i < 4; i++) {
        p.c = c[i] = malloc(bytes);
        memcpy(c[i], before.at, bytes);
        whit_pool *pool = NULL;
        if (i) assert_ok(whit_pool_open(i, NULL, &pool, &error), error);
        if (i)
            whit_blas_share(&blas, pool, &p);
        else
            whit_blas_multiply(&blas, 2, &p);
        whit_pool_close(pool);
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < before.stride; j++) {
            size_t at = i * before.stride + j;
            double expected = before.at[at];
            if (j < n) expected = (add ? expected : 0) + element(&p, precision, i, j);
            if (!(fabs(c[0][at] - expected) <= 1e-6 * (double)(k + 4)))
                fail_msg("%zu x %zu x %zu, element %zu, %zu is %g, not %g", m, n, k, i, j, c[0][at], expected);
        }
    assert_memory_equal(c[1], c[2], bytes);
    assert_memory_equal(c[1], c[3], bytes);
    if (precision == WHIT_PRECISION_BF16) assert_memory_equal(c[0], c[1], bytes);
    for (int i = 0; i < 4; i++) free(c[i]);
    free(a.at);
    free(b.at);
    free(before.at);
    whit_blas_close(&blas);
}

static void check_precision(whit_precision precision)
{
    static const size_t sizes[][3] = {{1, 1, 1},     {16, 16, 32}, {32, 32, 512}, {33, 31, 33},
                                      {70, 100, 47}, {128, 64, 1}, {5, 40, 1030}, {257, 65, 600}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int ways = 0; ways < 8; ways++)
            check_product(precision, sizes[i][0], sizes[i][1], sizes[i][2], ways & 1, ways & 2, ways & 4);
}

static void products_in_f32(void **state)
{
    (void)state;
    check_precision(WHIT_PRECISION_F32);
}

static void products_in_bf16(void **state)
{
    (void)state;
    if (!whit_blas_has_bf16()) {
        print_message("[ SKIPPED ] this processor has no AMX-BF16\n");
        skip();
    }
    check_precision(WHIT_PRECISION_BF16);
}

/* The cap that inference obeys: no AMX below its level, the plain loops and products under the lowest. */
static void products_under_a_cap(void **state)
{
    (void)state;
    whit_blas blas;
    whit_error error;
    const char *before = getenv("WHIT_CPU");
    char *kept = before ? strdup(before) : NULL;
    setenv("WHIT_CPU", "generic", 1);
    assert_ptr_equal(whit_loops_find(), &whit_loops_generic);
    assert_false(whit_blas_has_bf16());
    assert_ok(whit_blas_open(&blas, WHIT_PRECISION_BF16, whit_loops_find(), 64, 64, 1, NULL, &error), error);
    assert_null(blas.library);
    whit_blas_close(&blas);
    check_precision(WHIT_PRECISION_F32);
#if defined(__x86_64__)
    setenv("WHIT_CPU", "avx2", 1);
    assert_false(whit_blas_has_bf16());
    assert_ptr_not_equal(whit_loops_find(), &whit_loops_avx512);
#endif
    if (kept)
        setenv("WHIT_CPU", kept, 1);
    else
        unsetenv("WHIT_CPU");
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_f32),
        cmocka_unit_test(products_in_bf16),
        cmocka_unit_test(products_under_a_cap),
    };
    return cmocka_run_group_tests_name("products", tests, NULL, NULL);
}
