/* SPDX-License-Identifier: MIT */
#define LEVEL bench_fused_avx512
#include "cli/bench_fused.inc"
