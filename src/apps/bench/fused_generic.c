/* SPDX-License-Identifier: MIT */
#define LEVEL bench_fused_generic
#include "bench/fused.inc"
