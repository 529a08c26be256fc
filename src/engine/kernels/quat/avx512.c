/* SPDX-License-Identifier: MIT
 * Builds the functions on elements of quaternary vectors in 512-bit words; the compiler makes ternary logic of the
 * operators. */
#include "kernels/quat/declare.h"

#define QUAT(op) whit_quat_##op##_avx512
#define VN       8
#include "kernels/quat/elements.inc"
