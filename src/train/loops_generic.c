/* SPDX-License-Identifier: MIT */
#define WHIT_LOOPS whit_loops_generic
#include "train/loops.inc"
