/* SPDX-License-Identifier: MIT */
#include "linalg/level.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

void whit_linalg_detect(whit_cpu *cpu)
{
    whit_cpu_detect(cpu);
    (void)whit_isa_cap(getenv("WHIT_CPU"), &cpu->isa);
    if (!whit_isa_allows(cpu->isa, WHIT_ISA_AMX)) cpu->features &= ~WHIT_CPU_AMX_BF16;
    if (!whit_isa_allows(cpu->isa, WHIT_ISA_AVX512)) cpu->features &= ~WHIT_CPU_AVX512_BF16;
}

bool whit_linalg_bf16_pays(const whit_cpu *cpu)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!(cpu->features & WHIT_CPU_AVX512_BF16)) return false;
    /* bit 22: the core has AMX-BF16, whether or not the system grants its use */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && !(d >> 22 & 1);
#else
    (void)cpu;
    return false;
#endif
}
