/* SPDX-License-Identifier: MIT
 * Compares expressions of f32 vectors as programs with the same expressions in C, as gcc compiles them for this CPU. */
#ifndef WHIT_BENCH_FUSED_H
#define WHIT_BENCH_FUSED_H

#include "base/quat.h"

/* Computes the expression in C, compiled with -O3, fused multiply-adds and the level's instructions (fused.inc): writes
 * n elements to out, or returns the sum. */
typedef float bench_fused_fn(float *restrict out, const float *restrict a, const float *restrict b, uint32_t n);
enum { BENCH_FUSED = 5, BENCH_FUSED_SIZES = 3 };
extern bench_fused_fn *const bench_fused_generic[BENCH_FUSED], *const bench_fused_avx2[BENCH_FUSED],
                                                                   *const bench_fused_avx512[BENCH_FUSED];

typedef struct bench_fused bench_fused;
bench_fused *bench_fused_open(const whit_quat_kernels *quat); /* returns NULL if memory runs out */
void bench_fused_close(bench_fused *f);

/* Returns the name of the test, such as "r = a * b + 2 * a - b of 1,024", which is the same for the program and for C;
 * both work on the session's vectors. */
const char *bench_fused_name(bench_fused *f, int expression, int size);
/* Returns the number of elements processed per call, which repeats small vectors many times. */
uint32_t bench_fused_elements(int size);
void bench_fused_program(bench_fused *f, int expression, int size);
void bench_fused_c(bench_fused *f, int expression, int size);

#endif
