/* SPDX-License-Identifier: MIT */
#define WHIT_LOOPS whit_loops_avx512
#include "train/loops.inc"
