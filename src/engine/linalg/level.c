/* SPDX-License-Identifier: MIT */
#include "linalg/level.h"

#include <stdlib.h>

void whit_linalg_detect(whit_cpu *cpu)
{
    whit_cpu_detect(cpu);
    (void)whit_isa_cap(getenv("WHIT_CPU"), &cpu->isa);
    if (!whit_isa_allows(cpu->isa, WHIT_ISA_AMX)) cpu->features &= ~WHIT_CPU_AMX_BF16;
}
