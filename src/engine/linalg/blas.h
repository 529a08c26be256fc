/* SPDX-License-Identifier: MIT
 * Computes matrix products on one thread or partitioned over a pool, in one of three precisions.
 *
 * f32: OpenBLAS computes the products if it is installed, is not a sequential build, and the CPU level (level.h) is not
 * `generic`; otherwise, and in builds without OpenBLAS, plain loops do. OpenBLAS is loaded on first use, because
 * linking it would start its threads in every program that uses this library. It runs with one thread; the worker pool
 * partitions the work instead.
 *
 * bf16: operands are rounded to bfloat16 and summed in f32, in the order of AMX's instruction or of AVX-512's
 * (gemm_bf16.h). Each order gives the same bits on every processor; a processor without the instruction is slower.
 *
 * Products are cut into pieces by shape alone, so the results do not depend on the number of threads. */
#ifndef WHIT_LINALG_BLAS_H
#define WHIT_LINALG_BLAS_H

#include "base/mem.h"
#include "base/threads.h"
#include "linalg/loops.h"

typedef enum whit_precision {
    WHIT_PRECISION_F32,
    WHIT_PRECISION_BF16_TILES, /* sums in the order of AMX's TDPBF16PS */
    WHIT_PRECISION_BF16_PAIRS, /* sums in the order of AVX-512's VDPBF16PS */
    WHIT_PRECISION_BF16,       /* the fastest of the three above on this processor (whit_precision_choose) */
    WHIT_PRECISION_COUNT
} whit_precision;

const char *whit_precision_name(whit_precision precision); /* returns "f32", "bf16-amx", "bf16-avx512" or "bf16", the
                                                            * name of the precision */
/* Returns the precision that BF16 stands for on this processor, under the cap of WHIT_CPU: TILES with AMX-BF16; PAIRS
 * if VDPBF16PS is faster than f32, which is so only on processors without AMX; else F32. Other precisions are returned
 * unchanged. */
whit_precision whit_precision_choose(whit_precision precision);

typedef struct whit_blas {
    whit_precision precision;              /* the precision in use, never WHIT_PRECISION_BF16 */
    const struct whit_gemm_kernel *kernel; /* kernel of a bf16 precision; NULL for f32 */
    const whit_loops *loops;
    void *library; /* OpenBLAS; NULL: the plain loops are used */
    void (*gemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
    uint8_t *packed; /* bf16: packed right operands, one buffer for shared products and one per worker */
    size_t common_bytes, own_bytes, packed_bytes;
    const whit_allocator *allocator;
    _Atomic uint64_t *multiply_adds; /* sum of m * n * k over the products, except shared bf16 products; NULL: not
                                      * counted */
} whit_blas;

/* Returns the kernel of TILES or PAIRS for this processor, under the cap of WHIT_CPU; NULL for F32. */
const struct whit_gemm_kernel *whit_blas_kernel(whit_precision precision);
/* f32: opens OpenBLAS if it can be used (see above). bf16: allocates buffers for packed right operands op(b):
 * common_elems elements for shared products, and own_elems elements per worker for its own products (both are the
 * largest whit_blas_elems). The only possible error is a failed allocation. */
whit_status whit_blas_open(whit_blas *blas, whit_precision precision, const whit_loops *loops, size_t common_elems,
                           size_t own_elems, uint32_t n_workers, const whit_allocator *allocator, whit_error *error);
void whit_blas_close(whit_blas *blas); /* a zero-initialised struct counts as closed */

/* Returns the number of elements of a packed op(b) (k, n). */
static inline size_t whit_blas_elems(size_t n, size_t k)
{
    return whit_round_up(n, 32) * whit_round_up(k, 32);
}

/* Describes a row-major product: c (m, n; rows ldc apart) = beta c + op(a) op(b), with op(a) (m, k) and op(b) (k, n),
 * where op transposes if transpose_a or transpose_b is set. beta is 0 or 1; if it is 0, c is not read. */
typedef struct whit_product {
    bool transpose_a, transpose_b;
    size_t m, n, k;
    const float *a;
    size_t lda;
    const float *b;
    size_t ldb;
    float beta;
    float *c;
    size_t ldc;
} whit_product;

/* Describes c (m, n) = op(a) (m, k) op(b) (k, n) for matrices without gaps between their rows. */
static inline whit_product whit_product_packed(bool transpose_a, bool transpose_b, const float *a, const float *b,
                                               size_t m, size_t n, size_t k, float *c)
{
    return (whit_product){.transpose_a = transpose_a,
                          .transpose_b = transpose_b,
                          .m = m,
                          .n = n,
                          .k = k,
                          .a = a,
                          .lda = transpose_a ? m : k,
                          .b = b,
                          .ldb = transpose_b ? k : n,
                          .c = c,
                          .ldc = n};
}

/* Computes a product on the calling thread, whose index in the pool is `worker`. */
void whit_blas_multiply(const whit_blas *blas, uint32_t worker, const whit_product *product);
/* Computes a product on all threads of the pool. */
void whit_blas_share(const whit_blas *blas, whit_pool *pool, const whit_product *product);
/* Computes c (m, n) = a (m, k) b (k, n), or a b^T if transpose_b, on all threads of the pool, for matrices without gaps
 * between rows. adds: adds the product to c. */
void whit_blas_share_packed(const whit_blas *blas, whit_pool *pool, bool transpose_b, const float *a, size_t m,
                            size_t k, const float *b, size_t n, float *c, bool adds);

#endif
