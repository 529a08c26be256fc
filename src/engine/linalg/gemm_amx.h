/* SPDX-License-Identifier: MIT
 * Matrix products whose operands are rounded to bfloat16 on the way into AMX tiles, with sums in
 * f32: c (m, n) = or += op(a) (m, k) op(b) (k, n), row-major.
 *
 * First b is packed, then rows of c are made from it; both may be partitioned over threads. Every element of
 * c is a sum in one order, however rows and panels are shared. Only where whit_linalg_detect
 * finds WHIT_CPU_AMX_BF16. No state. */
#ifndef WHIT_LINALG_GEMM_AMX_H
#define WHIT_LINALG_GEMM_AMX_H

#include <stdbool.h>
#include <stddef.h>

enum { WHIT_GEMM_AMX_PANEL = 32 }; /* columns of b packed side by side */

/* op(x): element (i, j) is at[i * stride + j], transposed at[j * stride + i]. */
typedef struct whit_gemm_operand {
    const float *at;
    size_t stride;
    bool transposed;
} whit_gemm_operand;

/* Of all of a packed b; its memory is aligned to 64. */
size_t whit_gemm_amx_packed_bytes(size_t n, size_t k);
/* Panels [begin, end) of the ceil(n / PANEL) of b. */
void whit_gemm_amx_pack(const whit_gemm_operand *b, size_t n, size_t k, size_t begin, size_t end, void *packed);
/* Rows [begin, end) of c, `ldc` floats apart. */
void whit_gemm_amx_rows(const whit_gemm_operand *a, const void *packed, size_t begin, size_t end, size_t n, size_t k,
                        bool add, float *c, size_t ldc);

#endif
