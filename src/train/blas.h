/* SPDX-License-Identifier: MIT
 * Single-precision matrix products of one thread: OpenBLAS where it is installed, a plain blocked
 * loop otherwise. OpenBLAS is loaded when it is first wanted, because linking it would start its
 * threads in every program that uses this library; it is told to use one thread, and the worker
 * pool shares out products instead. */
#ifndef WHIT_TRAIN_BLAS_H
#define WHIT_TRAIN_BLAS_H

#include "train/loops.h"

typedef struct whit_blas {
    const whit_loops *loops;
    void *library; /* NULL: the plain loops */
    void (*gemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc);
} whit_blas;

/* Never fails: without the library the plain loops are used. */
void whit_blas_open(whit_blas *blas, const whit_loops *loops);
void whit_blas_close(whit_blas *blas);
const char *whit_blas_name(const whit_blas *blas);

/* Row-major: c (m, n; rows ldc apart) = beta c + op(a) op(b), op(a) (m, k), op(b) (k, n), where op
 * transposes on request. beta is 0 or 1; with 0 nothing of c is read. */
void whit_blas_gemm(const whit_blas *blas, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                    const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);

#endif
