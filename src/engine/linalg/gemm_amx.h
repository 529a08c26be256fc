/* SPDX-License-Identifier: MIT
 * Matrix products whose operands are rounded to bfloat16 on the way into AMX tiles, with sums in
 * f32: c (m, n) = or += op(a) (m, k) op(b) (k, n), row-major.
 *
 * First b is packed, then rows of c are computed from it; both may be partitioned over threads. Every element of
 * c is summed in one order, however rows and panels are partitioned. Requires WHIT_CPU_AMX_BF16 from
 * whit_linalg_detect. No state. */
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

/* Bytes of a whole packed b; its memory must be 64-byte aligned. */
size_t whit_gemm_amx_packed_bytes(size_t n, size_t k);
/* Packs panels [begin, end) of the ceil(n / PANEL) panels of b. */
void whit_gemm_amx_pack(const whit_gemm_operand *b, size_t n, size_t k, size_t begin, size_t end, void *packed);
/* Computes rows [begin, end) of c, `ldc` floats apart; adds to them if `add`. */
void whit_gemm_amx_rows(const whit_gemm_operand *a, const void *packed, size_t begin, size_t end, size_t n, size_t k,
                        bool add, float *c, size_t ldc);

#endif
