/* SPDX-License-Identifier: MIT */
#define LEVEL bench_fused_avx512
#include "bench/fused.inc"
