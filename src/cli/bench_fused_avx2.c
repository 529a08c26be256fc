/* SPDX-License-Identifier: MIT */
#define LEVEL bench_fused_avx2
#include "cli/bench_fused.inc"
