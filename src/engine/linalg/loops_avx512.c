/* SPDX-License-Identifier: MIT */
#define WHIT_LOOPS whit_loops_avx512
#include "linalg/loops.inc"
