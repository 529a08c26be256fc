/* SPDX-License-Identifier: MIT
 * Compares matrix products of training in all precisions with sums in double precision: all transpositions, sizes
 * near multiples of a tile, strides, accumulation, and the same bits for any number of threads. The bfloat16 kernels
 * are compared with the plain ones, bit by bit. */
#include "test.h"

#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/gemm_bf16.h"
#include "linalg/level.h"

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

/* Rounds to the nearest bfloat16, ties to even. */
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
    float *c[4]; /* by one worker, and shared by 1, 2 and 3 workers */
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
    if (precision != WHIT_PRECISION_F32) assert_memory_equal(c[0], c[1], bytes);
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

/* Tests the widest kernels of both orders that this CPU can run. */
static void products_in_bf16(void **state)
{
    (void)state;
    check_precision(WHIT_PRECISION_BF16_TILES);
    check_precision(WHIT_PRECISION_BF16_PAIRS);
}

/* Fills x with magnitudes from 2^-range to 2^range; every 13th element is a subnormal, a zero or a power of two near
 * the least normal number. */
static void fill_range(whit_rng *rng, float *x, size_t n, int range)
{
    static const float odd[] = {0x1p-127f,    -0x1p-140f,       0.0f,    -0.0f, 0x1p-126f,
                                -0x1.8p-126f, 0x1.fffffep-127f, 0x1p-63f};
    for (size_t i = 0; i < n; i++) {
        int exponent = (int)(whit_rng_uniform(rng) * 2 * range) - range;
        x[i] = i % 13 == 0 ? odd[i / 13 % 8] : ldexpf((float)(whit_rng_uniform(rng) * 2 - 1), exponent);
    }
}

static void compare_kernels(const whit_gemm_kernel *kernel, const whit_gemm_kernel *plain, int range)
{
    enum { M = 37, N = 51, K = 560, STRIDE = 563 };
    whit_rng rng = {(uint64_t)range};
    size_t packed_bytes = whit_round_up(N, 32) * whit_round_up(K, 32) * 2;
    float *a = malloc(sizeof(float[STRIDE][STRIDE])), *b = malloc(sizeof(float[STRIDE][STRIDE]));
    float *before = malloc(sizeof(float[M][N]));
    for (int ways = 0; ways < 8; ways++) {
        fill_range(&rng, a, (size_t)STRIDE * STRIDE, range);
        fill_range(&rng, b, (size_t)STRIDE * STRIDE, range);
        fill_range(&rng, before, (size_t)M * N, range);
        const whit_gemm_kernel *kernels[2] = {kernel, plain};
        float *c[2];
        void *packed[2];
        for (int i = 0; i < 2; i++) {
            whit_gemm_operand left = {a, STRIDE, ways & 1}, right = {b, STRIDE, ways & 2};
            c[i] = malloc(sizeof(float[M][N]));
            memcpy(c[i], before, sizeof(float[M][N]));
            packed[i] = aligned_alloc(64, packed_bytes);
            whit_gemm_pack(kernels[i], &right, N, K, 0, 2, packed[i]);
            whit_gemm_rows(kernels[i], &left, packed[i], 0, M, N, K, ways & 4, c[i], N);
        }
        assert_memory_equal(packed[0], packed[1], packed_bytes);
        for (size_t i = 0; i < (size_t)M * N; i++)
            if (memcmp(&c[0][i], &c[1][i], sizeof(float)) != 0)
                fail_msg("%s, range %d, ways %d, element %zu: %a, plain %a", kernel->name, range, ways, i, c[0][i],
                         c[1][i]);
        for (int i = 0; i < 2; i++) free(c[i]), free(packed[i]);
    }
    free(a);
    free(b);
    free(before);
}

static void kernels_equal_plain(void **state)
{
    (void)state;
    static const int ranges[] = {2, 30, 62, 126};
    whit_cpu cpu;
    whit_linalg_detect(&cpu);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        compare_kernels(whit_blas_kernel(WHIT_PRECISION_BF16_TILES), &whit_gemm_tiles_generic, ranges[i]);
        compare_kernels(whit_blas_kernel(WHIT_PRECISION_BF16_PAIRS), &whit_gemm_pairs_generic, ranges[i]);
#if defined(__x86_64__)
        if (!whit_isa_allows(cpu.isa, WHIT_ISA_AVX2)) continue;
        compare_kernels(&whit_gemm_tiles_avx2, &whit_gemm_tiles_generic, ranges[i]);
        compare_kernels(&whit_gemm_pairs_avx2, &whit_gemm_pairs_generic, ranges[i]);
#endif
    }
}

/* A limit on the CPU level, as for inference: below AMX's level no AMX kernel, at the lowest level the plain loops and
 * products. */
static void products_under_a_cap(void **state)
{
    (void)state;
    whit_blas blas;
    whit_error error;
    const char *before = getenv("WHIT_CPU");
    char *kept = before ? strdup(before) : NULL;
    setenv("WHIT_CPU", "generic", 1);
    assert_ptr_equal(whit_loops_find(), &whit_loops_generic);
    assert_int_equal(whit_precision_choose(WHIT_PRECISION_BF16), WHIT_PRECISION_F32);
    assert_ptr_equal(whit_blas_kernel(WHIT_PRECISION_BF16_TILES), &whit_gemm_tiles_generic);
    assert_ok(whit_blas_open(&blas, WHIT_PRECISION_BF16, whit_loops_find(), 64, 64, 1, NULL, &error), error);
    assert_null(blas.library);
    assert_null(blas.kernel);
    whit_blas_close(&blas);
    check_precision(WHIT_PRECISION_F32);
#if defined(__x86_64__)
    setenv("WHIT_CPU", "avx2", 1);
    assert_int_equal(whit_precision_choose(WHIT_PRECISION_BF16), WHIT_PRECISION_F32);
    assert_string_not_equal(whit_blas_kernel(WHIT_PRECISION_BF16_PAIRS)->name, "gemm_bf16_pairs_avx512");
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
        cmocka_unit_test(kernels_equal_plain),
        cmocka_unit_test(products_under_a_cap),
    };
    return cmocka_run_group_tests_name("products", tests, NULL, NULL);
}
