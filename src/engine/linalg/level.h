/* SPDX-License-Identifier: MIT
 * The CPU level for float arithmetic: the machine's, limited by the environment's WHIT_CPU, which inference obeys too.
 * An unknown name limits nothing here; verbs refuse it. */
#ifndef WHIT_LINALG_LEVEL_H
#define WHIT_LINALG_LEVEL_H

#include "base/cpu.h"

/* whit_cpu_detect with `isa` and `features` limited by the cap. OpenBLAS chooses its own kernels: only the cap
 * `generic` affects it, by not loading it (blas.h). */
void whit_linalg_detect(whit_cpu *cpu);
/* Returns whether VDPBF16PS does more multiply-adds in a cycle than VFMADD, `cpu` being from whit_linalg_detect. Cores
 * with AMX start a quarter as many VDPBF16PS as VFMADD (measured on Sapphire Rapids: 1.87 and 7.51 G a second), which
 * is half the multiply-adds; those without (Cooper Lake, Zen 4, Zen 5) as many, which is twice. */
bool whit_linalg_bf16_pays(const whit_cpu *cpu);

#endif
