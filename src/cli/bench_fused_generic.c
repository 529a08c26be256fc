/* SPDX-License-Identifier: MIT */
#define LEVEL bench_fused_generic
#include "cli/bench_fused.inc"
