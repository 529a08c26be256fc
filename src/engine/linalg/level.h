/* SPDX-License-Identifier: MIT
 * Determines the CPU level for float arithmetic: the machine's level, limited by the environment variable WHIT_CPU,
 * which also limits inference. An unknown name in it has no effect here; the command line refuses it. */
#ifndef WHIT_LINALG_LEVEL_H
#define WHIT_LINALG_LEVEL_H

#include "base/cpu.h"

/* Detects the CPU like whit_cpu_detect, but limits `isa` and, of the bits of `features`, the bf16 ones (AMX_BF16,
 * AVX512_BF16) by WHIT_CPU. OpenBLAS chooses its own kernels: the limit affects it only if it is `generic`, which
 * prevents loading it (blas.h). */
void whit_linalg_detect(whit_cpu *cpu);
/* Returns whether VDPBF16PS performs more multiply-adds per cycle than VFMADD; `cpu` is from whit_linalg_detect. One
 * VDPBF16PS has twice the multiply-adds of one VFMADD. Cores with AMX start a quarter as many VDPBF16PS as VFMADD,
 * which makes half as many multiply-adds (measured on Sapphire Rapids: 1.87 and 7.51 G instructions a second). Cores
 * without AMX (Cooper Lake, Zen 4, Zen 5) start as many of both, which makes twice as many. */
bool whit_linalg_bf16_pays(const whit_cpu *cpu);

#endif
