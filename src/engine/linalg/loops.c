/* SPDX-License-Identifier: MIT */
#include "linalg/loops.h"

#include "linalg/level.h"

const whit_loops *whit_loops_find(void)
{
#if defined(__x86_64__)
    whit_cpu cpu;
    whit_linalg_detect(&cpu);
    if (whit_isa_allows(cpu.isa, WHIT_ISA_AVX512)) return &whit_loops_avx512;
    if (whit_isa_allows(cpu.isa, WHIT_ISA_AVX2)) return &whit_loops_avx2;
#endif
    return &whit_loops_generic;
}
