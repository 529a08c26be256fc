/* SPDX-License-Identifier: MIT
 * Compares expressions on vectors of f32: as programs of the array language, and as C code that gcc compiles for this
 * CPU. */
#ifndef WHIT_BENCH_FUSED_H
#define WHIT_BENCH_FUSED_H

#include "base/quat.h"

/* Computes one expression in C, compiled with -O3, fused multiply-adds and the instructions of one CPU level
 * (fused.inc). Writes n elements to out, or returns the sum. */
typedef float bench_fused_fn(float *restrict out, const float *restrict a, const float *restrict b, uint32_t n);
enum { BENCH_FUSED = 5, BENCH_FUSED_SIZES = 3 };
extern bench_fused_fn *const bench_fused_generic[BENCH_FUSED], *const bench_fused_avx2[BENCH_FUSED],
                                                                   *const bench_fused_avx512[BENCH_FUSED];

typedef struct bench_fused bench_fused;
bench_fused *bench_fused_open(const whit_quat_kernels *quat); /* returns NULL if memory runs out */
void bench_fused_close(bench_fused *f);

/* Returns the name of the test, such as "r = a * b + 2 * a - b of 1,024"; the program and the C code have the same
 * name. Both work on the vectors of the program's session. */
const char *bench_fused_name(bench_fused *f, int expression, int size);
/* Returns the number of elements that one call processes: a call repeats small vectors many times. */
uint32_t bench_fused_elements(int size);
void bench_fused_program(bench_fused *f, int expression, int size);
void bench_fused_c(bench_fused *f, int expression, int size);

#endif
