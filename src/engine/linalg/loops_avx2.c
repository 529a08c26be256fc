/* SPDX-License-Identifier: MIT */
#define WHIT_LOOPS whit_loops_avx2
#include "linalg/loops.inc"
