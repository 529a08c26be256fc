/* SPDX-License-Identifier: MIT
 * Determines the CPU level for float arithmetic: the machine's, limited by the environment's WHIT_CPU, which inference
 * obeys too. An unknown name limits nothing here; the command line refuses it. */
#ifndef WHIT_LINALG_LEVEL_H
#define WHIT_LINALG_LEVEL_H

#include "base/cpu.h"

/* Detects the CPU as whit_cpu_detect does, with `isa` and `features` limited by the cap. OpenBLAS chooses its own
 * kernels: the cap affects it only if it is `generic`, which prevents loading it (blas.h). */
void whit_linalg_detect(whit_cpu *cpu);
/* Returns whether VDPBF16PS does more multiply-adds in a cycle than VFMADD; `cpu` is from whit_linalg_detect. Cores
 * with AMX start a quarter as many VDPBF16PS as VFMADD (measured on Sapphire Rapids: 1.87 and 7.51 G a second), which
 * do half as many multiply-adds. Cores without AMX (Cooper Lake, Zen 4, Zen 5) start as many, which do twice as many
 * multiply-adds. */
bool whit_linalg_bf16_pays(const whit_cpu *cpu);

#endif
