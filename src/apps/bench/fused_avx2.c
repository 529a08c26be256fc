/* SPDX-License-Identifier: MIT */
#define LEVEL bench_fused_avx2
#include "bench/fused.inc"
